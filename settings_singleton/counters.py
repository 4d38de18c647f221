"""Global totals, counted exactly: sign-ups, finished games, eliminations.

An increment is one more write in the transaction of what it counts, on a random shard. So it is
done if and only if that is done: an `ADD` on its own is repeated after a lost answer and counts
twice, and one beside the transaction is lost with a crash between the two. It costs 2 WCU.
"""

import random

from gameserver.models import Write
from settings_singleton.models import COUNTER_SHARDS, CounterShard

COUNTERS = ("players_signed_up", "games_finished", "eliminations")


def increment(name: str, amount: int = 1) -> Write:
    """Return the write that adds to a counter: `transact(..., counter=increment("eliminations"))`.

    It has no condition, so it never makes the transaction fail. Two transactions at the same moment
    on the same of the 10 shards conflict; the retries repeat the later one.
    """
    if name not in COUNTERS:
        raise ValueError(f"unknown counter {name}")
    return CounterShard.adding(name, random.randrange(COUNTER_SHARDS), amount)  # noqa: S311 (spread)


def totals() -> dict[str, int]:
    """Return every counter's total, as of a moment ago: eventually consistent reads."""
    return CounterShard.totals(COUNTERS)
