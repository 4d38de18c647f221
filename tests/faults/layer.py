"""The fault layer: it sits in the shared client, between signing and sending."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from gameserver import retries
from gameserver.models import Item

Body = dict[str, Any]

CLASSES = (
    "conflict",
    "throttling",
    "index throttling",
    "in progress",
    "500 before",
    "500 after",
    "dropped response",
    "slow response",
    "black hole",
    "stale index",
    "unprocessed keys",
    "unprocessed items",
)
DELIVERED: Counter[str] = Counter()


@dataclass
class Request:
    """One attempt on its way: what is asked, and how to really send it."""

    operation: str
    body: Body
    url: str
    send: Callable[[], AWSResponse]
    send_instead: Callable[[Body], AWSResponse]


Fault = Callable[[Request], AWSResponse | None]


@dataclass
class _Order:
    fault: Fault
    operation: str | None
    left: int | None
    when: Callable[[Body], bool]

    def takes(self, request: Request) -> bool:
        fits = self.operation in {None, request.operation} and self.when(request.body)
        if not fits or self.left == 0:
            return False
        if self.left is not None:
            self.left -= 1
        return True


@dataclass
class Faults:
    """The faults ordered for this test, and every attempt that was made meanwhile."""

    sent: list[Request] = field(default_factory=list)
    _orders: list[_Order] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def order(
        self,
        fault: Fault,
        on: str | None = None,
        *,
        times: int | None = 1,
        when: Callable[[Body], bool] = lambda body: True,
    ) -> None:
        """Deliver `fault` to the next `times` attempts (None: to all) of an operation."""
        with self._lock:
            self._orders.append(_Order(fault, on, times, when))

    def stop(self) -> None:
        """Deliver nothing more."""
        with self._lock:
            self._orders.clear()

    def attempts(self, operation: str) -> int:
        return sum(request.operation == operation for request in self.sent)

    def before_send(self, client: Any, request: AWSPreparedRequest) -> AWSResponse | None:
        target = request.headers["X-Amz-Target"]
        operation = (target.decode() if isinstance(target, bytes) else target).rpartition(".")[2]

        def send(body: Body | None = None) -> AWSResponse:
            if body is not None:
                # The local engine does not look at the signature, which no longer fits.
                request.body = json.dumps(body).encode()
                request.headers["Content-Length"] = str(len(request.body))
            answer: AWSResponse = client._endpoint.http_session.send(request)
            return answer

        body = json.loads(cast(bytes, request.body))
        attempt = Request(operation, body, request.url, send, send)
        with self._lock:
            self.sent.append(attempt)
            order = next((order for order in self._orders if order.takes(attempt)), None)
        return order.fault(attempt) if order else None


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 1000.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@contextmanager
def on_shared_client() -> Iterator[Faults]:
    """Put a fault layer into the connection that all models share."""
    faults = Faults()
    client: Any = Item._get_connection().connection.client

    # botocore takes a returned response for the answer, which its stubs do not say.
    def handler(request: AWSPreparedRequest, **_: Any) -> Any:
        return faults.before_send(client, request)

    client.meta.events.register("before-send.dynamodb.*", handler)
    try:
        yield faults
    finally:
        client.meta.events.unregister("before-send.dynamodb.*", handler)


@pytest.fixture
def faults(table: None) -> Iterator[Faults]:
    """Faults on the way to an empty table."""
    with on_shared_client() as faults:
        yield faults


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The retries' time, standing still."""
    clock = Clock()
    monkeypatch.setattr(retries, "time", clock)
    return clock


def undelivered() -> list[str]:
    """Return the classes of faults that no test of this run has met."""
    return [name for name in CLASSES if not DELIVERED[name]]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a whole run in which a class of faults was never delivered."""
    options = session.config.option
    is_whole = [Path(one).resolve() for one in session.config.args] == [
        session.config.rootpath / "tests"
    ]
    if not is_whole or options.keyword or options.markexpr or options.collectonly or exitstatus:
        return
    if missing := undelivered():
        session.config.get_terminal_writer().line(f"\nFaults never delivered: {', '.join(missing)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
