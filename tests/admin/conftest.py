"""Operators of every kind, and a table to look at."""

import pytest
from pytest_django import Settings

from tests.admin.operators import Operator, an_operator


@pytest.fixture(autouse=True)
def _empty(db: None, table: None, settings: Settings) -> None:
    """Start each test with an empty table and staff database; hash passwords in microseconds."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def boss() -> Operator:
    """A superuser."""
    return an_operator("boss", is_superuser=True)


@pytest.fixture
def viewer() -> Operator:
    """Staff who may see everything and change nothing."""
    return an_operator(
        "viewer",
        "players.view_player",
        "matches.view_game",
        "settings_singleton.view_setting",
        "gameserver.view_partition",
        "gameserver.view_dashboard",
    )


@pytest.fixture
def nobody() -> Operator:
    """Staff without a single permission."""
    return an_operator("nobody")


@pytest.fixture
def anonymous() -> Operator:
    """A browser that is not signed in."""
    return Operator()
