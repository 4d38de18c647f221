"""How a server goes, and what its clients are told."""

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import websockets

from tests.builders import APlayer, a_game, players, stored
from tests.e2e.clients import Client, subprotocols
from tests.e2e.conftest import StartServer, metric, post, set_flags
from tests.servers import Server, running_server, server_environment


async def test_sigterm_tells_every_client_when_to_come_back_and_lets_requests_finish(
    start_server: StartServer,
) -> None:
    server = start_server()
    accounts = players(*(f"player{number}" for number in range(20)))
    game_id = a_game(accounts[0]).game_id
    reasons: list[str] = []

    async def listen(player: APlayer) -> list[str]:
        url = f"ws://127.0.0.1:{server.port}/ws/"
        heard: list[str] = []
        async with websockets.connect(url, subprotocols=subprotocols(player)) as client:
            with pytest.raises(websockets.ConnectionClosed) as closed:  # noqa: PT012 (reads on)
                while True:
                    heard.append(json.loads(await client.recv())["type"])
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        reasons.append(closed.value.rcvd.reason)
        return heard

    listening = [asyncio.create_task(listen(player)) for player in accounts]
    async with asyncio.timeout(10):
        while metric(server, "socket_connections") < len(accounts):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    requests = [
        asyncio.create_task(asyncio.to_thread(post, server, f"{game_id}/join", player))
        for player in accounts[1:11]
    ]
    await asyncio.sleep(0.03)
    begin = time.monotonic()
    assert await asyncio.to_thread(server.terminate) == 0
    assert time.monotonic() - begin < 8.0
    answered = await asyncio.gather(*requests, return_exceptions=True)
    heard = await asyncio.gather(*listening)
    assert all(kinds == ["settings.snapshot", "notice"] for kinds in heard)
    waits = {float(reason.removeprefix("restart retry_after=")) for reason in reasons}
    assert len(reasons) == 20
    assert len(waits) > 5
    # Who was answered sits there; who was not even accepted may try again.
    done = [one for one in answered if isinstance(one, httpx.Response)]
    assert all(one.status_code == 200 for one in done)
    assert stored(game_id).player_count >= 1 + len(done)


@pytest.mark.parametrize(("grace_seconds", "is_answered"), [("0", False), ("10", True)])
async def test_a_request_on_its_way_gets_the_grace_that_is_configured(
    tmp_path: Path, grace_seconds: str, is_answered: bool
) -> None:
    environment = server_environment(tmp_path, GRACEFUL_SHUTDOWN_SECONDS=grace_seconds)
    with running_server(environment) as server:
        engine_pid = server.engine_pid
        # The table takes its time.
        os.kill(engine_pid, signal.SIGSTOP)
        asked = asyncio.create_task(asyncio.to_thread(sign_up, server))
        await asyncio.sleep(0.5)
        stopped = asyncio.create_task(asyncio.to_thread(server.terminate))
        await asyncio.sleep(0.5)
        os.kill(engine_pid, signal.SIGCONT)
        answer = (await asyncio.gather(asked, return_exceptions=True))[0]
        # Cut off, it is answered by uvicorn's bare 500, or not at all.
        assert (isinstance(answer, httpx.Response) and answer.is_success) is is_answered, answer
        assert await stopped == 0


def sign_up(server: Server) -> httpx.Response:
    body = {"device_id": "a-device-of-a-visitor"}
    return httpx.post(f"{server.url}/api/players/guest", json=body, timeout=20)


async def test_maintenance_tells_clients_and_closes_them(start_server: StartServer) -> None:
    server = start_server()
    (host,) = players("host")
    game_id = a_game(host).game_id
    async with Client(host, [server], game_id, 0) as client:
        set_flags(maintenance_mode=True)
        await client.until(lambda: 1012 in client.close_codes, 30)
        kinds = [one["type"] for one in client.heard]
    assert kinds[1:3] == ["settings.changed", "notice"]


async def test_workers_share_one_port_and_a_dead_one_is_replaced(start_server: StartServer) -> None:
    server = start_server("--workers", "2")
    accounts = players(*(f"player{number}" for number in range(8)))
    game_id = a_game(accounts[0]).game_id
    async with Client(accounts[0], [server], game_id, 0) as client:
        for player in accounts[1:5]:
            assert (await asyncio.to_thread(post, server, f"{game_id}/join", player)).is_success
        await client.until_version(5)
        before = worker_pids(server)
        assert len(before) == 2
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(20):
            while len(worker_pids(server) - before) < 2:  # noqa: ASYNC110 (a state of the system)
                await asyncio.sleep(0.1)
        await client.until(lambda: client.connections == 2)
        assert (await client.ask("ping"))["type"] == "ok"
    assert await asyncio.to_thread(server.terminate) == 0
    assert worker_pids(server) == set()


def test_workers_without_redis_are_one_clear_line(table: None, tmp_path: Path) -> None:
    server = Server(server_environment(tmp_path), None, "--workers", "2")
    assert server.wait() == 1
    assert "2 workers need REDIS_URL" in server.output
    assert len(server.output.splitlines()) == 1
    server.close()


def worker_pids(server: Server) -> set[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(server.pid), "-f", "--", "--listener"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return {int(pid) for pid in found.stdout.split()}
