"""A settings item in memory that fails on demand, and a clock that goes when it is told to."""

from collections.abc import Iterator
from contextlib import contextmanager

from gameserver.table import FLAGS_V1_SK
from settings_singleton.registry import RawItem


class FakeStore:
    """What the table would answer; `error` is raised instead while it is set."""

    def __init__(self, item: RawItem | None = None) -> None:
        self.item = item
        self.error: Exception | None = None
        self.reads = 0

    def read(self) -> dict[str, RawItem]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return {} if self.item is None else {FLAGS_V1_SK: self.item}

    @contextmanager
    def failing(self, error: Exception) -> Iterator[None]:
        self.error = error
        yield
        self.error = None


class FakeClock:
    """Seconds since some moment."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now
