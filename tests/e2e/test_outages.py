"""What players see when Redis or a server process goes away."""

import asyncio
import time
from contextlib import AsyncExitStack

from matches.feeds import game_view
from matches.models import STARTED
from matches.services import lobby
from tests.builders import APlayer, a_game, players, stored
from tests.e2e.clients import Client
from tests.e2e.conftest import Redis, StartServer, post, set_flags
from tests.servers import Server

# The feeds' poll (5 s and 20 % of jitter), and a little for a busy machine.
HEAL_SECONDS = 8.0


async def test_redis_is_killed_and_restarted_and_no_client_ends_with_a_wrong_state(
    two_servers: list[Server], redis: Redis
) -> None:
    names = [f"player{number}" for number in range(12)]
    accounts = players(*names)
    game_id = a_game(accounts[0]).game_id
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(player, two_servers, game_id, number % 2))
            for number, player in enumerate(accounts)
        ]

        async def join(player: APlayer, server: Server) -> float:
            begin = time.monotonic()
            answer = await asyncio.to_thread(post, server, f"{game_id}/join", player)
            assert answer.status_code == 200, answer.text
            version = answer.json()["version"]
            await asyncio.gather(*(client.until_version(version) for client in clients))
            return time.monotonic() - begin

        assert await join(accounts[1], two_servers[0]) < 2.0
        redis.kill()
        for number in (2, 3):
            assert await join(accounts[number], two_servers[number % 2]) < HEAL_SECONDS
        redis.start()
        for number in range(4, 10):
            assert await join(accounts[number], two_servers[number % 2]) < HEAL_SECONDS
        # By now hints travel again: a change is seen at once.
        assert min([await join(accounts[number], two_servers[0]) for number in (10, 11)]) < 1.5
        final = game_view(*lobby.load(game_id))
        assert all(client.story and client.story.view == final for client in clients)
        assert all(client.connections == 1 for client in clients)


async def test_with_redis_gone_every_action_over_http_still_succeeds(
    two_servers: list[Server], redis: Redis
) -> None:
    host, guest = players("host", "guest")
    redis.kill()
    game_id = a_game(host).game_id
    for path, by in ((f"{game_id}/join", guest), (f"{game_id}/start", host)):
        begin = time.monotonic()
        assert post(two_servers[0], path, by).status_code == 200
        assert time.monotonic() - begin < 5.0
    assert post(two_servers[1], f"{game_id}/leave", guest).status_code == 200
    assert stored(game_id).winner == "host"


async def test_players_of_a_killed_process_come_back_elsewhere_or_lose_the_seat(
    start_server: StartServer,
) -> None:
    # Dead after three missed beats; the grace may be shorter than that.
    set_flags(reconnect_grace_seconds=1)
    servers = [start_server(), start_server()]
    host, back, gone = players("host", "back", "gone")
    game_id = a_game(host, back, gone, status=STARTED).game_id
    async with (
        Client(host, servers, game_id, 1) as watcher,
        Client(back, servers, game_id, 0) as returns,
    ):
        async with Client(gone, servers[:1], game_id, 0):
            # Presence is written down once a second.
            await asyncio.sleep(2)
            servers[0].kill()
        await returns.until(lambda: returns.connections >= 2 and returns.story)
        await watcher.until(
            lambda: watcher.story and watcher.story.view["game"]["alive_count"] == 2, 45
        )
        assert watcher.story is not None
        left = {one["username"]: one["is_alive"] for one in watcher.story.view["players"]}
        assert left == {"host": True, "back": True, "gone": False}
