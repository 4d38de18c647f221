"""Fixtures of the tests of games."""

from collections.abc import AsyncIterator

import pytest

from matches.consumers import realtime as running
from matches.consumers.realtime import Realtime


@pytest.fixture
async def realtime(table: None) -> AsyncIterator[Realtime]:
    """This test's own feeds and connections, ended with it."""
    yield running.current()
    await running.stop()
