"""This process's copy of the settings: read in nanoseconds, kept fresh by one thread.

    from settings_singleton.cache import flags

    if flags.joining_enabled: ...

`flags` shows the values of a frozen snapshot, which the thread swaps by one assignment: no lock, no
await, no I/O, the same in sync and async code. Servers call `start()`; commands that only want
the values call `refresh_now()`; code that does neither gets a thread with its first read. What
holds when the table does not answer is in `FlagsCache`.
"""

import os
from typing import cast

from prometheus_client import Gauge

from settings_singleton import models
from settings_singleton.live import FlagsCache, Status
from settings_singleton.refresher import Refresher
from settings_singleton.registry import Flags
from settings_singleton.shapes import Snapshot

__all__ = [
    "Snapshot",
    "Status",
    "current",
    "flags",
    "forget",
    "override",
    "refresh_now",
    "request_refresh",
    "start",
    "status",
    "stop",
    "subscribe",
]

_cache = FlagsCache(models.read_flags)
_refresher = Refresher(_cache)

flags = cast(Flags, _cache.live)

start = _refresher.start
stop = _refresher.stop
request_refresh = _refresher.request_refresh
refresh_now = _cache.refresh
status = _cache.status
subscribe = _cache.subscribe
override = _cache.override
forget = _cache.forget

os.register_at_fork(after_in_child=_refresher.after_fork)


def current() -> Snapshot:
    """Return the whole frozen snapshot: values that belong together, and their revision."""
    return _cache.snapshot


Gauge("flags_revision", "Revision of the settings in this process").set_function(
    lambda: status().revision
)
Gauge("flags_age_seconds", "Time since the settings were last read; -1: never").set_function(
    lambda: -1.0 if (age := status().age_seconds) is None else age
)
