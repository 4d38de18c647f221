"""The one retry loop, with time that stands still; what it does to the product: tests/faults."""

import threading
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError
from pynamodb.exceptions import CancellationReason, VerboseClientError

from gameserver import retries
from gameserver.errors import TryAgain
from tests.faults.layer import Clock
from tests.races.threads import at_once, codes

ATTEMPT_SECONDS = 2.0
DEADLINE_SECONDS = 20.0


def refused(code: str, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "UpdateItem")


def cancelled(*codes: str | None) -> VerboseClientError:
    reasons = [CancellationReason(code=code, message=None) if code else None for code in codes]
    return VerboseClientError(
        {"Error": {"Code": "TransactionCanceledException"}},
        "TransactWriteItems",
        cancellation_reasons=reasons,
    )


class Endpoint:
    """Answers with the given errors in turn, then with success; each attempt takes its time."""

    def __init__(self, clock: Clock, *errors: Exception, seconds: float = 0.0) -> None:
        self.errors = list(errors)
        self.attempts = 0
        self._clock = clock
        self._seconds = seconds

    def __call__(self, operation: str, kwargs: dict[str, Any]) -> str:
        self.attempts += 1
        self._clock.now += self._seconds
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def call(self) -> str:
        return retries.call(self, "UpdateItem", {}, attempt_seconds=ATTEMPT_SECONDS)


@pytest.mark.parametrize(
    "error",
    [
        refused("ThrottlingException"),
        refused("ProvisionedThroughputExceededException"),
        refused("RequestLimitExceeded"),
        refused("TransactionConflictException"),
        refused("TransactionInProgressException"),
        refused("InternalServerError", 500),
        refused("", 503),
        cancelled("TransactionConflict", None),
        cancelled(None, "ThrottlingError", "TransactionConflict"),
        ReadTimeoutError(endpoint_url="http://engine"),
        ConnectTimeoutError(endpoint_url="http://engine"),
    ],
    ids=repr,
)
def test_what_may_pass_is_tried_again(clock: Clock, error: Exception) -> None:
    endpoint = Endpoint(clock, error)
    assert endpoint.call() == "done"
    assert endpoint.attempts == 2


@pytest.mark.parametrize(
    "error",
    [
        refused("ConditionalCheckFailedException"),
        refused("ValidationException"),
        refused("ResourceNotFoundException"),
        refused("AccessDeniedException"),
        cancelled("ConditionalCheckFailed", None),
        # A failed condition decides, whatever else collided.
        cancelled("TransactionConflict", "ConditionalCheckFailed"),
        cancelled("ValidationError"),
        cancelled(),
        ValueError("a bug"),
    ],
    ids=repr,
)
def test_a_final_answer_is_final(clock: Clock, error: Exception) -> None:
    endpoint = Endpoint(clock, error)
    with pytest.raises(type(error)) as raised:
        endpoint.call()
    assert raised.value is error
    assert endpoint.attempts == 1


def test_attempts_are_capped_and_pauses_grow_with_full_jitter(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # T-11; the longest pause that full jitter allows, every time.
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    endpoint = Endpoint(clock, *[refused("ThrottlingException")] * 99)
    with pytest.raises(TryAgain) as gave_up:
        endpoint.call()
    assert endpoint.attempts == retries.MAX_ATTEMPTS == 6
    assert clock.pauses == pytest.approx([0.04, 0.08, 0.16, 0.32, 0.5])
    assert gave_up.value.extra == {"retry_after": 1, "cause": "ThrottlingException"}


def test_a_pause_is_anything_between_nothing_and_its_cap(clock: Clock) -> None:
    for _ in range(50):
        Endpoint(clock, refused("ThrottlingException")).call()
    assert 0 <= min(clock.pauses) < 0.01
    assert 0.03 < max(clock.pauses) <= 0.04


def test_no_attempt_begins_that_could_outlast_the_budget(clock: Clock) -> None:
    # T-11
    endpoint = Endpoint(clock, *[ReadTimeoutError(endpoint_url="")] * 99, seconds=ATTEMPT_SECONDS)
    began = clock.now
    with retries.budget(5.0), pytest.raises(TryAgain):
        endpoint.call()
    assert endpoint.attempts == 2
    assert clock.now - began <= 5.0


def test_all_calls_of_a_request_share_its_budget(clock: Clock) -> None:
    # T-11: each call is fast enough for itself, together they are not.
    with retries.budget(5.0):
        for _ in range(3):
            Endpoint(clock, seconds=1.9).call()
        with pytest.raises(TryAgain):
            Endpoint(clock).call()
    assert Endpoint(clock).call() == "done"


def test_a_call_without_a_budget_has_one_of_its_own(clock: Clock) -> None:
    endpoint = Endpoint(clock, *[ReadTimeoutError(endpoint_url="")] * 99, seconds=1.0)
    began = clock.now
    with pytest.raises(TryAgain):
        endpoint.call()
    assert clock.now - began <= retries.DEFAULT_BUDGET_SECONDS


def test_lost_races_are_run_again_until_the_budget_is_used_up(clock: Clock) -> None:
    began = clock.now
    with retries.budget(1.0), pytest.raises(TryAgain, match="Too many others"):
        list(retries.races())
    assert 1.0 < clock.now - began <= 1.0 + retries.CAP_SECONDS
    with retries.budget(60.0), pytest.raises(TryAgain, match="Too many others"):
        list(retries.races())
    assert len(clock.pauses) > retries.MAX_RACES - 2


def test_the_first_lost_race_is_run_again_at_once(clock: Clock) -> None:
    # The last seat of a game is such a case: no join of a duel may wait for nothing.
    rounds = retries.races()
    assert [next(rounds), next(rounds)] == [0, 1]
    assert clock.pauses == []
    next(rounds)
    assert 0 < clock.pauses[0] <= 0.04


def test_writers_of_one_thing_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "TURN_SECONDS", DEADLINE_SECONDS)
    inside, most_inside = 0, 0

    def write() -> None:
        nonlocal inside, most_inside
        # Leaving a running game is an elimination: whose turn it is may take it again.
        with retries.turn("game"), retries.turn("game"):
            inside += 1
            most_inside = max(most_inside, inside)
            time.sleep(0.01)
            inside -= 1

    assert codes(at_once(*[write] * 8)) == ["ok"] * 8
    assert most_inside == 1


def test_a_writer_that_hangs_holds_nobody_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "TURN_SECONDS", 0.05)
    is_in, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        with retries.turn("game"):
            is_in.set()
            may_end.wait(DEADLINE_SECONDS)

    thread = threading.Thread(target=hang)
    thread.start()
    assert is_in.wait(DEADLINE_SECONDS)
    with retries.turn("game"):
        assert not may_end.is_set()
    may_end.set()
    thread.join()


def test_every_retry_is_counted(clock: Clock) -> None:
    counter = retries.RETRIES.labels("UpdateItem", "ThrottlingException")
    before = counter._value.get()
    Endpoint(clock, refused("ThrottlingException"), refused("ThrottlingException")).call()
    assert counter._value.get() == before + 2
