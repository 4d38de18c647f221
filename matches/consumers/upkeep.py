"""The threads that keep a server process honest: it beats, and it sweeps what nobody tends."""

import threading
import time
from collections.abc import Callable

import structlog
from django.utils import timezone
from prometheus_client import Counter

from matches.services import presence
from matches.services.presence import BEAT_SECONDS, DEAD_AFTER
from matches.services.sweep import sweep_under_lease

SWEEP_SECONDS = 10.0
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

    def __init__(self, process_id: str) -> None:
        self._process_id = process_id
        self._last_beat = 0.0
        self._steady_since = timezone.now()
        self._tasks = [
            RepeatingTask("heartbeat", BEAT_SECONDS, self.beat),
            RepeatingTask("sweep", SWEEP_SECONDS, self.sweep),
        ]

    def start(self) -> None:
        """Start both threads."""
        for task in self._tasks:
            task.start()

    def stop(self) -> None:
        """Stop both threads."""
        for task in self._tasks:
            task.stop()

    def beat(self) -> None:
        """Say that this process lives; after a break, watch the others anew from now on."""
        presence.beat(self._process_id, now=timezone.now())
        if time.monotonic() - self._last_beat > DEAD_AFTER.total_seconds():
            self._steady_since = timezone.now()
        self._last_beat = time.monotonic()

    def sweep(self) -> None:
        """End what nobody tends, and free what dead processes left.

        The first under a lease, because it reads every list. The second by every process: it costs
        one small Query, and a lease that the dead process held would only delay it.
        """
        now = timezone.now()
        sweep_under_lease(self._process_id, now=now)
        # A process that cannot beat itself does not see whether others can.
        if time.monotonic() - self._last_beat <= 2 * BEAT_SECONDS:
            presence.sweep_dead_processes(now=now, since=self._steady_since)
