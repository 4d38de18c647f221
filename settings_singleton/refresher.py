"""The thread that keeps a process's settings fresh: every 10 s, and at once after a hint."""

import asyncio
import random
import threading
from collections.abc import Callable

import structlog

from gameserver import hints
from settings_singleton.live import FlagsCache
from settings_singleton.shapes import Snapshot

POLL_SECONDS = 10.0
JITTER = 0.2
FIRST_RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0

_log = structlog.get_logger(__name__)


class Refresher:
    """One daemon thread per process, started by the server or by the first read of a flag."""

    def __init__(
        self, cache: FlagsCache, *, uniform: Callable[[float, float], float] = random.uniform
    ) -> None:
        self._cache = cache
        self._uniform = uniform
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._stop_listening: Callable[[], None] | None = None
        cache.on_first_read = self.on_first_read

    @property
    def is_running(self) -> bool:
        """Whether the thread was started in this process and not stopped."""
        return self._thread is not None

    def start(self) -> None:
        """Read once, within the time-outs (1.5 s), then keep reading in a thread; idempotent."""
        with self._starting:
            if self.is_running:
                return
            if self._cache.stored is None:
                self._cache.refresh()
            self._start_thread()

    def stop(self) -> None:
        """End the thread; the last snapshot stays."""
        with self._starting:
            thread, self._thread = self._thread, None
            self._wake.set()
            if self._stop_listening is not None:
                self._stop_listening()
                self._stop_listening = None
        if thread is not None and thread is not threading.current_thread():
            thread.join(STOP_SECONDS)

    def request_refresh(self, revision: int | None = None) -> None:
        """Make the thread read at once, without waiting: for hints, on any thread or loop.

        A hint about a revision that is here already costs nothing.
        """
        stored = self._cache.stored
        if revision is None or stored is None or revision > stored.revision:
            self._wake.set()

    def pause_seconds(self) -> float:
        """Return how long to wait for the next read: 10 s, less after a failure or a doubt."""
        pause = POLL_SECONDS
        if self._cache.doubts:
            pause = FIRST_RETRY_SECONDS
        elif self._cache.failures:
            pause = min(POLL_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(self._cache.failures - 1, 8))
        return pause * self._uniform(1 - JITTER, 1 + JITTER)

    def on_first_read(self) -> Snapshot:
        """Serve the first read of a flag in a process that did not start the thread.

        Inside a running event loop it never waits: safe defaults, until the thread has read.
        """
        if not _is_in_loop():
            self.start()
            return self._cache.publish()
        if not self._starting.acquire(blocking=False):
            # Another thread is reading for the first time; a loop can't wait for it.
            return Snapshot()
        try:
            if not self.is_running:
                if self._cache.stored is None:
                    _log.warning("flags_read_before_start", values="safe until the first answer")
                self._start_thread(read_at_once=True)
            return self._cache.publish()
        finally:
            self._starting.release()

    def after_fork(self) -> None:
        """Start anew in a forked child: threads are not copied, locks are, in any state.

        The thread is started by the next read of a flag, not here, because a child that goes on to
        exec must start none. Until the thread has read, the parent's values hold.
        """
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._cache.make_locks()
        if self.is_running:
            self._thread = None
            self._cache.forget_snapshot()

    def _start_thread(self, *, read_at_once: bool = False) -> None:
        self._wake = threading.Event()
        if read_at_once:
            self._wake.set()
        if self._stop_listening is None:
            self._stop_listening = hints.listen(self._on_hint)
        self._thread = threading.Thread(
            target=self._run, args=(self._wake,), name="flags-refresh", daemon=True
        )
        self._thread.start()

    def _run(self, wake: threading.Event) -> None:
        while True:
            wake.wait(self.pause_seconds())
            if self._wake is not wake or not self.is_running:
                return
            wake.clear()
            self._cache.refresh()

    def _on_hint(self, hint: hints.Hint) -> None:
        if isinstance(hint, hints.SettingsChanged):
            self.request_refresh(hint.revision)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
