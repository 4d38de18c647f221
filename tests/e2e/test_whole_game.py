"""50 players and 5 watchers play a whole game in two processes, over a bad network."""

import asyncio
import random
from contextlib import AsyncExitStack

from matches.feeds import game_view
from matches.services import lobby
from tests.builders import a_game, players
from tests.e2e.clients import Client
from tests.e2e.conftest import Redis, StartServer, metric
from tests.servers import Server

PLAYERS, WATCHERS, CUT = 50, 5, 10
CUTS_PER_CLIENT = 2
SEED = 20_24


async def test_everybody_sees_the_same_game_whatever_is_lost(start_server: StartServer) -> None:
    servers = [start_server(DJANGO_SETTINGS_MODULE="tests.e2e.settings") for _ in range(2)]
    dice = random.Random(SEED)
    accounts = players(*(f"player{number}" for number in range(PLAYERS)))
    others = players(*(f"watcher{number}" for number in range(WATCHERS)))
    game_id = a_game(accounts[0]).game_id
    async with AsyncExitStack() as stack:
        clients = await asyncio.gather(
            *(
                stack.enter_async_context(Client(player, servers, game_id, number % 2))
                for number, player in enumerate(accounts + others)
            )
        )
        by_name = {client.username: client for client in clients}
        unlucky = dice.sample(clients, CUT)
        cuts = [client for client in unlucky for _ in range(CUTS_PER_CLIENT)]
        moves = 2 * PLAYERS - 2
        cut_before = dict(zip(dice.sample(range(moves), len(cuts)), cuts, strict=True))

        done = 0
        for client in clients[1:PLAYERS]:
            if done in cut_before:
                cut_before[done].cut()
            done += 1
            assert (await client.ask("game.join"))["type"] == "ok"
        assert (await clients[0].ask("game.start"))["type"] == "ok"
        alive = [player.username for player in accounts]
        while len(alive) > 1:
            if done in cut_before:
                cut_before[done].cut()
            done += 1
            killer, victim = dice.sample(alive, 2)
            answer = await by_name[killer].ask("game.eliminate", victim=victim)
            # The answer to a kill may be lost with its connection; then it is done already.
            assert answer["type"] == "ok" or answer["code"] == "not_alive", answer
            alive.remove(victim)

        final = game_view(*lobby.load(game_id))
        await asyncio.gather(*(client.until_version(final["version"]) for client in clients))
        assert [one for one in clients if one.story and one.story.view != final] == []
        assert final["game"]["winner"] == alive[0]
        assert sorted(one["placement"] for one in final["players"]) == list(range(1, PLAYERS + 1))
        assert sum(one["kills"] for one in final["players"]) == PLAYERS - 1
        assert all(client.connections > 1 for client in unlucky)
        assert sum(client.connections - 1 for client in clients) >= CUT
        assert sum(metric(server, "lossy_layer_lost_total") for server in servers) > 10


async def test_chat_and_relay_reach_all_players_in_both_processes(
    two_servers: list[Server], redis: Redis
) -> None:
    accounts = players("ada", "ben", "cleo", "dora")
    game_id = a_game(*accounts).game_id
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(player, two_servers, game_id, number % 2))
            for number, player in enumerate(accounts)
        ]
        # The processes' subscriptions take a moment; a first message that arrives says they stand.
        await _until_linked(clients)
        await clients[0].ask("game.chat", text="hello")
        for number in range(100):
            await clients[1].ask("game.relay", data=number)
        for client in clients:
            await client.until(lambda client=client: len(client.relayed) >= 100)
            assert client.relayed == list(range(100))
            assert [one["text"] for one in client.heard if one["type"] == "game.chat"][
                -1
            ] == "hello"


async def _until_linked(clients: list[Client]) -> None:
    for speaker, listener in ((clients[0], clients[1]), (clients[1], clients[0])):
        async with asyncio.timeout(10):
            while not any(
                one["type"] == "game.chat" and one["text"] == f"from {speaker.username}"
                for one in listener.heard
            ):
                await speaker.ask("game.chat", text=f"from {speaker.username}")
                await asyncio.sleep(0.6)
