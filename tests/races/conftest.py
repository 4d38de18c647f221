"""Races over HTTP through more than one server process, and on engines that come and go."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from gameserver.engine import EmbeddedEngine
from gameserver.models import Item
from tests.conftest import empty_table
from tests.servers import Server, running_server, server_environment


@pytest.fixture(scope="module")
def two_servers(
    engine: EmbeddedEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """Two server processes on one table, which the models here see, too; a module shares them."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    with (
        empty_table(),
        running_server(environment_on_table(first)) as one,
        running_server(environment_on_table(second)) as other,
    ):
        yield one, other


@pytest.fixture
def point_models_at(table: None) -> Iterator[Callable[[str], None]]:
    """Let the models of this process use another engine; afterwards they are back on the run's."""
    url, shared = settings.DYNAMODB_ENDPOINT_URL, Item._shared

    def point(other: str) -> None:
        settings.DYNAMODB_ENDPOINT_URL = other
        Item._shared = None

    yield point
    settings.DYNAMODB_ENDPOINT_URL, Item._shared = url, shared


def environment_on_table(data_dir: Path) -> dict[str, str]:
    """The environment of a server on the table that the models of this process use."""
    return server_environment(
        data_dir,
        DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL,
        DYNAMODB_TABLE=settings.DYNAMODB_TABLE,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        SECRET_KEY=settings.SECRET_KEY,
    )
