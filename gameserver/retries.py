"""The one place that retries DynamoDB calls.

It sits under pynamodb, so a transaction is repeated with the same ClientRequestToken and a write
whose answer was lost is recognised by the engine instead of being done twice.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import structlog
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as EndpointConnectionError
from prometheus_client import Counter

from gameserver.errors import TryAgain

MAX_ATTEMPTS = 6
# How often a transition reloads and tries again after another one was faster.
MAX_RACES = 30
# How long a writer lets others of its process go first.
TURN_SECONDS = 1.0
BASE_SECONDS = 0.02
CAP_SECONDS = 0.5
# A call that starts without a budget of its own (a command, a thread) gets this one.
DEFAULT_BUDGET_SECONDS = 5.0

# Source: DynamoDB developer guide, "Error handling" (codes marked "OK to retry: yes").
RETRYABLE_CODES = frozenset(
    {
        "InternalServerError",
        "InternalFailure",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
# Source: TransactWriteItems API reference, cancellation reason codes that ask for a retry.
RETRYABLE_REASONS = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)

RETRIES = Counter("dynamodb_retries_total", "Repeated DynamoDB calls", ["operation", "cause"])

T = TypeVar("T")

_log = structlog.get_logger(__name__)
# Re-entrant: leaving a running game is an elimination. Two things may share a lock.
_turns = [threading.RLock() for _ in range(256)]
_deadline: ContextVar[float | None] = ContextVar("dynamodb_deadline", default=None)


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Bound the time that all DynamoDB calls inside may take together, retries included."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def races() -> Iterator[int]:
    """Count the tries of a load-decide-write that another writer may beat, pausing between them.

    The first repeat comes at once: its refusal mostly told which other write is the right one.

    Raises: TryAgain (`try_again`) when MAX_RACES tries or the budget are used up.
    """
    yield from _rounds(MAX_RACES, at_once=1)
    raise TryAgain("Too many others changed this at the same moment. Try again.")


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Let this process's writers of one thing go one after the other, as long as that is quick.

    Fifty that load, decide and write at once would else beat each other again and again. It is a
    courtesy: between processes, and for who has waited TURN_SECONDS, the table's conditions decide.
    """
    lock = _turns[hash(name) % len(_turns)]
    is_mine = lock.acquire(timeout=TURN_SECONDS)
    try:
        yield
    finally:
        if is_mine:
            lock.release()


def leftovers() -> Iterator[int]:
    """Count the rounds of a batch that DynamoDB answers in parts, pausing between them.

    Raises: TryAgain (`try_again`) when MAX_ATTEMPTS rounds or the budget are used up.
    """
    yield from _rounds(MAX_ATTEMPTS, at_once=0)
    raise TryAgain(cause="unprocessed")


def _rounds(most: int, *, at_once: int) -> Iterator[int]:
    deadline = _deadline_of_call()
    for number in range(most):
        if number and time.monotonic() > deadline:
            return
        if number > at_once:
            time.sleep(_pause_after(number - at_once))
        yield number


def _deadline_of_call() -> float:
    deadline = _deadline.get()
    return time.monotonic() + DEFAULT_BUDGET_SECONDS if deadline is None else deadline


def _pause_after(failures: int) -> float:
    return random.uniform(0, min(CAP_SECONDS, BASE_SECONDS * 2**failures))  # noqa: S311 (jitter)


def retry_cause(error: Exception) -> str | None:
    """Name why a call is worth repeating, or None if its answer is final."""
    if isinstance(error, EndpointConnectionError | HTTPClientError):
        return type(error).__name__
    if not isinstance(error, ClientError):
        return None
    code: str = error.response.get("Error", {}).get("Code", "")
    if code == "TransactionCanceledException":
        reasons = {
            reason.code
            for reason in getattr(error, "cancellation_reasons", ())
            if reason is not None
        }
        # A failed condition decides the matter, whatever else collided in the same transaction.
        return min(reasons) if reasons and reasons <= RETRYABLE_REASONS else None
    if code in RETRYABLE_CODES or _http_status(error) >= 500:
        return code or "InternalServerError"
    return None


def call(
    send: Callable[[str, dict[str, Any]], T],
    operation: str,
    kwargs: dict[str, Any],
    *,
    attempt_seconds: float,
) -> T:
    """Send one DynamoDB call, repeating it with capped exponential back-off and full jitter.

    `attempt_seconds` is how long one attempt may hang: no repeat is begun that could outlast the
    budget, and no first attempt after it.

    Raises: TryAgain (`try_again`) when attempts or budget are used up.
    Source: AWS Architecture Blog, "Exponential Backoff And Jitter" (full jitter).
    """
    deadline = _deadline_of_call()
    if time.monotonic() > deadline:
        # The calls before this one were slow, each for itself within its time.
        raise TryAgain(cause="budget")
    attempt = 0
    while True:
        attempt += 1
        try:
            return send(operation, kwargs)
        except Exception as error:
            cause = retry_cause(error)
            if cause is None:
                raise
            pause = _pause_after(attempt)
            out_of_time = time.monotonic() + pause + attempt_seconds > deadline
            if attempt >= MAX_ATTEMPTS or out_of_time:
                _log.warning("dynamodb_gave_up", operation=operation, cause=cause, attempts=attempt)
                raise TryAgain(cause=cause) from error
            RETRIES.labels(operation, cause).inc()
            time.sleep(pause)


def _http_status(error: ClientError) -> int:
    # pynamodb re-raises botocore's error without its metadata; the original is the cause.
    original = error.__cause__ if isinstance(error.__cause__, ClientError) else error
    return int(original.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
