"""Processes of these tests: an engine that can be killed, and one server process of several."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from gameserver.engine import binary_path, free_port
from tests.servers import ROOT, Process, server_environment

DEADLINE_SECONDS = 30.0


class Table:
    """An engine on a fixed port that can be killed and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: Process | None = None

    def start(self) -> None:
        command = [str(binary_path()), "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--db-path", str(self._folder / "table.sqlite3")]
        self._process = Process(command, {})
        wait_until(lambda: is_listening(self.port))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()


class Worker(Process):
    """One server process as uvicorn starts it, without `manage.py serve` around it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "uvicorn", "gameserver.asgi:application"]
        super().__init__([*command, "--port", str(self.port)], environment)
        self.client = httpx.Client(base_url=self.url)

    def wait_until_it_listens(self) -> None:
        wait_until(lambda: is_listening(self.port))

    def is_ready(self) -> bool:
        return self.client.get("/readyz").status_code == 200

    @property
    def revision(self) -> int:
        """The settings' revision that it shows."""
        return int(self.client.get("/api/settings").json()["revision"])

    def close(self) -> None:
        self.client.close()
        super().close()


def environment(table: Table, folder: Path) -> dict[str, str]:
    return server_environment(
        folder,
        DYNAMODB_ENDPOINT_URL=table.url,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
    )


def manage(*arguments: str, environment: dict[str, str]) -> str:
    """Run a management command and return what it printed; fail if it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_until(condition: Callable[[], Any], seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
