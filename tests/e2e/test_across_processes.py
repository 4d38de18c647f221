"""What clients of one process hear of another: after a long silence, in turmoil, after a burst."""

import asyncio
import time
from contextlib import AsyncExitStack

from channels_redis.pubsub import RedisPubSubChannelLayer
from django.conf import settings

from gameserver.feeds.bridge import MESSAGE_TYPE, game_topic
from matches.feeds import game_view
from matches.services import lobby
from tests.builders import APlayer, a_game, players
from tests.e2e.clients import Client
from tests.e2e.conftest import Redis, StartServer, metric, post, set_flags, start_at_once, stopped
from tests.servers import Server

# Source: redis-py 8 reads with a time-out of 5 s by default; SOCKET_PING_SECONDS is 20.
IDLE_SECONDS = 30.0
# Less than a feed takes to its next poll: only a hint comes as fast.
HINT_SECONDS = 2.0
BURST, CHATS = 3_000, 15


async def test_idle_sockets_stay_and_one_that_always_comes_back_costs_the_others_nothing(
    start_server: StartServer,
) -> None:
    *busy, quiet = start_at_once(start_server, 3)
    caller, idle, *accounts = players("caller", "idle", *(f"player{n}" for n in range(7)))
    quiet_id, busy_id = a_game(caller, idle).game_id, a_game(*accounts).game_id
    (guest,) = players("guest")
    async with AsyncExitStack() as stack:
        calls = await stack.enter_async_context(Client(caller, busy, quiet_id, 0))
        idles = await stack.enter_async_context(Client(idle, [quiet], quiet_id, 0))
        clients = [
            await stack.enter_async_context(Client(player, busy, busy_id, number % 2))
            for number, player in enumerate(accounts)
        ]
        await until_linked([calls, idles])
        await until_linked(clients)
        *steady, loops = clients
        heard_before = metric(quiet, "bridge_messages_received_total")
        looping = asyncio.create_task(come_back_always(loops))
        began = time.monotonic()
        number = 0
        while time.monotonic() - began < IDLE_SECONDS:
            assert (await steady[0].ask("game.relay", data=number))["type"] == "ok"
            if number % 10 == 0:
                path = f"{busy_id}/{('join', 'leave')[number // 10 % 2]}"
                server = busy[number // 20 % 2]
                assert (await asyncio.to_thread(post, server, path, guest)).is_success
            number += 1
            await asyncio.sleep(0.05)
        assert not looping.done()
        looping.cancel()

        final = game_view(*lobby.load(busy_id))
        for client in clients:
            await client.until_version(final["version"])
            assert client.story is not None
            assert client.story.view == final
        # A version missed would have failed the client; and no number is missing either.
        for client in steady:
            await client.until(lambda client=client: client.relayed[-1] == number - 1)
            assert numbers(client) == list(range(number))
            assert client.connections == 1
        assert loops.connections > 50

        # The layer had nothing for the quiet process all the while.
        assert metric(quiet, "bridge_messages_received_total") == heard_before
        await calls.ask("game.relay", data="to the idle one")
        await idles.until(lambda: idles.relayed[-1] == "to the idle one", 5)
        await idles.ask("game.relay", data="from the idle one")
        await calls.until(lambda: calls.relayed[-1] == "from the idle one", 5)
        assert (calls.connections, idles.connections) == (1, 1)


async def until_linked(clients: list[Client]) -> None:
    """Wait until each hears what any of them says."""
    for talker in clients:
        for listener in clients:
            listener.relayed.clear()
        while not all(listener.relayed for listener in clients):
            await talker.ask("game.relay", data="linked?")
            await asyncio.sleep(0.05)


async def come_back_always(client: Client) -> None:
    while True:
        story = client.story
        client.cut()
        # Its process may have it again, or the other one.
        await client.until(lambda story=story: client.story is not story)


async def test_a_burst_in_one_game_takes_no_event_from_another(
    start_server: StartServer, redis: Redis
) -> None:
    set_flags(messages_per_minute=1_000_000)
    here, there = start_at_once(start_server, 2)
    host, guest, third, *late = players("host", "guest", "third", *(f"late{n}" for n in range(9)))
    loud_id, calm_id = a_game(host, guest).game_id, a_game(third).game_id

    async def join(game_id: str, player: APlayer) -> int:
        answer = await asyncio.to_thread(post, here, f"{game_id}/join", player)
        assert answer.is_success, answer.text
        return int(answer.json()["version"])

    async with (
        Client(host, [here], loud_id, 0) as talker,
        Client(guest, [there], loud_id, 0) as listener,
        Client(third, [there], calm_id, 0) as watcher,
    ):
        await until_linked([talker, listener])
        # The process cannot read for a moment.
        with stopped(there.pid):
            for begin in range(0, BURST, 100):
                asked = [talker.ask("game.relay", data=begin + n) for n in range(100)]
                assert {one["type"] for one in await asyncio.gather(*asked)} == {"ok"}
            for number in range(CHATS):
                assert (await talker.ask("game.chat", text=str(number)))["type"] == "ok"
            calm = await join(calm_id, late[0])
            loud = [await join(loud_id, player) for player in late[1:5]][-1]
        await asyncio.wait_for(watcher.until_version(calm), HINT_SECONDS)
        await listener.until_version(loud)
        # Relayed messages that no tick could hold are left out, and counted.
        async with asyncio.timeout(20):
            while len(numbers(listener)) + left_out(here, there) < BURST:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert numbers(listener) == sorted(set(numbers(listener)))
        assert len(numbers(listener)) + left_out(here, there) == BURST
        chats = [one["text"] for one in listener.heard if one["type"] == "game.chat"]
        assert chats == [str(number) for number in range(CHATS)]
        assert metric(there, "logged_errors_total") == 0

        # More than Redis keeps for a reader: it drops the reader, and what it kept.
        redis.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 262144 0 0")
        with stopped(there.pid):
            await flood(redis, loud_id)
            calm = await join(calm_id, late[5])
        await watcher.until_version(calm)
        assert "channels_redis.pubsub" in there.output
        assert metric(there, "logged_errors_total") >= 1
        calm = await join(calm_id, late[6])
        await asyncio.wait_for(watcher.until_version(calm), HINT_SECONDS)
        assert (watcher.connections, listener.connections) == (1, 1)


def numbers(client: Client) -> list[int]:
    return [one for one in client.relayed if one != "linked?"]


def left_out(*servers: Server) -> float:
    return sum(metric(server, "socket_relays_overflowed_total") for server in servers)


async def flood(redis: Redis, game_id: str) -> None:
    """Say 20 MB in a game, as another process would, but nothing that a client is told."""
    topic = game_topic(game_id)
    said = [["unheard of", "x" * 100_000]]
    message = {"type": MESSAGE_TYPE, "origin": "a third", "topic": topic, "hints": [], "said": said}
    prefix = f"{settings.DYNAMODB_TABLE}-test"
    layer = RedisPubSubChannelLayer(hosts=[redis.url], prefix=prefix)
    for _ in range(200):
        await layer.group_send(topic, message)
    await layer.flush()
