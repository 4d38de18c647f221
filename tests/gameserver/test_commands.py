"""What all management commands on the table have in common."""

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
from django.core.management import CommandError, call_command
from django.test import override_settings

from gameserver import engine
from gameserver.commands import TableCommand

LEVELS = ("debug", "info", "warning", "error")


class Chatty(TableCommand):
    """Logs at every level, by both kinds of logger, between two lines for people."""

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("before")
        log_at_every_level()
        self.stdout.write("after")


class Failing(TableCommand):
    may_create_data = True

    def handle(self, *args: Any, **options: Any) -> None:
        raise CommandError("its own reason")


def log_at_every_level() -> None:
    for level in LEVELS:
        # A library may have set a level of its own.
        logger = logging.getLogger("tests.library")
        logger.setLevel(logging.DEBUG)
        getattr(logger, level)("theirs")
        getattr(structlog.get_logger("tests.ours"), level)("ours")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Log everything; return the levels of what was logged since the last call."""
    caplog.set_level(logging.DEBUG)

    def logged() -> list[str]:
        levels = [record.levelname for record in caplog.records if record.name.startswith("tests.")]
        caplog.clear()
        return levels

    return logged


def test_a_command_logs_warnings_and_errors_only(logged: Callable[[], list[str]]) -> None:
    out = io.StringIO()
    call_command(Chatty(), stdout=out)

    assert out.getvalue() == "before\nafter\n"
    assert logged() == ["WARNING"] * 2 + ["ERROR"] * 2


@pytest.mark.parametrize("command", [Chatty, Failing])
def test_the_process_that_ran_a_command_logs_as_before(
    logged: Callable[[], list[str]], command: type[TableCommand]
) -> None:
    try:
        call_command(command(), stdout=io.StringIO())
    except CommandError:
        assert command is Failing
    logged()
    log_at_every_level()

    assert logged() == [level.upper() for level in LEVELS for _ in range(2)]


def test_a_command_that_started_the_engine_fails_for_its_own_reason(
    tmp_path: Path,
) -> None:
    with (
        override_settings(DYNAMODB_ENDPOINT_URL=engine.EMBEDDED, DATA_DIR=tmp_path),
        pytest.raises(CommandError, match="its own reason"),
    ):
        call_command(Failing())
