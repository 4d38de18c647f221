"""Global totals: exact under concurrency, whatever gets lost on the way."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from gameserver.errors import TryAgain
from settings_singleton import counters
from settings_singleton.counters import Tally
from settings_singleton.models import CounterShard


def test_two_hundred_concurrent_increments_sum_exactly(table: None) -> None:
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: counters.count("eliminations"), range(200)))
    assert counters.flush()
    assert counters.totals() == {
        "players_signed_up": 0,
        "games_finished": 0,
        "eliminations": 200,
    }


def test_several_processes_add_to_the_same_total(table: None) -> None:
    tallies = [Tally() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda tally: [tally.count("eliminations") for _ in range(25)], tallies))
    assert all(tally.flush() for tally in tallies)
    assert counters.totals()["eliminations"] == 200


def test_what_an_outage_kept_from_being_written_is_written_after_it(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = CounterShard.add
    refusals = iter([TryAgain(), TryAgain()])

    def add_after_the_outage(name: str, shard: int, amount: int) -> None:
        for refusal in refusals:
            raise refusal
        add(name, shard, amount)

    monkeypatch.setattr(counters, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(CounterShard, "add", add_after_the_outage)
    tally = Tally()
    tally.count("games_finished")
    tally.count("games_finished")
    assert tally.flush()
    assert counters.totals()["games_finished"] == 2


def test_an_unknown_counter_is_refused_where_it_is_named() -> None:
    with pytest.raises(ValueError, match="unknown counter"):
        counters.count("typo")
