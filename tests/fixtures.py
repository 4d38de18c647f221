"""What the root conftest.py offers besides processes: the API's client, steady Hypothesis."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import settings as hypothesis
from pytest_django import Settings

from gameserver import retries
from settings_singleton.testing import override_flags
from tests.builders import Api

# The same examples every time; `pytest --hypothesis-profile=explore` looks for others.
STEADY = hypothesis(derandomize=True, deadline=None, print_blob=True, database=None)
hypothesis.register_profile("steady", STEADY)
hypothesis.register_profile("explore", STEADY, derandomize=False)
hypothesis.load_profile("steady")


@pytest.fixture
def cheap_passwords(settings: Settings) -> None:
    """Hash in microseconds: argon2 takes a tenth of a second, on purpose."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
async def api(table: None, cheap_passwords: None) -> AsyncIterator[Api]:
    """A client of the API on an empty table, too fast for the usual rate limits."""
    api = Api()
    async with api.client:
        with override_flags(requests_per_minute=1_000_000):
            yield api


@pytest.fixture(autouse=True)
def racing_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test's threads race as if each was a process: none waits for another's turn."""
    monkeypatch.setattr(retries, "TURN_SECONDS", 0.0)
