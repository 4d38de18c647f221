"""The thread that reports for this process."""

import os
import random
import socket
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from gameserver import retries
from settings_singleton import cache
from settings_singleton.processes.load import Minutes, read_totals
from settings_singleton.processes.models import ProcessReport

REPORT_SECONDS = 10.0
JITTER = 0.2
# A report that takes longer is left to the next one.
BUDGET_SECONDS = 3.0
# Silent for longer than this, a process counts as lost.
LOST_SECONDS = 30.0

_log = structlog.get_logger(__name__)


class Reporter:
    """One daemon thread per server process; commands start none."""

    def __init__(self) -> None:
        self.process_id = uuid.uuid4().hex[:12]
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._stopping = False
        self._is_failing = False

    @property
    def is_running(self) -> bool:
        """Whether the thread was started and not stopped."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Report now and from now on; idempotent."""
        if self._thread is not None:
            return
        # Anew, because a forked worker has its parent's.
        self.process_id = uuid.uuid4().hex[:12]
        self._started_at = datetime.now(UTC)
        self._minutes = Minutes(read_totals())
        self._stopping = False
        self._unsubscribe = cache.subscribe(lambda before, after: self._wake.set())
        self._thread = threading.Thread(target=self._run, name="process-report", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and take the report away: the process has not crashed."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._stopping = True
        self._wake.set()
        thread.join(BUDGET_SECONDS)
        self._try(lambda: ProcessReport.retire(self.process_id))

    def report(self) -> None:
        """Write this process's report."""
        status = cache.status()
        now = datetime.now(UTC)
        ProcessReport.put_report(
            ProcessReport.new(
                self.process_id,
                host=socket.gethostname(),
                pid=os.getpid(),
                started_at=self._started_at,
                revision=status.revision,
                is_stale=status.is_stale,
                defects=list(status.defects),
                minutes=self._minutes.add(read_totals(), now),
                now=now,
            )
        )

    def _run(self) -> None:
        while not self._stopping:
            self._wake.clear()
            self._try(self.report)
            self._wake.wait(REPORT_SECONDS * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311

    def _try(self, write: Callable[[], None]) -> None:
        try:
            with retries.budget(BUDGET_SECONDS):
                write()
        except Exception as error:  # noqa: BLE001 (a missing report harms nobody)
            if not self._is_failing:
                _log.warning("process_report_failed", error=repr(error))
            self._is_failing = True
        else:
            self._is_failing = False


_reporter = Reporter()
start = _reporter.start
stop = _reporter.stop
