"""Real processes for tests: the server through `manage.py serve`, and Debian's redis-server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from gameserver.engine import free_port

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_SECONDS = 30.0
POLL_SECONDS = 0.02


class Process:
    """A child process whose output is kept, for assertions and for failure messages."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._output = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
        self._popen = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def output(self) -> str:
        # pread: the child writes at the offset that seeking would move.
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    def poll(self) -> int | None:
        return self._popen.poll()

    def wait(self) -> int:
        """Return the exit code; fail with the output if the process does not end."""
        try:
            return self._popen.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the process did not end:\n{self.output}") from None

    def terminate(self) -> int:
        """Send SIGTERM and return the exit code."""
        self._popen.send_signal(signal.SIGTERM)
        return self.wait()

    def interrupt(self) -> int:
        """Send SIGINT, as Ctrl-C does, and return the exit code."""
        self._popen.send_signal(signal.SIGINT)
        return self.wait()

    def kill(self) -> int:
        """Send SIGKILL and return the exit code."""
        self._popen.kill()
        return self._popen.wait(DEADLINE_SECONDS)

    def close(self) -> None:
        """End the process if it still runs, and let its output go."""
        if self.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._output.close()


class Server(Process):
    """`manage.py serve` on a free port; `url` has no slash at its end."""

    def __init__(
        self, environment: Mapping[str, str], port: int | None = None, *options: str
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = Path(environment["DATA_DIR"])
        command = [sys.executable, "manage.py", "serve", "--port", str(self.port), *options]
        super().__init__(command, environment)

    @property
    def engine_pid(self) -> int:
        """Process id of its embedded engine."""
        return int(json.loads((self.data_dir / "engine.json").read_text())["pid"])

    def wait_until_ready(self) -> None:
        """Wait until /readyz answers 200; fail with the output if it does not."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        with httpx.Client(base_url=self.url, timeout=5) as client:
            while time.monotonic() < deadline:
                if self.poll() is not None:
                    raise AssertionError(f"the server ended with {self.poll()}:\n{self.output}")
                try:
                    if client.get("/readyz").status_code == 200:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(POLL_SECONDS)
        raise AssertionError(f"the server is not ready:\n{self.output}")


def server_environment(data_dir: Path, **changes: str) -> dict[str, str]:
    """The environment of a server with an engine of its own in `data_dir`, as `make run` has it."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in {"HOME", "LANG", "PATH", "VIRTUAL_ENV"}
    }
    return {
        **inherited,
        # Not the development that `.env` belongs to.
        "ENVIRONMENT": "test",
        "DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "gameserver.settings",
        "PYTHONUNBUFFERED": "1",
        **changes,
    }


@contextmanager
def running_server(environment: Mapping[str, str], *options: str) -> Iterator[Server]:
    """Run a server and wait until it is ready; end it afterwards."""
    server = Server(environment, None, *options)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.close()


@contextmanager
def running_redis() -> Iterator[str]:
    """Run a redis-server that keeps nothing on disk; give its URL."""
    binary = shutil.which("redis-server")
    assert binary, "redis-server is missing: make test installs it"
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [binary, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        redis = Process([*command, "--save", "", "--appendonly", "no"], os.environ)
        try:
            _wait_for_redis(redis, port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            redis.close()


def _wait_for_redis(process: Process, port: int) -> None:
    from redis import Redis
    from redis.exceptions import ConnectionError as NoConnection

    deadline = time.monotonic() + DEADLINE_SECONDS
    with Redis(port=port) as client:
        while time.monotonic() < deadline and process.poll() is None:
            try:
                client.ping()
            except NoConnection:
                time.sleep(POLL_SECONDS)
            else:
                return
    raise AssertionError(f"redis-server does not answer:\n{process.output}")
