"""The snapshot that code reads, and the decision which answer of the table replaces it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Counter

from settings_singleton.registry import FIRST, SETTINGS, RawItem, Value
from settings_singleton.shapes import SHAPES, Shape, Snapshot, choose, with_values

# The longest pause between reads (12 s), both time-outs (1.5 s), and a little for a busy process.
STALE_AFTER_SECONDS = 15.0

REFRESHES = Counter("flags_refreshes_total", "Reads of the settings item", ["outcome"])
ALARMS = Counter("flags_alarms_total", "Settings that an operator should look at", ["reason"])

Listener = Callable[[Snapshot, Snapshot], None]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Status:
    """How good this process's copy is; for health pages.

    `source` is `table`, or `defaults` while there is no item. `is_ready`: the table has answered
    once. `is_stale`: its last answer is older than 15 s. `defects` names settings whose stored
    value cannot be used.
    """

    revision: int
    age_seconds: float | None
    is_stale: bool
    source: str
    is_ready: bool
    defects: tuple[str, ...]


class LiveFlags:
    """What code reads: the values of the current snapshot as plain attributes.

    Its `__dict__` is a copy of the snapshot's, so a read costs what any attribute costs, and a swap
    is one assignment. Nobody can set a flag here.
    """

    __slots__ = ("__dict__", "_on_first_read")

    def __init__(self, on_first_read: Callable[[], Snapshot]) -> None:
        object.__setattr__(self, "_on_first_read", on_first_read)

    def __getattr__(self, name: str) -> Any:
        # Python asks here only while there is no snapshot: the first read of a process or a fork.
        if name in SETTINGS:
            return getattr(self._on_first_read(), name)
        raise AttributeError(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} is changed in the table: see settings_singleton.services")


class FlagsCache:
    r"""Read the item, decide what holds, and swap the snapshot.

    | The table says | What holds |
    |---|---|
    | a higher revision | the item's values, at once |
    | the same again | the same; the age starts anew |
    | no item, at the first read | safe defaults |
    | nothing (down, slow, throttled), at the first read | safe defaults, and not ready |
    | nothing, later | the last known values as long as it lasts, marked stale after 15 s |
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
    ) -> None:
        self._read = read
        self._shapes = shapes
        self._clock = clock
        self._overrides: list[Mapping[str, Value]] = []
        self._was_unread = True
        self._listeners: list[Listener] = []
        self._answered_at: float | None = None
        self._has_item = False
        self._reads_begun = 0
        self.stored: Snapshot | None = None
        self.failures = 0
        self.doubts = 0
        self._snapshot: Snapshot | None = None
        self.on_first_read: Callable[[], Snapshot] = self._read_first
        self.live = LiveFlags(lambda: self.on_first_read())  # noqa: PLW0108 (it is replaced later)
        self.make_locks()

    def make_locks(self) -> None:
        """Make the locks; anew in a forked child, because a fork copies them in any state."""
        self._reading = threading.Lock()
        self._publishing = threading.RLock()

    @property
    def snapshot(self) -> Snapshot:
        """The frozen snapshot that holds now."""
        return self._snapshot or self.on_first_read()

    def has_snapshot(self) -> bool:
        """Tell whether flags can be read without `on_first_read`."""
        return self._snapshot is not None

    def forget_snapshot(self) -> None:
        """Make the next read of a flag call `on_first_read`."""
        self._snapshot = None
        object.__setattr__(self.live, "__dict__", {})

    def forget(self) -> None:
        """Become like new: nothing read, nothing known; for tests."""
        with self._reading, self._publishing:
            self.stored = self._answered_at = None
            self._has_item = False
            self.failures = self.doubts = 0
            if self._overrides:
                self.publish()
            else:
                self.forget_snapshot()

    def refresh(self) -> bool:
        """Read the item now and apply what it says; False if the table did not answer.

        Callers that come while a read is on its way share the next one.
        """
        ticket = self._reads_begun
        with self._reading:
            if self._reads_begun > ticket:
                # A read began after this caller came, and it has ended.
                return self.failures == 0
            self._reads_begun += 1
            try:
                found = choose(self._read(), self._shapes)
            except Exception as error:  # noqa: BLE001 (whatever it is, the last values hold)
                self._on_failure(error)
                return False
            self._on_answer(found)
            return True

    def _read_first(self) -> Snapshot:
        if self.stored is None and not self._overrides:
            self.refresh()
        return self.publish()

    def _on_failure(self, error: Exception) -> None:
        self.failures += 1
        REFRESHES.labels("failed").inc()
        if self.failures == 1:
            source = self.status().source
            _log.warning("flags_refresh_failed", error=repr(error), values_from=source)
        if not self.has_snapshot():
            self.publish()

    def _on_answer(self, found: Snapshot | None) -> None:
        if self.failures:
            _log.info("flags_refresh_recovered", failures=self.failures)
        self.failures = 0
        self._answered_at = self._clock()
        read = found or Snapshot()
        stored = self.stored
        if stored is None or read.revision > stored.revision:
            self._adopt(read, "new", has_item=found is not None)
        elif read == stored:
            self.doubts = 0
            REFRESHES.labels("same").inc()
        elif self.doubts == 0:
            # A single strange answer changes nothing; the next read decides.
            self.doubts = 1
            REFRESHES.labels("doubted").inc()
            _log.warning("flags_went_back", stored=stored.revision, read=read.revision)
        else:
            ALARMS.labels("went_back").inc()
            _log.error("flags_went_back_twice", stored=stored.revision, read=read.revision)
            self._adopt(read, "went_back", has_item=found is not None)

    def _adopt(self, read: Snapshot, outcome: str, *, has_item: bool) -> None:
        before, self.stored = self.stored, read
        self._has_item = has_item
        self.doubts = 0
        REFRESHES.labels(outcome).inc()
        if not has_item:
            ALARMS.labels("missing").inc()
            _log.error("flags_item_missing", values="safe defaults")
        elif read.defects:
            ALARMS.labels("defects").inc()
            _log.error("flags_unusable_values", revision=read.revision, settings=read.defects)
        self.publish()
        _log.info("flags_changed", revision=read.revision, before=before and before.revision)
        for listener in tuple(self._listeners):
            try:
                listener(before or Snapshot(), read)
            except Exception as error:  # noqa: BLE001 (a listener's fault must not end the thread)
                _log.error("flags_listener_failed", exc_info=error)

    def publish(self) -> Snapshot:
        """Swap the snapshot for what is stored, with the overrides of a test over it."""
        with self._publishing:
            snapshot = self.stored or Snapshot()
            if self._overrides:
                if self.stored is None:
                    snapshot = with_values(snapshot, vars(FIRST))
                for values in self._overrides:
                    snapshot = with_values(snapshot, values)
            self._snapshot = snapshot
            object.__setattr__(self.live, "__dict__", dict(vars(snapshot)))
            return snapshot

    def override(self, values: Mapping[str, Value]) -> Callable[[], None]:
        """Lay `values` over the stored ones in this process; return the function that ends it.

        What was never read from a table counts as its first value here, not as its safe one.
        """
        with self._publishing:
            if not self._overrides:
                self._was_unread = not self.has_snapshot()
            self._overrides.append(values)
            self.publish()

        def end() -> None:
            with self._publishing:
                self._overrides = [each for each in self._overrides if each is not values]
                self.publish()
                if self._was_unread and not self._overrides and self.stored is None:
                    self.forget_snapshot()

        return end

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(before, after)` at every change, in the reading thread; returns an end."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def status(self) -> Status:
        """Tell how good this process's copy is."""
        age = None if self._answered_at is None else self._clock() - self._answered_at
        stored = self.stored or Snapshot()
        return Status(
            revision=stored.revision,
            age_seconds=age,
            is_stale=age is None or age > STALE_AFTER_SECONDS,
            source="table" if self._has_item else "defaults",
            is_ready=self._answered_at is not None,
            defects=stored.defects,
        )
