"""Hundreds of sockets that come at once and go at once, and what they leave behind: nothing."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

from django.conf import settings

from gameserver.feeds.bridge import game_topic
from tests.builders import APlayer, a_game, players
from tests.e2e.clients import Client, Doomed
from tests.e2e.conftest import Redis, StartServer, metric, post, set_flags
from tests.e2e.test_devices import resident_bytes
from tests.servers import Server

# At most MAX_CONNECTIONS_PER_PLAYER (10) of one account.
ACCOUNTS, SOCKETS_OF_EACH, GAMES = 100, 5, 10
SOCKETS = ACCOUNTS * SOCKETS_OF_EACH
ROUNDS = 2
# A close frame, masked by zeros.
CLOSE = bytes((0x88, 0x80)) + bytes(4)
SEED = 20_26
DEADLINE_SECONDS = 30.0


async def test_500_sockets_at_once_leave_no_connection_no_group_and_no_memory_behind(
    start_server: StartServer, redis: Redis
) -> None:
    # The seats of one round are free before the next.
    set_flags(reconnect_grace_seconds=0)
    server = start_server()
    accounts = players(*(f"player{number}" for number in range(ACCOUNTS)))
    # Of everybody, and of this process.
    await until(lambda: len(redis.channels) == 2)
    channels = redis.channels
    # The first time, caches fill, threads connect to the table and the bridge to Redis.
    await come_and_go(server, redis, accounts)
    await until(lambda: redis.channels == channels)
    redis_clients, files, memory = redis.clients, open_files(server), resident_bytes(server.pid)
    for _ in range(ROUNDS):
        await come_and_go(server, redis, accounts)
        await until(lambda: redis.channels == channels)
    assert redis.clients == redis_clients
    # Not every thread had its connection to the table yet.
    assert open_files(server) - files <= settings.BLOCKING_THREADS
    # About 4 MB in fact; 20 KB for each socket would be 20 MB.
    assert resident_bytes(server.pid) - memory < 10_000_000


async def test_a_killed_process_with_50_sockets_is_no_burden_to_another(
    two_servers: list[Server], redis: Redis
) -> None:
    here, there = two_servers
    host, guest, *watchers = players("host", "guest", *(f"watcher{n}" for n in range(50)))
    game_id = a_game(host).game_id
    await until(lambda: len(redis.channels) == 3)
    channels = redis.channels
    async with Client(host, [here], game_id, 0) as client:
        await until(lambda: heard_by(redis, game_id) == 1)
        here_alone = redis.channels
        doomed = [Doomed(there, player, game_id, Random(SEED)) for player in watchers]
        await watch_all(doomed)
        await until(lambda: heard_by(redis, game_id) == 2)
        logged, seconds = len(here.output.splitlines()), []
        there.kill()
        await until(lambda: heard_by(redis, game_id) == 1)
        for number in range(40):
            began = time.monotonic()
            path = f"{game_id}/{('join', 'leave')[number % 2]}"
            answer = await asyncio.to_thread(post, here, path, guest)
            assert answer.is_success, answer.text
            await client.until_version(answer.json()["version"])
            seconds.append(time.monotonic() - began)
        await asyncio.gather(*(one.kill() for one in doomed))
        assert median(seconds) < 0.25
        # Nothing is left of the dead process's own channel, nor of its connections.
        assert len(channels - redis.channels) == 1
        assert redis.channels < here_alone
        assert len(redis.ask("CLIENT", "LIST", "TYPE", "pubsub").splitlines()) == 1
        assert metric(here, "bridge_is_up") == 1
        assert len(here.output.splitlines()) - logged < 5


async def come_and_go(server: Server, redis: Redis, accounts: list[APlayer]) -> None:
    """Open all sockets at once, each to watch a game; end all at once, each in its way."""
    games = [a_game(accounts[2 * n], accounts[2 * n + 1]).game_id for n in range(GAMES)]
    clients = [
        Doomed(server, player, games[(number // 2 + turn) % GAMES], Random(SEED))
        for turn in range(SOCKETS_OF_EACH)
        for number, player in enumerate(accounts)
    ]
    await watch_all(clients)
    assert metric(server, "socket_connections") == len(clients) == SOCKETS
    assert metric(server, "socket_seats_held") == 2 * GAMES
    assert game_feeds(server) == GAMES
    await until(lambda: all(heard_by(redis, game_id) == 1 for game_id in games))
    for client in clients[::2]:
        client.writer.write(CLOSE)
    await asyncio.gather(*(client.kill() for client in clients))
    await until(lambda: metric(server, "socket_connections") == 0)
    await until(lambda: metric(server, "socket_seats_held") == 0)
    await until(lambda: game_feeds(server) == 0)


async def watch_all(clients: list[Doomed]) -> None:
    """Open all at once, and wait until each knows its game."""

    async def watch(client: Doomed) -> None:
        await client.shake_hands()
        client.send("game.watch", game_id=client.game_id)
        await client.hears("game.snapshot")

    async with asyncio.timeout(DEADLINE_SECONDS):
        await asyncio.gather(*(watch(client) for client in clients))


def game_feeds(server: Server) -> float:
    return metric(server, r'feeds\{kind="game"\}')


def heard_by(redis: Redis, game_id: str) -> int:
    """Count the processes that listen to a game."""
    named = [channel for channel in redis.channels if channel.endswith(game_topic(game_id))]
    return sum(redis.ask("PUBSUB", "NUMSUB", channel)[1] for channel in named)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 (states of other processes)
            await asyncio.sleep(0.1)


def open_files(server: Server) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
