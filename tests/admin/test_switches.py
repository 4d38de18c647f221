"""Operators on the switches: see, flip, kill, roll back, and two of them at once."""

from typing import Any

import pytest
from django.contrib.admin.utils import quote

from gameserver import hints
from settings_singleton import services
from settings_singleton.models import AuditRow
from tests.admin.operators import SWITCHES, Operator, admin_log, an_operator

pytestmark = pytest.mark.usefixtures("stored_flags")

JOINING = f"{SWITCHES}joining_enabled/change/"


def value(name: str) -> object:
    current = services.read_now()
    assert current is not None
    return current.values[name]


def flip(
    operator: Operator, name: str, to: str, *, seen: int = 1, typed: str = "", why: str = "Testing"
) -> Any:
    path = f"{SWITCHES}{name}/change/?to={to}"
    return operator.post(path, reason=why, seen=str(seen), names=typed)


def test_the_page_shows_value_safe_value_revision_and_who_changed_it_why(boss: Operator) -> None:
    flip(boss, "joining_enabled", "off", why="Bots")
    page = boss.page(SWITCHES)
    for text in ("joining_enabled", "Revision 2", "boss: Bots", "revision 2", "create_table"):
        assert text in page


def test_a_flip_shows_the_difference_then_writes_it_with_its_reason(boss: Operator) -> None:
    page = boss.page(JOINING, to="off")
    assert "<del>on</del>" in page
    assert "<ins>off</ins>" in page
    assert value("joining_enabled") is True
    given: list[hints.Hint] = []
    stop = hints.listen(given.append)
    response = flip(boss, "joining_enabled", "off", why="Bots")
    stop()
    assert response.status_code == 302
    assert value("joining_enabled") is False
    assert hints.SettingsChanged(2) in given
    (row,) = AuditRow.latest(1)
    assert (row.who, row.why) == ("boss", "Bots")
    assert admin_log() == [
        ("boss", "joining_enabled", "joining_enabled: on → off (revision 2). Reason: Bots")
    ]


@pytest.mark.parametrize("typed", ["", "search", "AI_SEARCH_ENABLED", "signup_enabled"])
def test_opening_needs_the_name_typed_out(boss: Operator, typed: str) -> None:
    search = "ai_search_enabled"
    assert f"Type {search} to confirm" in boss.page(f"{SWITCHES}{search}/change/", to="on")
    assert flip(boss, search, "on", typed=typed).status_code == 422
    assert value(search) is False
    assert flip(boss, search, "on", typed=search).status_code == 302
    assert value(search) is True


def test_ending_maintenance_needs_the_name_typed_out(boss: Operator) -> None:
    boss.post(f"{SWITCHES}maintenance_mode/kill/")
    assert flip(boss, "maintenance_mode", "off", seen=2).status_code == 422
    assert value("maintenance_mode") is True
    response = flip(boss, "maintenance_mode", "off", seen=2, typed="maintenance_mode")
    assert response.status_code == 302
    assert value("maintenance_mode") is False


@pytest.mark.parametrize(("name", "to"), [("joining_enabled", "off"), ("maintenance_mode", "on")])
def test_the_safe_direction_needs_only_a_reason(boss: Operator, name: str, to: str) -> None:
    before = value(name)
    assert "to confirm" not in boss.page(f"{SWITCHES}{name}/change/", to=to)
    assert flip(boss, name, to, why="").status_code == 422
    assert value(name) is before
    assert flip(boss, name, to).status_code == 302
    assert value(name) is not before


@pytest.mark.parametrize(("name", "safe"), [("joining_enabled", False), ("maintenance_mode", True)])
def test_one_click_kills_in_the_safe_direction(boss: Operator, name: str, safe: bool) -> None:
    assert f"{quote(name)}/kill/" in boss.page(SWITCHES)
    assert boss.post(f"{SWITCHES}{name}/kill/").status_code == 302
    assert value(name) is safe
    assert f"{quote(name)}/kill/" not in boss.page(SWITCHES)
    assert admin_log()[0][1] == name
    assert "Killed by one click" in admin_log()[0][2]


def test_killing_twice_changes_once(boss: Operator) -> None:
    for _ in range(2):
        boss.post(f"{SWITCHES}joining_enabled/kill/")
    assert len(admin_log()) == 1
    assert int(AuditRow.latest(1)[0].revision) == 2


def test_only_switches_can_be_killed(boss: Operator) -> None:
    assert boss.post(f"{SWITCHES}win_reward_coins/kill/").status_code == 404
    assert boss.post(f"{SWITCHES}no_such_setting/kill/").status_code == 404
    assert boss.get(f"{SWITCHES}no_such_setting/change/").status_code == 404


def test_a_concurrent_flip_of_the_same_switch_is_shown_not_overwritten(boss: Operator) -> None:
    other = an_operator("other", is_superuser=True)
    for operator in (boss, other):
        assert operator.get(f"{SWITCHES}win_reward_coins/change/", to="50").status_code == 200
    flip(other, "win_reward_coins", "70", why="Event")
    response = flip(boss, "win_reward_coins", "50")
    assert response.status_code == 409
    page = response.content.decode()
    for text in ("Somebody else changed", "other: Event", "<del>70</del>", "<ins>50</ins>"):
        assert text in page
    assert value("win_reward_coins") == 70
    # Now the page was drawn anew, he may insist.
    assert 'name="seen" value="2"' in page
    flip(boss, "win_reward_coins", "50", seen=2)
    assert value("win_reward_coins") == 50


def test_a_concurrent_flip_of_another_switch_does_not_disturb(boss: Operator) -> None:
    other = an_operator("other", is_superuser=True)
    flip(other, "chat_enabled", "off")
    flip(boss, "win_reward_coins", "50", seen=1)
    assert (value("chat_enabled"), value("win_reward_coins")) == (False, 50)


def test_two_operators_who_want_the_same_both_succeed(boss: Operator) -> None:
    other = an_operator("other", is_superuser=True)
    for operator in (boss, other):
        response = flip(operator, "win_reward_coins", "50")
        assert response.status_code == 302
    assert int(AuditRow.latest(1)[0].revision) == 2


@pytest.mark.parametrize("to", ["", "maybe", "1000001", "-1", "1.5"])
def test_a_value_that_is_not_allowed_is_refused_with_what_is(boss: Operator, to: str) -> None:
    response = boss.get(f"{SWITCHES}win_reward_coins/change/", to=to)
    assert response.status_code == 422
    assert "a whole number from 0 to 1000000" in response.content.decode()


def test_texts_can_be_set_and_emptied(boss: Operator) -> None:
    flip(boss, "message_of_the_day", "Hello <b>players</b>")
    assert value("message_of_the_day") == "Hello <b>players</b>"
    assert "<b>players" not in boss.page(SWITCHES)
    flip(boss, "message_of_the_day", "", seen=2)
    assert value("message_of_the_day") == ""


def test_the_history_shows_changes_and_rolls_back_with_a_reason(boss: Operator) -> None:
    flip(boss, "joining_enabled", "off", why="Bots")
    flip(boss, "win_reward_coins", "50", seen=2, why="Event")
    page = boss.page(f"{SWITCHES}revisions/")
    for text in ("joining_enabled: on → off", "win_reward_coins: 100 → 50", "Bots", "Event"):
        assert text in page
    rollback = f"{SWITCHES}revisions/1/"
    page = boss.page(rollback)
    assert "win_reward_coins" in page
    # Both go their dangerous way: joining opens, a win pays more.
    names = "joining_enabled win_reward_coins"
    assert f"Type {names} to confirm" in page
    form = {"reason": "Event over", "seen": "3"}
    for typed in ("", "win_reward_coins"):
        assert boss.post(rollback, **form, names=typed).status_code == 422
    assert boss.post(rollback, **form, names=names).status_code == 302
    assert (value("joining_enabled"), value("win_reward_coins")) == (True, 100)
    (row,) = AuditRow.latest(1)
    assert (int(row.revision), row.why) == (4, "Rollback to 1: Event over")
    assert {name for _, name, _ in admin_log()[:2]} == {"joining_enabled", "win_reward_coins"}


def test_a_rollback_does_not_overwrite_what_came_in_between(boss: Operator) -> None:
    flip(boss, "win_reward_coins", "50")
    boss.page(f"{SWITCHES}revisions/1/")
    other = an_operator("other", is_superuser=True)
    flip(other, "win_reward_coins", "70", seen=2, typed="win_reward_coins")
    form = {"reason": "Event over", "seen": "2", "names": "win_reward_coins"}
    assert boss.post(f"{SWITCHES}revisions/1/", **form).status_code == 409
    assert value("win_reward_coins") == 70


def test_a_revision_that_is_not_there_is_a_404(boss: Operator) -> None:
    assert boss.get(f"{SWITCHES}revisions/99/").status_code == 404


def test_each_setting_has_its_log(boss: Operator) -> None:
    boss.post(f"{SWITCHES}chat_enabled/kill/")
    assert "on → off (revision 2)" in boss.page(f"{SWITCHES}chat_enabled/history/")
