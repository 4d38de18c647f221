"""What one player's bad device does to him, and not to the others."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import websockets
from websockets import Subprotocol

from tests.builders import APlayer, a_game, players, stored
from tests.e2e.clients import Client, subprotocols
from tests.e2e.conftest import StartServer, metric, set_flags
from tests.servers import ROOT, Server


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


async def test_a_client_that_stops_reading_is_closed_and_costs_the_others_nothing(
    start_server: StartServer,
) -> None:
    set_flags(messages_per_minute=1_000_000)
    server = start_server()
    accounts = players("talker", "stuck", "other")
    game_id = a_game(*accounts).game_id
    async with (
        Client(accounts[0], [server], game_id, 0) as talker,
        Client(accounts[2], [server], game_id, 0) as other,
    ):
        stuck = raw_watcher(server, accounts[1], game_id)
        count = 0
        while metric(server, "socket_relays_dropped_total") == 0:
            for _ in range(100):
                # Small enough that no tick overflows, however fast the answers come.
                assert (await talker.ask("game.relay", data="x" * 400))["type"] == "ok"
            count += 100
            assert count < 60_000
            # What the stuck one would not take is left out; the others' come whole, and each
            # answer in its time (`ask` and `until` have deadlines).
            await other.until(partial(has_heard, other, count))
        stuck.close()


def has_heard(client: Client, count: int) -> bool:
    return len(client.relayed) == count


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
    payload = json.dumps({"type": "game.watch", "game_id": game_id}).encode()
    # A client's frames are masked; a mask of zeros leaves the bytes as they are.
    raw.sendall(bytes((0x81, 0x80 | len(payload))) + b"\0\0\0\0" + payload)
    return raw


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
