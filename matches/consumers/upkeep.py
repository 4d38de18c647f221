"""The threads that keep a server process honest: it beats, and it sweeps what nobody tends."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import structlog
from django.utils import timezone
from prometheus_client import Counter

from matches.services import presence
from matches.services.presence import BEAT_SECONDS, DEAD_AFTER
from matches.services.sweep import sweep_under_lease

# Lists are read for the first, one small Query does for the second.
SWEEP_SECONDS = 30.0
DEAD_PROCESSES_SECONDS = 5.0
STOP_SECONDS = 2.0

FAILURES = Counter("upkeep_failures_total", "Rounds of a background task that failed", ["task"])

_log = structlog.get_logger(__name__)


class RepeatingTask:
    """A daemon thread that does one thing again and again, whatever it raises."""

    def __init__(self, name: str, every_seconds: float, work: Callable[[], None]) -> None:
        self._name = name
        self._every_seconds = every_seconds
        self._work = work
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Do it for the first time now."""
        self._thread.start()

    def stop(self) -> None:
        """Do it no more; wait a little for a round on its way."""
        self._stopping.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        is_failing = False
        while not self._stopping.is_set():
            try:
                self._work()
                is_failing = False
            except Exception as error:  # noqa: BLE001 (the next round may do better)
                FAILURES.labels(self._name).inc()
                if not is_failing:
                    _log.error("upkeep_failed", task=self._name, exc_info=error)
                is_failing = True
            self._stopping.wait(self._every_seconds)


class Upkeep:
    """One process's heartbeat, and its share of the sweeping."""

    def __init__(self, process_id: str, on_unknown: Callable[[], None]) -> None:
        """`on_unknown`: what to do, in a thread, when no record of this process is left."""
        self._process_id = process_id
        self._on_unknown = on_unknown
        # Times of day: a monotonic clock may stand still while the machine sleeps.
        self._last_beat = datetime.min.replace(tzinfo=UTC)
        self._steady_since = timezone.now()
        self._tasks = [
            RepeatingTask("heartbeat", BEAT_SECONDS, self.beat),
            RepeatingTask("sweep", SWEEP_SECONDS, self.sweep),
            RepeatingTask("dead processes", DEAD_PROCESSES_SECONDS, self.sweep_dead_processes),
        ]

    def start(self) -> None:
        """Start the threads."""
        for task in self._tasks:
            task.start()

    def stop(self) -> None:
        """Stop the threads."""
        for task in self._tasks:
            task.stop()

    def beat(self) -> None:
        """Say that this process lives; after a break, watch the others anew from now on.

        After a long one they may have taken it for dead, and swept its records.
        """
        now = timezone.now()
        if not presence.beat(self._process_id, now=now):
            # First, so that a beat that fails half-way does not find the process known.
            self._on_unknown()
            presence.announce(self._process_id, now=now)
        if now - self._last_beat > DEAD_AFTER:
            self._steady_since = now
        self._last_beat = now

    def sweep(self) -> None:
        """End what nobody tends, if no other process does so already."""
        sweep_under_lease(self._process_id, now=timezone.now())

    def sweep_dead_processes(self) -> None:
        """Free what dead processes left.

        Without a lease: it costs one small Query, and a dead process's lease would only delay it.
        A process that cannot beat itself does not see whether others can.
        """
        now = timezone.now()
        if now - self._last_beat <= timedelta(seconds=2 * BEAT_SECONDS):
            presence.sweep_dead_processes(now=now, since=self._steady_since)
