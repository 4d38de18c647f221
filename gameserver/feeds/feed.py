"""One watched thing in one process: read once, told to many."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

import structlog
from prometheus_client import Counter, Gauge

from gameserver.blocking import run_blocking
from gameserver.errors import GameServerError, TryAgain
from gameserver.feeds.connection import DELIVERED, Connection
from gameserver.feeds.frames import Frame, frame

StateT = TypeVar("StateT")
Message = dict[str, Any]
Key = tuple[str, str]

# How long a feed nobody watches stays: for the client that reconnects at once.
LINGER_SECONDS = 2.0
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 0.25, 5.0
JITTER = 0.2

FEEDS = Gauge("feeds", "Watched things in this process", ["kind"])
READS = Counter("feed_reads_total", "Reads of watched things", ["kind", "cause"])
FAILURES = Counter("feed_read_failures_total", "Reads of watched things that failed", ["kind"])

_log = structlog.get_logger(__name__)


class Feed(ABC, Generic[StateT]):
    """The last state of a watched thing, and who watches.

    A hint wakes it; without one it looks by itself every `poll_seconds` (None: somebody else looks
    for it), so a lost hint only delays. Hints that come while it reads or rests (`rest_seconds`)
    share the next read. `settle_seconds` is for sources that lag behind their writes: one more read
    that long after the last hint.
    """

    kind: str
    poll_seconds: float | None
    rest_seconds: float
    settle_seconds: float | None = None

    def __init__(self, name: str) -> None:
        self.key: Key = (self.kind, name)
        self.state: StateT | None = None
        self.connections: dict[Connection, None] = {}
        self._snapshot: Frame | None = None
        self._wake = asyncio.Event()
        self._is_settled = True
        self._waiting: list[asyncio.Future[None]] = []
        self._arriving = 0
        self._failures = 0
        self._task = asyncio.get_running_loop().create_task(self._run())
        FEEDS.labels(self.kind).inc()

    @property
    @abstractmethod
    def topics(self) -> list[str]:
        """What this feed listens to on the bridge."""

    @abstractmethod
    def read(self) -> StateT:
        """Read the state, strongly where the table can. Blocking.

        Raises: GameServerError, which is told to who wants to watch.
        """

    @abstractmethod
    def snapshot(self, state: StateT) -> Message:
        """Tell the whole state."""

    @abstractmethod
    def change(self, old: StateT, new: StateT) -> Message | None:
        """Tell what makes `new` of `old`; None if nothing does."""

    def on_change(self) -> None:
        """Take notice that the state or the connections changed."""

    @property
    def is_idle(self) -> bool:
        """Whether nobody watches, nor is about to."""
        return not self.connections and not self._arriving

    def wake(self) -> None:
        """Look again: something changed, or may have."""
        self._is_settled = self.settle_seconds is None
        self._wake.set()

    async def watch(self, connection: Connection, on_watching: Callable[[], None]) -> None:
        """Read the truth, call `on_watching`, send a snapshot; from then on, every change.

        Raises: GameServerError if there is nothing to watch, TryAgain if it cannot be read.
        """
        await self.refresh()
        # No await from here on: the snapshot and the first change after it leave no gap.
        on_watching()
        connection.send(self.snapshot_frame())
        self.connections[connection] = None
        connection.watching[self.key] = self
        self.on_change()

    async def refresh(self) -> None:
        """Wait for a read that begins after this call; all who wait share it.

        Raises: GameServerError if there is nothing to watch, TryAgain if it cannot be read.
        """
        self._arriving += 1
        try:
            fresh: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(fresh)
            self._wake.set()
            await fresh
        finally:
            self._arriving -= 1

    def unwatch(self, connection: Connection) -> None:
        """Send no more."""
        if self.connections.pop(connection, False) is None:
            connection.watching.pop(self.key, None)
            self.on_change()

    def snapshot_frame(self) -> Frame:
        """Return the whole state, serialised once for all who ask before it changes."""
        if self._snapshot is None:
            # Asked only after a read that succeeded.
            self._snapshot = frame(self.snapshot(cast(StateT, self.state)))
        return self._snapshot

    async def stop(self) -> None:
        """End the feed's task."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._answer(TryAgain())
        FEEDS.labels(self.kind).dec()

    async def _run(self) -> None:
        while True:
            cause = await self._next_cause()
            waiting, self._waiting = self._waiting, []
            try:
                READS.labels(self.kind, cause).inc()
                self._publish(await run_blocking(self.read))
            except Exception as error:  # noqa: BLE001 (a feed outlives whatever ails the table)
                self._failures += 1
                FAILURES.labels(self.kind).inc()
                self._report(error)
                self._waiting = waiting + self._waiting
                self._answer(error if isinstance(error, GameServerError) else TryAgain())
                await asyncio.sleep(self._retry_seconds())
            else:
                self._failures = 0
                self._waiting = waiting + self._waiting
                self._answer(None, count=len(waiting))
                await asyncio.sleep(self.rest_seconds)

    async def _next_cause(self) -> str:
        """Wait for a hint, for the source to settle, or for the next poll; say which it was."""
        cause, pause = "poll", self.poll_seconds
        if pause is not None:
            pause *= random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 (jitter)
        if self._failures and not self.is_idle:
            cause, pause = "retry", 0.0
        elif not self._is_settled and self.settle_seconds is not None:
            cause, pause = "settle", self.settle_seconds
        try:
            # Not `wait_for`: Python 3.11's can lose a cancellation, and `stop` would never return.
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            if cause == "settle":
                self._is_settled = True
            return cause
        self._wake.clear()
        return "hint"

    def _publish(self, new: StateT) -> None:
        old, self.state = self.state, new
        message = None if old is None else self.change(old, new)
        if old is not None and message is None:
            return
        self._snapshot = None
        if message is not None:
            self._send_all(self.connections, frame(message))
        self.on_change()

    @staticmethod
    def _send_all(connections: Iterable[Connection], message: Frame) -> None:
        receivers = tuple(connections)
        for connection in receivers:
            connection.send(message)
        DELIVERED.inc(len(receivers))

    def _answer(self, error: Exception | None, count: int | None = None) -> None:
        """Let those go on who waited for a read that began after they came."""
        count = len(self._waiting) if count is None else count
        answered, self._waiting = self._waiting[:count], self._waiting[count:]
        for fresh in answered:
            if fresh.done():
                continue
            if error is None:
                fresh.set_result(None)
            else:
                fresh.set_exception(error)

    def _retry_seconds(self) -> float:
        if self.is_idle:
            return self.rest_seconds
        pause = FIRST_RETRY_SECONDS * 2.0 ** min(self._failures - 1, 8)
        return min(LONGEST_RETRY_SECONDS, pause) * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311

    def _report(self, error: Exception) -> None:
        if isinstance(error, TryAgain):
            if self._failures == 1:
                _log.warning("feed_read_failed", feed=self.key, error=repr(error))
        elif not isinstance(error, GameServerError):
            _log.error("feed_read_failed", feed=self.key, exc_info=error)
