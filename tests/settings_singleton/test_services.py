"""Checking, changing and bringing back settings, alone and against other operators."""

import random
from datetime import timedelta
from itertools import pairwise

import pytest
from pynamodb.expressions.operand import Path

from gameserver import hints
from gameserver.errors import FeatureDisabled, GameServerError, TryAgain, ValidationFailed
from gameserver.models import Item, transact
from gameserver.table import flags_key
from settings_singleton import cache, services
from settings_singleton.cache import flags
from settings_singleton.errors import (
    NoSuchRevision,
    SettingChangedMeanwhile,
    SettingsItemMissing,
    WhyNeeded,
)
from settings_singleton.models import AuditRow, FlagsItem
from settings_singleton.registry import SETTINGS, Value
from settings_singleton.services import Change
from settings_singleton.testing import override_flags
from tests.builders import NOW
from tests.races.threads import at_once, codes
from tests.settings_singleton.faults import losing_answers

pytestmark = pytest.mark.usefixtures("stored_flags")


def change(**changes: Value) -> Change:
    return services.change(changes, who="olga", why="a test", now=NOW)


def stored_values() -> dict[str, Value]:
    snapshot = services.read_now()
    assert snapshot is not None
    return snapshot.values


def test_a_switch_that_is_off_refuses_with_its_name_and_when_to_ask_again() -> None:
    with override_flags(joining_enabled=False), pytest.raises(FeatureDisabled) as refused:
        services.require_flag("joining_enabled")

    assert refused.value.extra == {"flag": "joining_enabled", "retry_after": 60}
    services.require_flag("joining_enabled")


def test_the_first_item_is_written_once() -> None:
    change(chat_enabled=False)

    assert not services.create_first_item(NOW)

    assert stored_values()["chat_enabled"] is False


def test_many_who_create_the_first_item_make_one() -> None:
    Item.delete_one(flags_key())
    Item.delete_one(("SETTINGS#APP", "AUDIT#FLAGS#000000000001"))

    created = at_once(*[lambda: services.create_first_item(NOW)] * 8)

    assert created.count(True) == 1


def test_an_item_that_was_deleted_is_made_anew_with_a_higher_revision() -> None:
    change(chat_enabled=False)
    Item.delete_one(flags_key())

    assert services.create_first_item(NOW)

    snapshot = services.read_now()
    assert snapshot is not None
    assert (snapshot.revision, snapshot.chat_enabled) == (3, True)


def test_a_change_holds_at_once_in_the_process_that_made_it() -> None:
    done = change(signup_enabled=False)

    assert done == Change(2, before={"signup_enabled": True}, after={"signup_enabled": False})
    assert not flags.signup_enabled
    assert cache.status().revision == 2


def test_a_change_is_hinted_after_the_write() -> None:
    heard: list[tuple[hints.Hint, object]] = []
    stop = hints.listen(lambda hint: heard.append((hint, stored_values()["chat_enabled"])))

    change(chat_enabled=False)

    stop()
    assert heard == [(hints.SettingsChanged(2), False)]


def test_who_when_why_and_both_values_are_kept() -> None:
    """D-05"""
    change(win_reward_coins=250)

    row = services.history(1)[0]

    assert (row.before, row.after) == ({"win_reward_coins": 100}, {"win_reward_coins": 250})
    assert (row.who, row.why) == ("olga", "a test")
    assert row.at_time == NOW
    assert row.at_time.utcoffset() == timedelta(0)


def test_setting_what_is_set_already_writes_nothing() -> None:
    assert change(chat_enabled=True) == Change(1, before={}, after={})

    assert len(services.history()) == 1


def test_a_change_mends_an_unusable_value_even_to_the_same_meaning() -> None:
    broken = Path(["joining_enabled"]).set("off")
    transact(flags=FlagsItem.at(flags_key()).change([broken]))
    assert stored_values()["joining_enabled"] is False

    change(joining_enabled=False)

    snapshot = services.read_now()
    assert snapshot is not None
    assert snapshot.defects == ()


@pytest.mark.parametrize("why", ["", "   ", "x" * 501])
def test_a_change_needs_a_reason(why: str) -> None:
    with pytest.raises(WhyNeeded):
        services.change({"chat_enabled": False}, who="olga", why=why, now=NOW)


def test_a_change_of_an_unknown_setting_or_value_writes_nothing() -> None:
    with pytest.raises(ValidationFailed):
        change(chat_enabled=False, tea_enabled=True)
    with pytest.raises(ValidationFailed):
        change(chat_enabled=False, win_reward_coins=-1)

    assert len(services.history()) == 1


def test_without_an_item_there_is_nothing_to_change() -> None:
    Item.delete_one(flags_key())

    with pytest.raises(SettingsItemMissing):
        change(chat_enabled=False)


def test_two_operators_who_change_different_settings_both_win() -> None:
    """F-08: both forms were opened before either was saved."""
    seen = stored_values()
    for name, value in [("chat_enabled", False), ("win_reward_coins", 5)]:
        services.change({name: value}, who=name, why="a test", now=NOW, seen={name: seen[name]})

    assert not flags.chat_enabled
    assert flags.win_reward_coins == 5
    assert [row.who for row in services.history(2)] == ["win_reward_coins", "chat_enabled"]


def test_an_operator_whose_setting_was_changed_meanwhile_is_told_so() -> None:
    """F-08"""
    seen = {"win_reward_coins": 100}
    change(win_reward_coins=5)

    with pytest.raises(SettingChangedMeanwhile, match="to '5' meanwhile") as refused:
        services.change({"win_reward_coins": 7}, who="otto", why="a test", now=NOW, seen=seen)

    assert refused.value.extra == {"setting": "win_reward_coins", "current": "5"}
    assert flags.win_reward_coins == 5


def test_who_wants_what_another_operator_just_did_is_content() -> None:
    seen = {"chat_enabled": True}
    change(chat_enabled=False)

    done = services.change({"chat_enabled": False}, who="otto", why="too", now=NOW, seen=seen)

    assert done.after == {}


@pytest.mark.parametrize("round_number", range(5))
def test_concurrent_flips_of_different_switches_are_all_done(round_number: int) -> None:
    names = [name for name, each in SETTINGS.items() if each.is_switch and each.first]

    answers = at_once(
        *[lambda name=name: change(**{name: False}) for name in names],
        chance=random.Random(round_number),
        within=0.005,
    )

    assert codes(answers) == ["ok"] * len(names)
    values = stored_values()
    assert [values[name] for name in names] == [False] * len(names)
    rows = services.history(50)
    assert [row.revision for row in rows] == list(range(len(names) + 1, 0, -1))
    assert {name for row in rows[:-1] for name in row.after} == set(names)


def test_concurrent_changes_of_one_setting_leave_a_whole_history() -> None:
    """A value that somebody else wrote in between is shown, never written over unseen."""
    answers = at_once(*[lambda coins=coins: change(win_reward_coins=coins) for coins in range(6)])

    done = [answer for answer in answers if isinstance(answer, Change)]
    refused = [answer for answer in answers if isinstance(answer, GameServerError)]
    assert done
    assert {error.code for error in refused} <= {"setting_changed", "try_again"}
    rows = services.history(50)
    assert len(rows) == len(done) + 1
    for newer, older in pairwise(rows):
        assert newer.before == {"win_reward_coins": older.values["win_reward_coins"]}
    assert stored_values()["win_reward_coins"] == rows[0].after["win_reward_coins"]


def test_five_lost_races_in_a_row_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    others = iter(range(100))
    send = FlagsItem.replace

    def overtaken(seen: int, changes: dict[str, Value], row: AuditRow) -> None:
        other = AuditRow.new(
            seen + 1,
            before={},
            after={"requests_per_minute": 100 + next(others)},
            values={},
            who="otto",
            why="faster",
            now=NOW,
        )
        send(seen, other.after, other)
        send(seen, changes, row)

    monkeypatch.setattr(FlagsItem, "replace", overtaken)
    pauses: list[float] = []

    with pytest.raises(TryAgain):
        services.change(
            {"chat_enabled": False}, who="olga", why="slow", now=NOW, pause=pauses.append
        )

    assert len(pauses) == 5
    assert stored_values()["chat_enabled"] is True


def test_a_change_whose_answer_is_lost_is_done_once() -> None:
    with losing_answers("TransactWriteItems") as lost:
        done = change(chat_enabled=False)

    assert lost.operations == ["TransactWriteItems"]
    assert done.revision == 2
    assert [row.revision for row in services.history()] == [2, 1]


def test_concurrent_flips_whose_answers_are_lost_are_each_done_once() -> None:
    names = ["signup_enabled", "chat_enabled", "joining_enabled"]
    with losing_answers("TransactWriteItems") as lost:
        answers = at_once(*[lambda name=name: change(**{name: False}) for name in names])

    assert codes(answers) == ["ok"] * 3
    assert len(lost.operations) >= 3
    assert len(services.history()) == 4
    assert not any(stored_values()[name] for name in names)


def test_a_rollback_brings_all_values_back_as_a_new_revision() -> None:
    change(chat_enabled=False, win_reward_coins=5)
    change(joining_enabled=False)

    done = services.rollback(1, who="otto", why="wrong button", now=NOW)

    assert done.revision == 4
    assert done.after == {"chat_enabled": True, "win_reward_coins": 100, "joining_enabled": True}
    assert flags.joining_enabled
    assert services.history(1)[0].why == "Rollback to 1: wrong button"


def test_a_rollback_can_be_rolled_back() -> None:
    change(chat_enabled=False)
    services.rollback(1, who="otto", why="wrong", now=NOW)

    services.rollback(2, who="otto", why="right after all", now=NOW)

    assert not flags.chat_enabled


def test_a_rollback_to_an_unknown_revision_is_refused() -> None:
    with pytest.raises(NoSuchRevision):
        services.rollback(9, who="otto", why="typo", now=NOW)


def test_an_item_that_was_set_back_by_hand_can_still_be_changed() -> None:
    change(chat_enabled=False)
    change(chat_enabled=True)
    FlagsItem.at(flags_key()).update([FlagsItem.revision.set(1)])

    done = change(joining_enabled=False)

    assert done.revision == 4
    assert stored_values()["joining_enabled"] is False
