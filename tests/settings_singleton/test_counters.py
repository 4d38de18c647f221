"""Global totals: exact under concurrency, whatever gets lost on the way."""

import os
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ReadTimeoutError

from gameserver import capacity
from gameserver.errors import TryAgain
from gameserver.models import Item
from gameserver.table import counter_key
from settings_singleton import counters
from settings_singleton.counters import Tally
from settings_singleton.models import COUNTER_SHARDS, CounterShard
from tests.settings_singleton.faults import losing_answers

pytestmark = pytest.mark.usefixtures("table")


def test_nothing_was_counted_in_an_empty_table() -> None:
    assert counters.totals() == dict.fromkeys(counters.COUNTERS, 0)


def test_two_hundred_concurrent_increments_sum_exactly() -> None:
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: counters.count("eliminations"), range(200)))

    assert counters.flush()
    assert counters.totals() == {
        "players_signed_up": 0,
        "games_finished": 0,
        "eliminations": 200,
    }


def test_several_processes_add_to_the_same_total() -> None:
    tallies = [Tally() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda tally: [tally.count("eliminations") for _ in range(25)], tallies))

    assert all(tally.flush() for tally in tallies)
    assert counters.totals()["eliminations"] == 200


def test_two_hundred_concurrent_writes_to_the_shards_sum_exactly() -> None:
    with ThreadPoolExecutor(32) as pool:
        list(
            pool.map(
                lambda number: CounterShard.add(
                    "eliminations", number % COUNTER_SHARDS, 1, str(uuid.uuid4())
                ),
                range(200),
            )
        )

    assert counters.totals()["eliminations"] == 200
    keys = [counter_key("eliminations", shard) for shard in range(COUNTER_SHARDS)]
    assert len(Item.read_many(keys)) == COUNTER_SHARDS


def test_an_increment_whose_answer_is_lost_counts_once() -> None:
    """T-07: an UpdateItem with ADD would be repeated and count twice."""
    with losing_answers("TransactWriteItems", "UpdateItem") as lost:
        for _ in range(20):
            CounterShard.add("games_finished", 3, 1, str(uuid.uuid4()))

    assert len(lost.operations) == 20
    assert counters.totals()["games_finished"] == 20


def test_an_outage_in_the_middle_of_a_write_does_not_count_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first attempts write, and every answer to them is lost until the retries give up."""
    add = CounterShard.add
    given_up = iter([TryAgain(), TryAgain()])

    def add_without_an_answer(name: str, shard: int, amount: int, token: str) -> None:
        add(name, shard, amount, token)
        for error in given_up:
            raise error from ReadTimeoutError(endpoint_url="the table")

    monkeypatch.setattr(counters, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(CounterShard, "add", add_without_an_answer)
    tally = Tally()
    tally.count("games_finished", 7)

    assert tally.flush()
    assert next(given_up, None) is None
    assert counters.totals()["games_finished"] == 7


def test_what_an_outage_kept_from_being_written_is_written_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add = CounterShard.add
    refusals = iter([TryAgain(), TryAgain()])

    def add_after_the_outage(name: str, shard: int, amount: int, token: str) -> None:
        for refusal in refusals:
            raise refusal
        add(name, shard, amount, token)

    monkeypatch.setattr(counters, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(CounterShard, "add", add_after_the_outage)
    tally = Tally()
    tally.count("games_finished")
    tally.count("games_finished")

    assert tally.flush()
    assert counters.totals()["games_finished"] == 2


def test_all_totals_cost_one_round_trip() -> None:
    with capacity.measure() as cost:
        counters.totals()

    assert cost.operations == ["BatchGetItem"]


def test_an_unknown_counter_is_refused_where_it_is_named() -> None:
    with pytest.raises(ValueError, match="unknown counter"):
        counters.count("typo")


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_does_not_write_what_its_parent_counted() -> None:
    tally = Tally()
    tally._pending["eliminations"] = 5
    os.register_at_fork(after_in_child=tally.begin_anew)

    child = os.fork()
    if child == 0:
        os._exit(len(tally._pending))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert tally._pending["eliminations"] == 5
