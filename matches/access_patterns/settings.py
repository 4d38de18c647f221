"""Scenarios of the settings item, its history and the counters."""

import uuid

from matches.access_patterns.scenario import NOW, Call, Scenario
from settings_singleton.counters import COUNTERS
from settings_singleton.models import AuditRow, CounterShard, FlagsItem, read_flags
from settings_singleton.registry import FIRST, SETTINGS, Value

VALUES: dict[str, Value] = {name: getattr(FIRST, name) for name in SETTINGS}


def a_row(revision: int) -> AuditRow:
    """Return an unsaved row of the history."""
    return AuditRow.new(
        revision,
        before={"signup_enabled": True},
        after={"signup_enabled": False},
        values=VALUES,
        who="operator",
        why="Too many bots tonight",
        now=NOW,
    )


def create_settings() -> Call:
    return lambda: FlagsItem.create(1, VALUES, a_row(1))


def change_settings() -> Call:
    return lambda: FlagsItem.replace(1, {"signup_enabled": False}, a_row(2))


def read_settings() -> Call:
    return read_flags


def read_settings_history() -> Call:
    return lambda: AuditRow.latest(20)


def read_settings_revision() -> Call:
    return lambda: AuditRow.by_revision(1)


def read_counters() -> Call:
    return lambda: CounterShard.totals(COUNTERS)


def count() -> Call:
    token = str(uuid.uuid4())
    return lambda: CounterShard.add(COUNTERS[0], 0, 5, token)


# In this order: the first one writes what the others read and change.
SCENARIOS = (
    Scenario("create settings", create_settings),
    Scenario("change settings", change_settings),
    Scenario("read settings", read_settings),
    Scenario("read settings history", read_settings_history, "2 rows"),
    Scenario("read settings revision", read_settings_revision),
    Scenario("read counters", read_counters, "all counters, before any count"),
    Scenario("count", count),
)
