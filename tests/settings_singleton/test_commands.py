"""`manage.py flags`, for operators and their scripts."""

import io
import sys
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from gameserver.models import Item
from gameserver.table import flags_key
from settings_singleton import cache, services

pytestmark = pytest.mark.usefixtures("stored_flags")
Run = Callable[..., str]


@pytest.fixture
def run() -> Run:
    def run(*arguments: str) -> str:
        out = io.StringIO()
        call_command("flags", *arguments, stdout=out)
        return out.getvalue()

    return run


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sit at a terminal and answer every question with the same text."""

    def typed(answer: str) -> None:
        terminal = io.StringIO()
        terminal.isatty = lambda: True  # type: ignore[method-assign]  # a terminal
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr("builtins.input", lambda question: answer)

    return typed


def test_no_action_lists_every_setting_with_who_and_why(run: Run) -> None:
    run("set", "chat_enabled", "off", "--why", "Spam in every lobby", "--who", "olga")

    listed = run()

    assert listed == run("list")
    assert listed.startswith("Revision 2, changed 0 s ago by olga: Spam in every lobby\n")
    line = next(line for line in listed.splitlines() if line.startswith("chat_enabled"))
    assert line.split(maxsplit=2) == ["chat_enabled", "off", "0 s ago, olga: Spam in every lobby"]
    assert "create_table: First values" in listed


def test_a_missing_item_is_listed_as_safe_defaults(run: Run) -> None:
    Item.delete_one(flags_key())

    listed = run("list")

    assert "safe defaults hold" in listed
    assert "maintenance_mode         on" in listed


def test_a_harmless_change_asks_nothing(run: Run) -> None:
    said = run("set", "message_of_the_day", "Cup on Sunday", "--why", "The cup")

    assert said == "message_of_the_day:  -> Cup on Sunday (revision 2)\n"
    assert cache.current().message_of_the_day == "Cup on Sunday"


@pytest.mark.parametrize(("name", "to"), [("joining_enabled", "off"), ("maintenance_mode", "on")])
def test_a_kill_asks_nothing(run: Run, typed: Callable[[str], None], name: str, to: str) -> None:
    typed("a wrong answer")

    assert f"-> {to} (revision 2)" in run("set", name, to, "--why", "Cheaters")


def test_a_dangerous_change_asks_for_the_settings_name(
    run: Run, typed: Callable[[str], None]
) -> None:
    typed("ai_search_enabled")

    assert "off -> on" in run("set", "ai_search_enabled", "on", "--why", "We pay")


def test_a_wrong_answer_changes_nothing(run: Run, typed: Callable[[str], None]) -> None:
    typed("yes")

    with pytest.raises(CommandError, match="Nothing was changed"):
        run("set", "ai_search_enabled", "on", "--why", "We pay")

    assert len(services.history()) == 1


def test_a_script_needs_yes_for_a_dangerous_change(run: Run) -> None:
    # A script may kill as it is.
    assert "off -> on" in run("set", "maintenance_mode", "on", "--why", "Database move")

    with pytest.raises(CommandError, match="needs --yes"):
        run("set", "maintenance_mode", "off", "--why", "Done")

    assert cache.current().maintenance_mode
    assert "on -> off" in run("set", "maintenance_mode", "off", "--why", "Done", "--yes")


def test_setting_what_is_set_already_says_so(run: Run) -> None:
    said = run("set", "chat_enabled", "on", "--why", "Just to be sure")

    assert said == "Nothing to change (revision 1).\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "chat", "off", "--why", "x"), "There is no setting 'chat'"),
        (("set", "chat_enabled", "maybe", "--why", "x"), "must be on or off"),
        (("set", "win_reward_coins", "-5", "--why", "x"), "whole number"),
        (("set", "chat_enabled", "off", "--why", " "), "Say why"),
        (("rollback", "77", "--why", "x"), "no revision 77"),
    ],
)
def test_a_mistake_is_one_clear_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*arguments)

    assert len(services.history()) == 1


def test_a_change_needs_why(run: Run) -> None:
    with pytest.raises(CommandError, match="--why"):
        run("set", "chat_enabled", "off")


def test_history_shows_the_newest_first_with_both_values(run: Run) -> None:
    run("set", "win_reward_coins", "50", "--why", "Inflation", "--who", "olga")
    run("set", "win_reward_coins", "60", "--why", "Too much", "--who", "otto", "--yes")

    lines = run("history", "--limit", "2").splitlines()

    assert lines[0].endswith("UTC  otto: Too much")
    assert lines[1].strip() == "win_reward_coins: 50 -> 60"
    assert lines[2].endswith("UTC  olga: Inflation")
    assert len(lines) == 4


def test_rollback_brings_a_revision_back_and_asks_where_that_is_dangerous(
    run: Run, typed: Callable[[str], None]
) -> None:
    run("set", "win_reward_coins", "50", "--why", "Inflation")
    typed("win_reward_coins")

    said = run("rollback", "1", "--why", "Players are angry", "--who", "otto")

    assert said == "win_reward_coins: 50 -> 100 (revision 3)\n"
    assert "otto: Rollback to 1: Players are angry" in run("history")


def test_a_script_needs_yes_for_a_dangerous_rollback(run: Run) -> None:
    run("set", "win_reward_coins", "50", "--why", "Inflation")

    with pytest.raises(CommandError, match="needs --yes"):
        run("rollback", "1", "--why", "Players are angry")

    run("rollback", "1", "--why", "Players are angry", "--yes")
    assert cache.current().win_reward_coins == 100
