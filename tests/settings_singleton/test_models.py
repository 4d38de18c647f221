"""The item, its history and the counters in a real table: every condition's losing side."""

from collections.abc import Mapping

import pytest
from pynamodb.expressions.operand import Path

from gameserver import capacity
from gameserver.models import ConditionFailed, transact
from settings_singleton.models import AuditRow, FlagsItem, raw
from settings_singleton.registry import FIRST, SETTINGS, Value
from settings_singleton.shapes import Shape, Snapshot, choose, decode_v1
from tests.builders import NOW
from tests.settings_singleton.items import an_item
from tests.settings_singleton.v2 import SHAPES, V1, V2

FIRST_VALUES: dict[str, Value] = {name: getattr(FIRST, name) for name in SETTINGS}


def a_row(revision: int, **after: Value) -> AuditRow:
    return AuditRow.new(
        revision,
        before={name: FIRST_VALUES[name] for name in after},
        after=after,
        values=FIRST_VALUES | after,
        who="olga",
        why="a test",
        now=NOW,
    )


def create(revision: int = 1) -> None:
    FlagsItem.create(revision, FIRST_VALUES, a_row(revision))


def read(shapes: tuple[Shape, ...] = (V1,)) -> Snapshot | None:
    return choose(raw.read_raw(shapes), shapes)


def replace(seen: int, *, shapes: tuple[Shape, ...] = (V1,), **changes: Value) -> None:
    before = AuditRow.by_revision(seen)
    row = a_row(seen + 1, **changes)
    row.values = (before.values if before else FIRST_VALUES) | changes
    FlagsItem.replace(seen, changes, row, shapes)


def test_the_item_is_read_by_one_strong_get_and_is_under_one_kilobyte(table: None) -> None:
    create()
    with capacity.measure() as cost:
        item: Mapping[str, object] = raw.read_flags()[V1.sk]

    assert cost.operations == ["GetItem"]
    # 1 RCU is up to 4 KB, read strongly.
    assert cost.read_units == 1
    assert len(str(item)) < 1_024


def test_the_model_has_an_attribute_for_every_setting() -> None:
    assert SETTINGS.keys() <= FlagsItem.get_attributes().keys()


def test_a_second_first_item_is_refused(table: None) -> None:
    create()
    replace(1, chat_enabled=False)

    with pytest.raises(ConditionFailed) as refused:
        create(2)

    assert "flags0" in refused.value
    snapshot = read()
    assert snapshot is not None
    assert not snapshot.chat_enabled


def test_a_change_sets_one_attribute_and_the_revision_and_writes_a_row(table: None) -> None:
    create()
    with capacity.measure() as cost:
        FlagsItem.replace(1, {"chat_enabled": False}, a_row(2, chat_enabled=False))

    assert cost.operations == ["TransactWriteItems"]
    assert cost.write_units == 4
    assert read() == decode_v1(an_item(2, chat_enabled=False))
    row = AuditRow.by_revision(2)
    assert row is not None
    assert (row.before, row.after) == ({"chat_enabled": True}, {"chat_enabled": False})
    assert (row.who, row.why, row.at_time) == ("olga", "a test", NOW)


def test_a_change_of_an_older_revision_is_refused_and_leaves_no_row(table: None) -> None:
    create()
    replace(1, chat_enabled=False)

    with pytest.raises(ConditionFailed) as refused:
        replace(1, joining_enabled=False)

    assert "flags0" in refused.value
    assert [row.revision for row in AuditRow.latest(10)] == [2, 1]


def test_a_row_is_never_written_over(table: None) -> None:
    create()
    row = a_row(1, chat_enabled=False)

    with pytest.raises(ConditionFailed) as refused:
        FlagsItem.replace(1, {"chat_enabled": False}, row)

    assert set(refused.value.failed) == {"row"}
    snapshot = read()
    assert snapshot is not None
    assert snapshot.chat_enabled


def test_a_change_keeps_attributes_that_this_release_does_not_know(table: None) -> None:
    create()
    item = FlagsItem.at(("SETTINGS#APP", V1.sk))
    later = Path(["tournaments_enabled"]).set(True)
    item.update([later])

    replace(1, chat_enabled=False)

    assert raw.read_flags()[V1.sk]["tournaments_enabled"] == {"BOOL": True}


def test_a_change_cannot_create_an_item_out_of_nothing(table: None) -> None:
    with pytest.raises(ConditionFailed):
        replace(0, chat_enabled=False)

    assert read() is None


def test_history_comes_newest_first_in_one_query(table: None) -> None:
    create()
    for seen in range(1, 12):
        replace(seen, win_reward_coins=seen)
    with capacity.measure() as cost:
        rows = AuditRow.latest(5)

    assert [row.revision for row in rows] == [12, 11, 10, 9, 8]
    assert cost.operations == ["Query"]


def test_during_a_move_a_change_is_written_in_both_shapes_at_once(table: None) -> None:
    create()

    replace(1, shapes=SHAPES, chat_enabled=False)
    replace(2, shapes=SHAPES, joining_enabled=False)

    items = raw.read_raw(SHAPES)
    assert V2.decode(items[V2.sk]) == decode_v1(items[V1.sk])
    assert V2.decode(items[V2.sk]).revision == 3
    assert not V2.decode(items[V2.sk]).joining_enabled


def test_during_a_move_an_old_servers_change_is_seen_and_taken_over(table: None) -> None:
    create()
    replace(1, shapes=SHAPES, chat_enabled=False)
    replace(2, shapes=(V1,), joining_enabled=False)

    seen = read(SHAPES)
    assert seen is not None
    assert (seen.revision, seen.joining_enabled, seen.chat_enabled) == (3, False, False)
    values = seen.values | {"win_reward_coins": 7}
    row = AuditRow.new(
        4, before={}, after={"win_reward_coins": 7}, values=values, who="olga", why="x", now=NOW
    )
    FlagsItem.replace(3, {"win_reward_coins": 7}, row, SHAPES)

    items = raw.read_raw(SHAPES)
    assert V2.decode(items[V2.sk]) == decode_v1(items[V1.sk])
    assert not V2.decode(items[V2.sk]).joining_enabled


def test_during_a_move_a_change_of_an_older_revision_is_refused_in_both(table: None) -> None:
    create()
    replace(1, shapes=SHAPES, chat_enabled=False)

    with pytest.raises(ConditionFailed):
        replace(1, shapes=SHAPES, joining_enabled=False)
    with pytest.raises(ConditionFailed):
        replace(1, shapes=(V1,), joining_enabled=False)

    snapshot = read(SHAPES)
    assert snapshot is not None
    assert snapshot.joining_enabled


def test_during_a_move_a_new_table_gets_both_shapes_and_can_be_changed(table: None) -> None:
    FlagsItem.create(1, FIRST_VALUES, a_row(1), SHAPES)

    replace(1, shapes=SHAPES, chat_enabled=False)

    items = raw.read_raw(SHAPES)
    assert V2.decode(items[V2.sk]) == decode_v1(items[V1.sk])
    assert not V2.decode(items[V2.sk]).chat_enabled


def test_during_a_move_a_shape_that_fell_behind_is_brought_up(table: None) -> None:
    """The newer one was edited by hand."""
    FlagsItem.create(1, FIRST_VALUES, a_row(1), SHAPES)
    edited = FlagsItem.at(("SETTINGS#APP", V2.sk))
    transact(flags=edited.change([FlagsItem.revision.set(5), Path(["win_reward_coins"]).set(7)]))
    seen = read(SHAPES)
    assert seen is not None
    assert (seen.revision, seen.win_reward_coins) == (5, 7)
    row = a_row(6, chat_enabled=False)
    row.values = seen.values | {"chat_enabled": False}

    FlagsItem.replace(5, {"chat_enabled": False}, row, SHAPES)

    items = raw.read_raw(SHAPES)
    assert V2.decode(items[V2.sk]) == decode_v1(items[V1.sk])
    assert V2.decode(items[V2.sk]).win_reward_coins == 7
