"""This process's copy of the settings: read in nanoseconds, kept fresh by one thread.

    from settings_singleton.cache import flags

    if flags.joining_enabled: ...

`flags` reads the attribute of a frozen snapshot that the thread swaps by one assignment: no lock,
no await, no I/O. What happens when the table does not answer is `FlagsCache`'s docstring.
"""

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

import structlog
from prometheus_client import Counter, Gauge

from settings_singleton import models
from settings_singleton.registry import FIRST, SETTINGS, Flags, RawItem, Value
from settings_singleton.shapes import SHAPES, Shape, Snapshot, choose, with_values

POLL_SECONDS = 10.0
JITTER = 0.2
# The longest pause, both time-outs, and a little for a busy process.
STALE_AFTER_SECONDS = 15.0
FIRST_RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0

REFRESHES = Counter("flags_refreshes_total", "Reads of the settings item", ["outcome"])
ALARMS = Counter("flags_alarms_total", "Settings that an operator should look at", ["reason"])

Listener = Callable[[Snapshot, Snapshot], None]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Status:
    """How good this process's copy is; for health pages.

    `source` is `table`, or `defaults` while no item was ever read. `is_ready`: the table has
    answered once. `is_stale`: its last answer is older than 15 s.
    """

    revision: int
    age_seconds: float | None
    is_stale: bool
    source: str
    is_ready: bool
    defects: tuple[str, ...]


class LiveFlags:
    """The current snapshot behind one attribute, with a read-only property for each setting."""

    __slots__ = ("_begin", "snapshot")

    snapshot: Snapshot

    def __init__(self, begin: Callable[[], Snapshot]) -> None:
        self._begin = begin

    def __getattr__(self, name: str) -> Any:
        # Python asks here only while `snapshot` is unset: the first read of a process or of a fork.
        if name != "snapshot" and name not in SETTINGS:
            raise AttributeError(name)
        return attrgetter(name)(self._begin()) if name in SETTINGS else self._begin()


for _name in SETTINGS:
    setattr(LiveFlags, _name, property(attrgetter(f"snapshot.{_name}")))


class FlagsCache:
    r"""Read the item, decide what holds, and swap the snapshot.

    | The table says | What holds |
    |---|---|
    | a higher revision | the item's values, at once |
    | the same again | the same; the age starts anew |
    | no item, at the first read | safe defaults |
    | nothing (down, slow, throttled), at the first read | safe defaults, and not ready |
    | nothing, later | the last known values, marked stale after 15 s, for as long as it lasts |
    | a bad or missing attribute | that setting's safe default; the others as stored |
    | attributes this code does not know | ignored, and left in the item |
    | a revision that cannot be read | as if the table said nothing |
    | a lower revision, other values under the same one, or no item any more | the old values; \
        if the next strong read says so, too: what the table says, with an alarm |
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, RawItem]],
        *,
        shapes: tuple[Shape, ...] = SHAPES,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._read = read
        self._shapes = shapes
        self._clock = clock
        self._uniform = uniform
        self._stored: Snapshot | None = None
        self._overrides: list[Mapping[str, Value]] = []
        self._listeners: list[Listener] = []
        self._answered_at: float | None = None
        self._has_item = False
        self._doubts = 0
        self._failures = 0
        self._reads_begun = 0
        self._thread: threading.Thread | None = None
        self._forked()
        self.live = LiveFlags(self._begin)

    def _forked(self) -> None:
        """Make the locks and the thread's signals anew: a fork copies them in any state."""
        self._starting = threading.Lock()
        self._reading = threading.Lock()
        self._publishing = threading.RLock()
        self._wake = threading.Event()
        self._is_running = False

    # Life of the thread

    def start(self) -> None:
        """Read once, within the time-outs (1.5 s), then keep reading in a thread; idempotent."""
        with self._starting:
            if self._is_running:
                return
            if self._stored is None:
                self.refresh()
            self._start_thread()

    def stop(self) -> None:
        """End the thread; the last snapshot stays."""
        with self._starting:
            thread, self._thread, self._is_running = self._thread, None, False
            self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def after_fork(self) -> None:
        """In a forked child: no thread was copied. The next read of a flag starts one.

        It is not started here, because a child that goes on to exec must not start threads.
        """
        was_running = self._is_running
        self._forked()
        self._thread = None
        if was_running and self._has_snapshot():
            del self.live.snapshot

    def _begin(self) -> Snapshot:
        """Serve the first read of a process: never wait inside a running event loop."""
        if self._overrides:
            return self._publish()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            is_in_loop = False
        else:
            is_in_loop = True
        if self._stored is not None or not is_in_loop:
            # A fork has its parent's values: it needs only the thread.
            self.start()
            return self._publish()
        if not self._starting.acquire(blocking=False):
            # Another thread is reading for the first time; a loop can't wait for it.
            return Snapshot()
        try:
            if not self._is_running:
                _log.warning("flags_read_before_start", values="safe until the first answer")
                self._start_thread(is_late=True)
            return self._publish()
        finally:
            self._starting.release()

    def _start_thread(self, *, is_late: bool = False) -> None:
        self._is_running = True
        self._wake = threading.Event()
        if is_late:
            self._wake.set()
        self._thread = threading.Thread(
            target=self._run, args=(self._wake,), name="flags-refresh", daemon=True
        )
        self._thread.start()

    def _run(self, wake: threading.Event) -> None:
        while True:
            wake.wait(self.pause_seconds())
            if self._wake is not wake or not self._is_running:
                return
            wake.clear()
            self.refresh()

    def pause_seconds(self) -> float:
        """Return how long to wait before the next read: 10 s, sooner after a failure."""
        pause = POLL_SECONDS
        if self._doubts:
            pause = FIRST_RETRY_SECONDS
        elif self._failures:
            pause = min(POLL_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(self._failures - 1, 8))
        return pause * self._uniform(1 - JITTER, 1 + JITTER)

    # Reading

    def request_refresh(self, revision: int | None = None) -> None:
        """Make the thread read at once, without waiting: for hints, on any thread or loop.

        A hint about a revision that is here already costs nothing.
        """
        stored = self._stored
        if revision is None or stored is None or revision > stored.revision:
            self._wake.set()

    def refresh(self) -> bool:
        """Read the item now and apply what it says; False if the table did not answer.

        Callers that come while a read is on its way share the next one.
        """
        ticket = self._reads_begun
        with self._reading:
            if self._reads_begun > ticket:
                # A read began after this caller came, and it has ended.
                return self._failures == 0
            self._reads_begun += 1
            try:
                found = choose(self._read(), self._shapes)
            except Exception as error:  # noqa: BLE001 (whatever it is, the last values hold)
                self._on_failure(error)
                return False
            self._on_answer(found)
            return True

    def _on_failure(self, error: Exception) -> None:
        self._failures += 1
        REFRESHES.labels("failed").inc()
        if self._failures == 1:
            _log.warning("flags_refresh_failed", error=repr(error), status=self.status())
        if self._stored is None and not self._has_snapshot():
            self._publish()

    def _on_answer(self, found: Snapshot | None) -> None:
        if self._failures:
            _log.info("flags_refresh_recovered", failures=self._failures)
        self._failures = 0
        self._answered_at = self._clock()
        read = found or Snapshot()
        stored = self._stored
        if stored is None or read.revision > stored.revision:
            self._adopt(read, has_item=found is not None)
        elif read == stored:
            self._doubts = 0
            REFRESHES.labels("same").inc()
        elif self._doubts == 0:
            # A single strange answer changes nothing; the next read decides.
            self._doubts = 1
            REFRESHES.labels("doubted").inc()
            _log.warning("flags_went_back", stored=stored.revision, read=read.revision)
        else:
            ALARMS.labels("went_back").inc()
            _log.error("flags_went_back_twice", stored=stored.revision, read=read.revision)
            self._adopt(read, has_item=found is not None)

    def _adopt(self, read: Snapshot, *, has_item: bool) -> None:
        before, self._stored = self._stored, read
        self._has_item = has_item
        self._doubts = 0
        REFRESHES.labels("new").inc()
        if not has_item:
            ALARMS.labels("missing").inc()
            _log.error("flags_item_missing", values="safe defaults")
        elif read.defects:
            ALARMS.labels("defects").inc()
            _log.error("flags_unreadable_values", revision=read.revision, settings=read.defects)
        self._publish()
        _log.info("flags_changed", revision=read.revision, before=before and before.revision)
        for listener in tuple(self._listeners):
            try:
                listener(before or Snapshot(), read)
            except Exception as error:  # noqa: BLE001 (a listener's fault must not end the thread)
                _log.error("flags_listener_failed", exc_info=error)

    # The snapshot

    def override(self, values: Mapping[str, Value]) -> Callable[[], None]:
        """Lay `values` over the stored ones in this process; return the function that ends it.

        What was never read from a table counts as its first value here, not as its safe one.
        """
        with self._publishing:
            self._overrides.append(values)
            self._publish()

        def end() -> None:
            with self._publishing:
                self._overrides = [each for each in self._overrides if each is not values]
                if self._overrides or self._stored is not None or self._is_running:
                    self._publish()
                else:
                    del self.live.snapshot

        return end

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(before, after)` at every change, in the reading thread; returns an end."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def status(self) -> Status:
        """Tell how good this process's copy is."""
        age = None if self._answered_at is None else self._clock() - self._answered_at
        stored = self._stored or Snapshot()
        return Status(
            revision=stored.revision,
            age_seconds=age,
            is_stale=age is None or age > STALE_AFTER_SECONDS,
            source="table" if self._has_item else "defaults",
            is_ready=self._answered_at is not None,
            defects=stored.defects,
        )

    def _has_snapshot(self) -> bool:
        try:
            object.__getattribute__(self.live, "snapshot")
        except AttributeError:
            return False
        return True

    def _publish(self) -> Snapshot:
        with self._publishing:
            snapshot = self._stored or Snapshot()
            if self._overrides:
                if self._stored is None:
                    snapshot = with_values(snapshot, vars(FIRST))
                for values in self._overrides:
                    snapshot = with_values(snapshot, values)
            self.live.snapshot = snapshot
            return snapshot


_cache = FlagsCache(models.read_flags)
flags = cast(Flags, _cache.live)
start = _cache.start
stop = _cache.stop
status = _cache.status
refresh_now = _cache.refresh
request_refresh = _cache.request_refresh
subscribe = _cache.subscribe
override = _cache.override
os.register_at_fork(after_in_child=_cache.after_fork)


def current() -> Snapshot:
    """Return the whole frozen snapshot: values that belong together, and their revision."""
    return _cache.live.snapshot


Gauge("flags_revision", "Revision of the settings in this process").set_function(
    lambda: _cache.status().revision
)
Gauge("flags_age_seconds", "Time since the settings item was last read").set_function(
    lambda: -1.0 if (age := _cache.status().age_seconds) is None else age
)
