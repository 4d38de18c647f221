"""What every test may ask for: an engine, an empty table, a server process, a Redis."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from gameserver.engine import EmbeddedEngine
from gameserver.models import Item
from gameserver.schema import create_table
from settings_singleton import counters
from settings_singleton.services import create_first_item
from settings_singleton.testing import fresh_flags, override_flags
from tests.faults.layer import clock, faults, pytest_sessionfinish
from tests.fixtures import api, cheap_passwords, racing_threads
from tests.servers import Server, running_redis, running_server, server_environment

__all__ = ["api", "cheap_passwords", "clock", "faults", "pytest_sessionfinish", "racing_threads"]


@pytest.fixture(scope="session")
def engine() -> Iterator[EmbeddedEngine]:
    """The run's engine, in memory; the models of this process talk to it."""
    with EmbeddedEngine() as running:
        settings.DYNAMODB_ENDPOINT_URL = os.environ["DYNAMODB_ENDPOINT_URL"] = running.url
        Item._shared = None
        yield running


@contextmanager
def empty_table() -> Iterator[None]:
    """Hold an empty table on the run's engine, all switches open and read from nowhere."""
    if Item.exists():
        Item.delete_table()
    create_table()
    with fresh_flags(), override_flags():
        yield
        # What a test counted belongs into its own table.
        counters.flush()


@pytest.fixture
def table(engine: EmbeddedEngine) -> Iterator[None]:
    """An empty table, all switches open and read from nowhere."""
    with empty_table():
        yield


@pytest.fixture
def stored_flags(table: None) -> None:
    """The settings' first item, in the table."""
    create_first_item(now=timezone.now())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A real server process with an engine of its own; the models here do not see its table."""
    with running_server(server_environment(tmp_path / "data")) as running:
        yield running


@pytest.fixture
def server_on_table(table: None, tmp_path: Path) -> Iterator[Server]:
    """A real server process on the test's own table, which the models here see, too."""
    environment = server_environment(
        tmp_path / "data",
        DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL,
        DYNAMODB_TABLE=settings.DYNAMODB_TABLE,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        SECRET_KEY=settings.SECRET_KEY,
    )
    with running_server(environment) as running:
        yield running


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """The URL of a redis-server of this run's own."""
    with running_redis() as url:
        yield url
