from types import SimpleNamespace

import pytest

from settings_singleton import middleware
from tests.fixtures import api, cheap_passwords

__all__ = ["api", "cheap_passwords", "frozen_minute"]


@pytest.fixture
def frozen_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute before the next one, in a minute that nobody has counted in."""
    global _minutes  # noqa: PLW0603 (one more for every test)
    _minutes += 1
    now = 1_800_036_030.0 + 60 * _minutes
    monkeypatch.setattr(middleware, "time", SimpleNamespace(time=lambda: now))


_minutes = 0
