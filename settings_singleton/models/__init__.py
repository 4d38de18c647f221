"""The settings item, its history, and the sharded counters, as they lie in the table."""

from settings_singleton.models.counters import COUNTER_SHARDS, CounterShard
from settings_singleton.models.flags import AuditRow, FlagsItem
from settings_singleton.models.raw import read_flags

__all__ = ["COUNTER_SHARDS", "AuditRow", "CounterShard", "FlagsItem", "read_flags"]
