"""Global totals: sign-ups, finished games, eliminations; counted beside what they count.

A service counts after its write, in memory. A thread adds what has gathered to one shard, in a
transaction of that one item, which keeps its ClientRequestToken until it is known to be written: a
repeat after a lost answer changes nothing, not even after an outage. So no game's transaction waits
for a counter, and concurrent increments sum exactly. A killed process loses what it had not
written yet; a stopped one writes it first.

Source: TransactWriteItems API reference (a token is remembered for 10 minutes).
"""

import atexit
import os
import random
import threading
import uuid
from collections import Counter
from dataclasses import dataclass

import structlog

from gameserver.errors import TryAgain
from settings_singleton.models import COUNTER_SHARDS, CounterShard

COUNTERS = ("players_signed_up", "games_finished", "eliminations")
# After an outage, the pause before what has gathered is tried again.
RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Addition:
    """One write to one shard; the token makes its repeats harmless."""

    name: str
    shard: int
    amount: int
    token: str


class Tally:
    """What this process has counted and not written yet, and the thread that writes it."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Start with nothing; in a forked child, too: what was pending is its parent's to write."""
        self._changed = threading.Condition()
        self._pending: Counter[str] = Counter()
        self._writing: list[Addition] = []
        self._thread: threading.Thread | None = None

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter; returns at once."""
        if name not in COUNTERS:
            raise ValueError(f"unknown counter {name}")
        with self._changed:
            self._pending[name] += amount
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="counters", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until everything counted so far is written; False if that took too long."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._pending and not self._writing, timeout_seconds
            )

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pending or self._writing))
                self._writing += _additions(self._pending)
                self._pending.clear()
            unsure = _write(self._writing)
            with self._changed:
                self._writing = unsure
                self._changed.notify_all()
                if unsure:
                    self._changed.wait(RETRY_SECONDS)


def _additions(gathered: Counter[str]) -> list[Addition]:
    return [
        Addition(name, random.randrange(COUNTER_SHARDS), amount, str(uuid.uuid4()))  # noqa: S311 (spread)
        for name, amount in gathered.items()
    ]


def _write(additions: list[Addition]) -> list[Addition]:
    """Write each addition; return those that may not have been written."""
    unsure: list[Addition] = []
    for each in additions:
        try:
            CounterShard.add(each.name, each.shard, each.amount, each.token)
        except TryAgain:
            unsure.append(each)
        except Exception as error:  # noqa: BLE001 (a counter must not end its thread)
            _log.error("counter_not_written", addition=repr(each), exc_info=error)
    return unsure


_tally = Tally()
count = _tally.count
flush = _tally.flush
atexit.register(flush)
os.register_at_fork(after_in_child=_tally.begin_anew)


def totals() -> dict[str, int]:
    """Return every counter's total, as of a moment ago: eventually consistent reads."""
    return CounterShard.totals(COUNTERS)
