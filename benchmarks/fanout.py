"""Measure the fan-out of relayed messages: `python -m benchmarks.fanout`.

4 games of 50 receivers, one of whom sends. Prints the server's CPU microseconds for each delivered
message, deliveries a second, and the time from sender to receiver: in a closed loop (each sender
keeps WINDOW messages on their way) and at 20 messages a second; and the server's memory for each of
400 idle connections. Starts an engine in memory and a server of its own; run it on an idle machine.
"""

import asyncio
import base64
import json
import os
import statistics
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import uvloop

GAMES, RECEIVERS = 4, 50
WINDOWS = (1, 16)
PER_SECOND = 20
SECONDS = 8.0
WARM_UP_SECONDS = 2.0
IDLE = 400
# A position and a heading, as a game would send them.
DATA_BYTES = 64


@dataclass
class Game:
    """One game's traffic as its receivers saw it."""

    game_id: str
    sockets: list["Receiver"] = field(default_factory=list)
    delivered: int = 0
    sent: int = 0
    heard_by_sender: int = 0
    seconds: list[float] = field(default_factory=list)
    on_heard: asyncio.Event = field(default_factory=asyncio.Event)


class Receiver(asyncio.Protocol):
    """A WebSocket client that does no more than it must: it splits frames and counts messages."""

    def __init__(self, token: str, game: Game | None, *, is_sender: bool = False) -> None:
        self._token = token
        self._game = game
        self._is_sender = is_sender
        self._buffer = b""
        self._is_open = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        self._transport.write(
            (
                "GET /ws/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                f"Sec-WebSocket-Protocol: gameserver.v1, bearer.{self._token}\r\n\r\n"
            ).encode()
        )

    def send(self, text: str) -> None:
        """Send a masked text frame; a mask of zeros leaves the bytes as they are."""
        payload = text.encode()
        size = len(payload)
        head = bytes((0x81, 0x80 | size)) if size < 126 else struct.pack("!BBH", 0x81, 0xFE, size)
        self._transport.write(head + b"\0\0\0\0" + payload)

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open:
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            assert b" 101 " in head, head
            self._is_open, self._buffer = True, rest
        while (payload := self._next_payload()) is not None:
            self._take(payload)

    def _next_payload(self) -> bytes | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1], 2
        if size == 126:
            if len(buffer) < 4:
                return None
            (size,), start = struct.unpack_from("!H", buffer, 2), 4
        if len(buffer) < start + size:
            return None
        self._buffer = buffer[start + size :]
        # A ping wants its pong.
        if buffer[0] == 0x89:
            self._transport.write(
                b"\x8a" + bytes((0x80 | size,)) + b"\0\0\0\0" + buffer[start:][:size]
            )
            return b""
        return buffer[start : start + size]

    def _take(self, payload: bytes) -> None:
        if self._game is None:
            if not self.ready.done():
                self.ready.set_result(None)
        elif payload.startswith(b'{"type":"settings.snapshot"'):
            self.send(json.dumps({"type": "game.watch", "game_id": self._game.game_id}))
        elif payload.startswith(b'{"type":"game.snapshot"'):
            self.ready.set_result(None)
        elif payload.startswith(b'{"type":"game.relay"'):
            self._count(self._game, payload)

    def _count(self, game: Game, payload: bytes) -> None:
        messages = payload.count(b'{"username"')
        game.delivered += messages
        if self._is_sender:
            now = time.perf_counter()
            for message in json.loads(payload)["messages"]:
                game.seconds.append(now - message["data"]["at"])
            game.heard_by_sender += messages
            game.on_heard.set()


async def send_in_a_loop(game: Game, window: int) -> None:
    """Keep `window` messages on their way."""
    while True:
        while game.sent - game.heard_by_sender < window:
            send_one(game)
        game.on_heard.clear()
        await game.on_heard.wait()


async def send_at_a_rate(game: Game, phase: float) -> None:
    """Send PER_SECOND messages a second, each game at its own moment."""
    await asyncio.sleep(phase / PER_SECOND)
    while True:
        send_one(game)
        await asyncio.sleep(1 / PER_SECOND)


def send_one(game: Game) -> None:
    game.sent += 1
    data = {"at": time.perf_counter(), "pad": "x" * DATA_BYTES}
    game.sockets[0].send(json.dumps({"type": "game.relay", "game_id": game.game_id, "data": data}))


async def connect(server: Any, receiver: Receiver) -> Receiver:
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: receiver, "127.0.0.1", server.port)
    await asyncio.wait_for(receiver.ready, 30)
    return receiver


async def measure(server: Any, games: list[Game], name: str, work: Any) -> None:
    """Let the senders work, and print what it cost."""
    tasks = [asyncio.create_task(work(game, number)) for number, game in enumerate(games)]
    await asyncio.sleep(WARM_UP_SECONDS)
    delivered = sum(game.delivered for game in games)
    for game in games:
        game.seconds.clear()
    cpu, began = cpu_seconds(server.pid), time.perf_counter()
    await asyncio.sleep(SECONDS)
    cpu, took = cpu_seconds(server.pid) - cpu, time.perf_counter() - began
    delivered = sum(game.delivered for game in games) - delivered
    seconds = sorted(one for game in games for one in game.seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.5)
    for game in games:
        game.sent = game.heard_by_sender = 0
    p50 = statistics.median(seconds) * 1_000
    p99 = seconds[int(len(seconds) * 0.99)] * 1_000
    print(
        f"| {name} | {cpu / delivered * 1e6:.1f} | {delivered / took:,.0f} | {cpu / took:.0%} "
        f"| {p50:.1f} | {p99:.1f} |"
    )


async def run(server: Any, tokens: list[str], game_ids: list[str]) -> None:
    await measure_memory(server, tokens)
    games = [Game(game_id) for game_id in game_ids]
    for number, game in enumerate(games):
        for seat in range(RECEIVERS):
            token = tokens[number * RECEIVERS + seat]
            game.sockets.append(await connect(server, Receiver(token, game, is_sender=seat == 0)))
    print("| Load | CPU µs a delivery | Deliveries/s | CPU | p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|")
    for window in WINDOWS:
        await measure(
            server,
            games,
            f"closed loop, {window} on their way",
            lambda game, number, window=window: send_in_a_loop(game, window),
        )
    await measure(
        server,
        games,
        f"{PER_SECOND} messages/s",
        lambda game, number: send_at_a_rate(game, number / GAMES),
    )
    for game in games:
        for socket in game.sockets:
            socket.close()


async def measure_memory(server: Any, tokens: list[str]) -> None:
    # The first connections load code and fill pools; they are not what one more costs.
    warm = [await connect(server, Receiver(token, None)) for token in tokens[:50]]
    await asyncio.sleep(1)
    before = resident_bytes(server.pid)
    idle = [
        await connect(server, Receiver(tokens[number % len(tokens)], None))
        for number in range(IDLE)
    ]
    await asyncio.sleep(2)
    each = (resident_bytes(server.pid) - before) / IDLE
    print(f"Memory of one of {IDLE} idle connections: {each / 1024:.1f} KB\n")
    for socket in [*warm, *idle]:
        socket.close()
    await asyncio.sleep(2)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all of a process's threads, in user and kernel mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def surroundings(folder: Path) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Give a server, the players' tokens, and the ids of their games."""
    from tests.servers import running_server, server_environment

    environment = server_environment(
        folder,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",  # noqa: S106 (any)
        LOG_LEVEL="ERROR",
    )
    os.environ.update(environment)
    import django
    from django.conf import settings

    django.setup()
    from gameserver.engine import EmbeddedEngine

    with EmbeddedEngine() as engine:
        environment["DYNAMODB_ENDPOINT_URL"] = settings.DYNAMODB_ENDPOINT_URL = engine.url
        tokens, game_ids = prepare()
        with running_server(environment) as server:
            yield server, tokens, game_ids


def prepare() -> tuple[list[str], list[str]]:
    from django.utils import timezone

    from gameserver.schema import create_table
    from settings_singleton import cache, services
    from tests.builders import a_game, players

    create_table()
    services.create_first_item(timezone.now())
    services.change(
        {"messages_per_minute": 1_000_000}, who="benchmark", why="no limit", now=timezone.now()
    )
    cache.refresh_now()
    accounts = players(*(f"player{number}" for number in range(GAMES * RECEIVERS)))
    tokens = [one.tokens.access_token for one in accounts]
    hosts = range(0, len(accounts), RECEIVERS)
    games = [a_game(*accounts[first : first + RECEIVERS]) for first in hosts]
    return tokens, [game.game_id for game in games]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as data, surroundings(Path(data)) as prepared:
        uvloop.run(run(*prepared))
