"""Two server processes on one table and one Redis of their own."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from gameserver.engine import free_port
from settings_singleton import services
from tests.builders import NOW, APlayer
from tests.servers import Process, Server, _wait_for_redis, running_server, server_environment


class Redis:
    """A redis-server that can be killed and started again at the same address."""

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
    with ExitStack() as stack:

        def start(*options: str, **environment: str) -> Server:
            folder = tmp_path / f"server{len(list(tmp_path.iterdir()))}"
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


@pytest.fixture
def two_servers(start_server: StartServer) -> list[Server]:
    return [start_server(), start_server()]
