"""Two server processes on one table and one Redis of their own."""

import itertools
import os
import re
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis as redis_py
from django.conf import settings

from gameserver.engine import free_port
from settings_singleton import services
from tests.builders import NOW, APlayer
from tests.servers import Process, Server, _wait_for_redis, running_server, server_environment


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Hold a process still: it keeps its connections, and answers none of them."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Redis:
    """A redis-server that can fill up, hang, or be killed and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port)]
        self._command += ["--dir", str(folder), "--save", "", "--appendonly", "no"]
        self.start()

    def start(self) -> None:
        self._process = Process(self._command, {"PATH": "/usr/bin:/bin:/usr/local/bin"})
        _wait_for_redis(self._process, self.port)

    def kill(self) -> None:
        self._process.kill()
        self._process.close()

    def close(self) -> None:
        self._process.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *command: str | int) -> Any:
        """Send one command on a connection of its own."""
        with redis_py.Redis(port=self.port, decode_responses=True) as client:
            return client.execute_command(*command)

    @property
    def clients(self) -> int:
        """How many connections it has, but for the one that asks."""
        return int(self.ask("INFO", "clients")["connected_clients"]) - 1

    @property
    def channels(self) -> set[str]:
        """What anybody is subscribed to."""
        return set(self.ask("PUBSUB", "CHANNELS"))

    @contextmanager
    def full(self) -> Iterator[None]:
        """Hold twice what it may, so that it refuses whatever needs memory; then free it."""
        for number in range(8):
            self.ask("SET", f"ballast{number}", "x" * 1_000_000)
        self.ask("CONFIG", "SET", "maxmemory", 4_000_000)
        for is_after in (False, True):
            with pytest.raises(redis_py.exceptions.OutOfMemoryError):
                self.ask("SET", "one more", "")
            if not is_after:
                yield
        self.ask("DEL", *(f"ballast{number}" for number in range(8)))


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    redis = Redis(tmp_path)
    yield redis
    redis.close()


StartServer = Callable[..., Server]


def metric(server: Server, name: str) -> float:
    """Read one of a server's metrics; 0 if it has none of this name."""
    text = httpx.get(f"{server.url}/metrics", timeout=10).text
    found = re.search(rf"^{name} (\S+)", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def post(server: Server, path: str, by: APlayer) -> httpx.Response:
    """Send an empty POST about a game."""
    return httpx.post(f"{server.url}/api/games/{path}", headers=by.headers, timeout=10)


def set_flags(**values: object) -> None:
    """Change settings in the table; a server that runs sees it within 12 seconds."""
    services.change(values, who="test", why="test", now=datetime.now(UTC))


@pytest.fixture
def start_server(table: None, redis: Redis, tmp_path: Path) -> Iterator[StartServer]:
    """Start server processes on the test's table and Redis; environment variables by name."""
    services.create_first_item(now=NOW)
    numbers = itertools.count()
    with ExitStack() as stack:

        def start(*options: str, **environment: str) -> Server:
            folder = tmp_path / f"server{next(numbers)}"
            whole = server_environment(
                folder,
                DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL,
                DYNAMODB_TABLE=settings.DYNAMODB_TABLE,
                AWS_ACCESS_KEY_ID="local",
                AWS_SECRET_ACCESS_KEY="local",
                SECRET_KEY=settings.SECRET_KEY,
                REDIS_URL=redis.url,
                **environment,
            )
            return stack.enter_context(running_server(whole, *options))

        yield start


def start_at_once(start_server: StartServer, count: int) -> list[Server]:
    """Start several servers in the time of one, if there are cores enough."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: start_server(), range(count)))


@pytest.fixture
def two_servers(start_server: StartServer) -> list[Server]:
    return start_at_once(start_server, 2)
