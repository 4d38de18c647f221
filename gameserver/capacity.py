"""What each access pattern really costs, read from every DynamoDB response.

`access_pattern` names a model's classmethod; every call made inside it is counted under that name,
in Prometheus and in any `measure()` block of the same context.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from prometheus_client import Counter

P = ParamSpec("P")
R = TypeVar("R")

REQUESTS = Counter("dynamodb_requests_total", "Round trips", ["pattern", "operation"])
UNITS = Counter("dynamodb_consumed_units_total", "Consumed capacity", ["pattern", "unit", "where"])

# Every access pattern in the code, by name, with the method that serves it.
PATTERNS: dict[str, str] = {}

_pattern: ContextVar[str] = ContextVar("access_pattern", default="unnamed")
_meters: ContextVar[tuple["Meter", ...]] = ContextVar("capacity_meters", default=())

_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"})


@dataclass
class Meter:
    """Round trips and capacity units consumed inside one `measure()` block."""

    operations: list[str] = field(default_factory=list)
    read_units: float = 0.0
    write_units: float = 0.0
    index_read_units: float = 0.0
    index_write_units: dict[str, float] = field(default_factory=dict)

    @property
    def round_trips(self) -> int:
        """Requests sent, retries included."""
        return len(self.operations)


@contextmanager
def measure() -> Iterator[Meter]:
    """Collect the cost of every DynamoDB call made inside the block."""
    meter = Meter()
    token = _meters.set((*_meters.get(), meter))
    try:
        yield meter
    finally:
        _meters.reset(token)


def access_pattern(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Name the access pattern that a model's classmethod serves (put it under @classmethod)."""

    def decorate(method: Callable[P, R]) -> Callable[P, R]:
        PATTERNS[name] = method.__qualname__

        @functools.wraps(method)
        def named(*args: P.args, **kwargs: P.kwargs) -> R:
            token = _pattern.set(name)
            try:
                return method(*args, **kwargs)
            finally:
                _pattern.reset(token)

        return named

    return decorate


def record(operation: str, response: dict[str, Any] | None) -> None:
    """Count one answered call; `response` is None when it failed."""
    pattern = _pattern.get()
    REQUESTS.labels(pattern, operation).inc()
    for meter in _meters.get():
        meter.operations.append(operation)
    consumed = (response or {}).get("ConsumedCapacity") or []
    for units in consumed if isinstance(consumed, list) else [consumed]:
        _record_units(pattern, operation, units)


def _record_units(pattern: str, operation: str, units: dict[str, Any]) -> None:
    unit = "write" if operation in _WRITES else "read"
    indexes = {
        name: float(used["CapacityUnits"])
        for name, used in units.get("GlobalSecondaryIndexes", {}).items()
    }
    base = float(units["CapacityUnits"]) - sum(indexes.values())
    UNITS.labels(pattern, unit, "table").inc(base)
    for name, used in indexes.items():
        UNITS.labels(pattern, unit, name).inc(used)
    for meter in _meters.get():
        if unit == "read":
            meter.read_units += base
            meter.index_read_units += sum(indexes.values())
            continue
        meter.write_units += base
        for name, used in indexes.items():
            meter.index_write_units[name] = meter.index_write_units.get(name, 0.0) + used
