"""Global totals: sign-ups, finished games, eliminations; counted beside what they count.

A service counts after its write, in memory. A thread adds what has gathered to one shard, in a
transaction of that one item, whose ClientRequestToken makes a repeat after a lost answer harmless.
So no game's transaction waits for a counter, and concurrent increments sum exactly. A killed
process loses what it had not written yet; a stopped one writes it first.
"""

import atexit
import random
import threading
from collections import Counter

import structlog

from gameserver.errors import TryAgain
from settings_singleton.models import COUNTER_SHARDS, CounterShard

COUNTERS = ("players_signed_up", "games_finished", "eliminations")
# After an outage, the pause before what has gathered is tried again.
RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Tally:
    """What this process has counted and not written yet, and the thread that writes it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._pending: Counter[str] = Counter()
        self._is_writing = False
        self._thread: threading.Thread | None = None

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter; returns at once."""
        if name not in COUNTERS:
            raise ValueError(f"unknown counter {name}")
        with self._changed:
            self._pending[name] += amount
            # A thread does not survive a fork, so each process starts its own.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until everything counted so far is written; False if that took too long."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._pending and not self._is_writing, timeout_seconds
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pending))
                taken, self._pending = self._pending, Counter()
                self._is_writing = True
            left = _write(taken)
            with self._changed:
                self._pending += left
                self._is_writing = False
                self._changed.notify_all()
                if left:
                    self._changed.wait(RETRY_SECONDS)


def _write(taken: Counter[str]) -> Counter[str]:
    """Write one shard of each counter; return what could not be written."""
    left: Counter[str] = Counter()
    for name, amount in taken.items():
        try:
            CounterShard.add(name, random.randrange(COUNTER_SHARDS), amount)  # noqa: S311 (spread)
        except TryAgain:
            left[name] = amount
        except Exception as error:  # noqa: BLE001 (a counter must not end its thread)
            _log.error("counter_not_written", name=name, amount=amount, exc_info=error)
    return left


_tally = Tally()
count = _tally.count
flush = _tally.flush
atexit.register(flush)


def totals() -> dict[str, int]:
    """Return every counter's total, as of a moment ago: eventually consistent reads."""
    return CounterShard.totals(COUNTERS)
