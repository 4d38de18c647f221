"""Fixtures of the HTTP tests; the conftest.py of each package that has some imports them."""

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from settings_singleton.testing import override_flags
from tests.builders import Api


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
