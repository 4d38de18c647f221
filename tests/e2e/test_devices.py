"""What one player's bad device does to him, and not to the others."""

import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Self

import pytest
import websockets
from websockets import Subprotocol

from tests.builders import APlayer, a_game, players, stored
from tests.e2e.clients import Client, Doomed, subprotocols
from tests.e2e.conftest import StartServer, metric, set_flags
from tests.servers import ROOT, Server

# Relayed messages that fit into one tick (48 KB), and how often they are said in the end.
RELAYS, WITHOUT_END = 40, 100
CHATS_OF_EACH = 6


async def until_freed(game_id: str, count: int, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while stored(game_id).player_count != count:  # noqa: ASYNC110 (a state in the table)
            await asyncio.sleep(0.1)


async def test_a_stopped_client_is_noticed_and_its_seat_is_freed(
    start_server: StartServer,
) -> None:
    set_flags(reconnect_grace_seconds=1)
    server = start_server(SOCKET_PING_SECONDS="1")
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    script = (
        "import asyncio, websockets, sys, json\n"
        "async def main():\n"
        "    async with websockets.connect(sys.argv[1], "
        "subprotocols=['gameserver.v1', sys.argv[2]]) as ws:\n"
        "        await ws.send(json.dumps({'type': 'game.watch', 'game_id': sys.argv[3]}))\n"
        "        async for text in ws: print(text, flush=True)\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", script, f"ws://127.0.0.1:{server.port}/ws/"]
    command += [f"bearer.{guest.tokens.access_token}", game_id]
    client = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)  # noqa: ASYNC220 (quick)
    try:
        assert client.stdout is not None
        while b"game.snapshot" not in client.stdout.readline():
            pass
        await asyncio.sleep(1.5)
        os.kill(client.pid, signal.SIGSTOP)
        await until_freed(game_id, 1, 15)
    finally:
        client.kill()
        client.communicate()


async def test_a_client_that_stops_reading_costs_49_others_nothing_and_is_closed_in_the_end(
    start_server: StartServer,
) -> None:
    set_flags(messages_per_minute=1_000_000)
    # No ping ends the stuck one before it is too slow.
    server = start_server(SOCKET_PING_SECONDS="600")
    accounts = players("talker", "stuck", *(f"other{number}" for number in range(48)))
    game_id = a_game(*accounts).game_id
    async with AsyncExitStack() as stack:
        ears = [await stack.enter_async_context(Ear(one, server, game_id)) for one in accounts[2:]]
        talker = await stack.enter_async_context(Client(accounts[0], [server], game_id, 0))
        stuck = raw_watcher(server, accounts[1], game_id)
        stack.callback(stuck.close)
        said = 0

        async def say_some() -> float:
            """Say less than a tick holds; return the seconds until the last of all has heard it."""
            nonlocal said
            began = time.monotonic()
            asked = [talker.ask("game.relay", data=[said + n, "x" * 900]) for n in range(RELAYS)]
            said += RELAYS
            assert {one["type"] for one in await asyncio.gather(*asked)} == {"ok"}
            for ear in ears:
                await ear.until_heard(relays=said)
            return time.monotonic() - began

        before = [await say_some() for _ in range(20)]
        while metric(server, "socket_relays_dropped_total") == 0:
            for _ in range(10):
                await say_some()
            assert said < 20_000
        memory = resident_bytes(server.pid)
        after = [await say_some() for _ in range(WITHOUT_END)]
        # Two minutes of 20 events a second.
        assert said >= 2_400
        assert statistics.median(after) < 2 * statistics.median(before) + 0.05
        # It did not take these 4 MB, and nothing keeps them.
        assert resident_bytes(server.pid) - memory < 2_000_000

        # What must not be left out is kept for it, up to a point.
        assert metric(server, "socket_connections") == 50
        for _ in range(CHATS_OF_EACH):
            for ear in ears:
                ear.say("game.chat", game_id=game_id, text="\N{GAME DIE}" * 300)
        for ear in ears:
            await ear.until_heard(chats=CHATS_OF_EACH * len(ears))
        assert metric(server, r'socket_closed_total\{code="4430"\}') == 1
        async with asyncio.timeout(10):
            while metric(server, "socket_connections") > 49:  # noqa: ASYNC110 (a metric)
                await asyncio.sleep(0.1)
        await say_some()


class Ear:
    """A player's device that counts what it hears, which costs it less than to understand it."""

    _HEARD = re.compile(rb'"data":\[(\d+),|"type":"game.(chat)"')

    def __init__(self, player: APlayer, server: Server, game_id: str) -> None:
        self.relays = self.chats = 0
        self._socket = Doomed(server, player, game_id, Random(0))
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._socket.shake_hands()
        self.say("game.watch", game_id=self._socket.game_id)
        await self._socket.hears("game.snapshot")
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        await self._socket.kill()

    def say(self, kind: str, **fields: str) -> None:
        payload = json.dumps({"type": kind, **fields}, ensure_ascii=False).encode()
        self._socket.writer.write(text_frame(payload))

    async def until_heard(self, *, relays: int = 0, chats: int = 0) -> None:
        """Wait for so many in all; fail if a relayed number is missing or there are no more."""
        async with asyncio.timeout(20):
            while self.relays < relays or self.chats < chats:
                if self._task.done():
                    self._task.result()
                self._news.clear()
                await self._news.wait()

    async def _listen(self) -> None:
        rest = b""
        while True:
            try:
                data = await self._socket.reader.read(65_536)
                assert data, "closed"
                rest += data
                end = 0
                for one in self._HEARD.finditer(rest):
                    end = one.end()
                    if one[2]:
                        self.chats += 1
                    else:
                        assert int(one[1]) == self.relays, "a gap"
                        self.relays += 1
                # What may be the beginning of one.
                rest = rest[max(end, len(rest) - 30) :]
            finally:
                self._news.set()


def raw_watcher(server: Server, player: APlayer, game_id: str) -> socket.socket:
    """Open a WebSocket by hand that watches a game and then reads nothing."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", server.port))
    raw.sendall(
        (
            f"GET /ws/ HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: gameserver.v1, "
            f"bearer.{player.tokens.access_token}\r\n\r\n"
        ).encode()
    )
    assert b"101" in raw.recv(1024)
    raw.sendall(text_frame(json.dumps({"type": "game.watch", "game_id": game_id}).encode()))
    return raw


def text_frame(payload: bytes) -> bytes:
    """Return a client's frame: masked, but by zeros, which leave the bytes as they are."""
    if len(payload) < 126:
        return bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload
    return b"\x81\xfe" + len(payload).to_bytes(2, "big") + bytes(4) + payload


@pytest.mark.parametrize("size", [65_537, 1_000_000, 50_000_000])
async def test_a_huge_message_ends_the_connection_before_it_fills_the_memory(
    start_server: StartServer, size: int
) -> None:
    server = start_server()
    (player,) = players("ada")
    before = resident_bytes(server.pid)
    url = f"ws://127.0.0.1:{server.port}/ws/"
    for offered in (subprotocols(player), [Subprotocol("gameserver.v1")]):
        async with websockets.connect(url, subprotocols=offered) as client:
            with pytest.raises(websockets.ConnectionClosed) as closed:  # noqa: PT012 (until closed)
                # In fragments, too.
                await client.send(iter(["x" * (size // 2), "x" * (size - size // 2)]))
                while True:
                    await client.recv()
        # The peer of a connection that was cut in the middle may not get to read the reason.
        assert closed.value.rcvd is None or closed.value.rcvd.code in {1009, 4401}
    assert resident_bytes(server.pid) - before < 20_000_000


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
