"""Races over HTTP through more than one server process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.servers import Server, running_server, server_environment


@pytest.fixture
def two_servers(server_on_table: Server, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two server processes on the test's own table."""
    environment = server_environment(
        tmp_path / "second",
        DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL,
        DYNAMODB_TABLE=settings.DYNAMODB_TABLE,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        SECRET_KEY=settings.SECRET_KEY,
    )
    with running_server(environment) as second:
        yield server_on_table, second
