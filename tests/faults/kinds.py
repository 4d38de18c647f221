"""The faults: each answers instead of the engine, or spoils what the engine answered."""

import itertools
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from tests.faults.layer import DELIVERED, Body, Clock, Fault, Request

_request_ids = itertools.count()


def conflict(request: Request) -> AWSResponse:
    """Cancel a transaction because another one works on its first item."""
    DELIVERED["conflict"] += 1
    return _cancelled(request, "TransactionConflict")


def throttled_transaction(request: Request) -> AWSResponse:
    """Cancel a transaction because its first item's partition has no capacity left."""
    DELIVERED["throttling"] += 1
    return _cancelled(request, "ThrottlingError")


def throttled(request: Request) -> AWSResponse:
    """Answer that the table has no capacity left."""
    DELIVERED["throttling"] += 1
    return _error(request, 400, "ProvisionedThroughputExceededException")


def throttled_index(index: str) -> Fault:
    """Answer that a write to an index has no capacity left, naming it as AWS does."""

    def fault(request: Request) -> AWSResponse:
        DELIVERED["index throttling"] += 1
        message = f"The level of configured provisioned throughput for index {index} was exceeded"
        return _error(request, 400, "ThrottlingException", message)

    return fault


def in_progress(request: Request) -> AWSResponse:
    """Answer that the transaction with this token is still being done."""
    DELIVERED["in progress"] += 1
    return _error(request, 400, "TransactionInProgressException")


def error_before(request: Request) -> AWSResponse:
    """Answer 500 and do nothing."""
    DELIVERED["500 before"] += 1
    return _error(request, 500, "InternalServerError")


def error_after(request: Request) -> AWSResponse:
    """Do what is asked, then answer 500."""
    request.send()
    DELIVERED["500 after"] += 1
    return _error(request, 500, "InternalServerError")


def dropped(request: Request) -> AWSResponse | None:
    """Do what is asked, then cut the connection."""
    request.send()
    DELIVERED["dropped response"] += 1
    raise ConnectionClosedError(endpoint_url=request.url)


def slow(clock: Clock, seconds: float) -> Fault:
    """Do what is asked, but answer later than the reader waits."""

    def fault(request: Request) -> AWSResponse | None:
        request.send()
        clock.now += seconds
        DELIVERED["slow response"] += 1
        raise ReadTimeoutError(endpoint_url=request.url)

    return fault


@contextmanager
def black_hole() -> Iterator[str]:
    """Give the URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []

        def swallow() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:
                    return
                DELIVERED["black hole"] += 1

        thread = threading.Thread(target=swallow)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            # Wakes the thread up; closing alone does not.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


class StaleIndex:
    """Answers each index query as it was answered the first time."""

    def __init__(self) -> None:
        self._first: dict[str, bytes] = {}

    def __call__(self, request: Request) -> AWSResponse | None:
        if "IndexName" not in request.body:
            return None
        question = json.dumps(request.body, sort_keys=True)
        if question not in self._first:
            self._first[question] = request.send().content
        else:
            DELIVERED["stale index"] += 1
        return _response(request, 200, json.loads(self._first[question]))


def unprocessed_keys(request: Request) -> AWSResponse:
    """Answer a part of a BatchGetItem: a third, but at least one key, is left for another time."""
    answer = json.loads(request.send().content)
    left: Body = {}
    for table, asked in request.body["RequestItems"].items():
        keys = asked["Keys"][: max(1, len(asked["Keys"]) // 3)]
        left[table] = {**asked, "Keys": keys}
        answer["Responses"][table] = [
            item
            for item in answer["Responses"][table]
            if {name: item[name] for name in ("PK", "SK")} not in keys
        ]
    answer["UnprocessedKeys"] = left
    DELIVERED["unprocessed keys"] += 1
    return _response(request, 200, answer)


def _cancelled(request: Request, code: str) -> AWSResponse:
    others = len(request.body["TransactItems"]) - 1
    reasons = [{"Code": code}, *({"Code": "None"} for _ in range(others))]
    message = f"Transaction cancelled, please refer cancellation reasons [{code}, ...]"
    return _error(
        request, 400, "TransactionCanceledException", message, CancellationReasons=reasons
    )


def _error(
    request: Request, status: int, code: str, message: str = "injected", **more: Any
) -> AWSResponse:
    kind = f"com.amazonaws.dynamodb.v20120810#{code}"
    return _response(request, status, {"__type": kind, "message": message, **more})


def _response(request: Request, status: int, body: Body) -> AWSResponse:
    headers = HTTPHeaders()
    headers["Content-Type"] = "application/x-amz-json-1.0"
    headers["x-amzn-RequestId"] = f"FAULT{next(_request_ids)}"
    return AWSResponse(request.url, status, headers, _Raw(json.dumps(body).encode()))


@dataclass(frozen=True)
class _Raw:
    body: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.body


def unprocessed_items(request: Request) -> AWSResponse:
    """Do a part of a BatchWriteItem: a third, but at least one write, is left undone."""
    table, asked = next(iter(request.body["RequestItems"].items()))
    left = asked[: max(1, len(asked) // 3)]
    answer: Body = {"UnprocessedItems": {table: left}}
    if done := asked[len(left) :]:
        request.send_instead({**request.body, "RequestItems": {table: done}})
    DELIVERED["unprocessed items"] += 1
    return _response(request, 200, answer)


class FirstOfEach:
    """Delivers a fault to the first attempt of each call, and leaves its repeats alone."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._seen: set[str] = set()

    def __call__(self, request: Request) -> AWSResponse | None:
        call = json.dumps(request.body, sort_keys=True)
        if call in self._seen:
            return None
        self._seen.add(call)
        return self._fault(request)
