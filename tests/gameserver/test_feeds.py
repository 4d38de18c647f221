"""A feed reads once for all, tells only differences, and outlives whatever ails its source."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gameserver.errors import GameNotFound, TryAgain
from gameserver.feeds import feed as feeds
from gameserver.feeds.bridge import Bridge
from gameserver.feeds.connection import Connection
from gameserver.feeds.feed import Feed, Message
from gameserver.feeds.registry import Registry
from tests.gameserver.outlets import DEADLINE_SECONDS, Outlet, a_connection, until


class Source:
    """What the feeds of a test read, and how often they did."""

    def __init__(self) -> None:
        self.value = 1
        self.reads = 0
        self.seconds = 0.0
        self.error: Exception | None = None

    def read(self) -> int:
        value = self.value
        self.reads += 1
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return value


class NumberFeed(Feed[int]):
    kind = "number"
    poll_seconds = 60.0
    rest_seconds = 0.02

    def __init__(self, name: str, source: Source) -> None:
        self.source = source
        super().__init__(name)

    @property
    def topics(self) -> list[str]:
        return [f"number.{self.key[1]}"]

    def read(self) -> int:
        return self.source.read()

    def snapshot(self, state: int) -> Message:
        return {"value": state}

    def change(self, old: int, new: int) -> Message | None:
        return None if old == new else {"from": old, "to": new}


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
async def registry(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    monkeypatch.setattr("gameserver.feeds.registry.LINGER_SECONDS", 0.1)
    monkeypatch.setattr(feeds, "FIRST_RETRY_SECONDS", 0.05)
    registry = Registry(Bridge(lambda *said: None, lambda topic: None))
    yield registry
    await registry.stop()


async def watch(registry: Registry, source: Source, outlet: Outlet | None = None) -> Connection:
    connection = a_connection(outlet)
    await registry.watch(
        ("number", "n"), lambda name: NumberFeed(name, source), connection, lambda: None
    )
    return connection


async def test_a_watcher_gets_a_snapshot_and_then_each_difference(
    registry: Registry, source: Source
) -> None:
    outlet = Outlet()
    await watch(registry, source, outlet)
    assert await outlet.next() == '{"value":1}'
    source.value = 2
    registry.wake("number.n")
    assert await outlet.next() == '{"from":1,"to":2}'


async def test_a_change_is_read_and_serialised_once_for_all_watchers(
    registry: Registry, source: Source
) -> None:
    outlets = [Outlet() for _ in range(50)]
    for outlet in outlets:
        await watch(registry, source, outlet)
        await outlet.next()
    reads = source.reads
    source.value = 2
    registry.wake("number.n")
    frames = {
        id(await asyncio.wait_for(outlet.taken.get(), DEADLINE_SECONDS)) for outlet in outlets
    }
    assert len(frames) == 1
    assert source.reads == reads + 1


async def test_a_burst_of_hints_costs_few_reads(registry: Registry, source: Source) -> None:
    outlet = Outlet()
    await watch(registry, source, outlet)
    reads, begin = source.reads, time.monotonic()
    while time.monotonic() - begin < 0.5:
        source.value += 1
        registry.wake("number.n")
        await asyncio.sleep(0.001)
    assert source.reads - reads <= 0.5 / NumberFeed.rest_seconds + 2


async def test_watchers_who_come_together_share_a_read(registry: Registry, source: Source) -> None:
    source.seconds = 0.05
    await asyncio.gather(*(watch(registry, source) for _ in range(50)))
    assert source.reads <= 2


async def test_a_watcher_who_comes_during_a_read_waits_for_the_next_one(
    registry: Registry, source: Source
) -> None:
    await watch(registry, source)
    source.seconds = 0.1
    registry.wake("number.n")
    await until(lambda: source.reads == 2)
    source.value = 2
    outlet = Outlet()
    await watch(registry, source, outlet)
    assert await outlet.next() == '{"value":2}'


async def test_a_lost_hint_is_found_by_the_poll(
    registry: Registry, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NumberFeed, "poll_seconds", 0.1)
    outlet = Outlet()
    await watch(registry, source, outlet)
    await outlet.next()
    source.value = 2
    assert await outlet.next() == '{"from":1,"to":2}'


async def test_a_source_that_lags_is_read_once_more_after_the_last_hint(
    registry: Registry, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NumberFeed, "settle_seconds", 0.1)
    outlet = Outlet()
    await watch(registry, source, outlet)
    await outlet.next()
    registry.wake("number.n")
    await until(lambda: source.reads == 2)
    source.value = 2
    assert await outlet.next() == '{"from":1,"to":2}'
    assert source.reads == 3


async def test_a_feed_outlives_a_source_that_fails(registry: Registry, source: Source) -> None:
    outlet = Outlet()
    await watch(registry, source, outlet)
    await outlet.next()
    source.error, source.value = TryAgain(), 2
    registry.wake("number.n")
    await until(lambda: source.reads > 3)
    source.error = None
    assert await outlet.next() == '{"from":1,"to":2}'


@pytest.mark.parametrize(
    ("error", "told"), [(GameNotFound(), GameNotFound), (RuntimeError("a bug"), TryAgain)]
)
async def test_what_cannot_be_read_cannot_be_watched(
    registry: Registry, source: Source, error: Exception, told: type[Exception]
) -> None:
    source.error = error
    with pytest.raises(told):
        await watch(registry, source)
    await until(lambda: registry.get(("number", "n")) is None)
    assert source.reads < 5


async def test_a_feed_without_watchers_is_dropped_with_its_subscriptions(
    registry: Registry, source: Source
) -> None:
    tasks = len(asyncio.all_tasks())
    for _ in range(100):
        registry.forget(await watch(registry, source))
    await until(lambda: registry.get(("number", "n")) is None)
    await until(lambda: len(asyncio.all_tasks()) == tasks)
    assert registry._bridge._wanted == {"everyone": 1}
    assert registry._by_topic == {}


async def test_who_comes_back_at_once_finds_the_feed_as_it_was(
    registry: Registry, source: Source
) -> None:
    registry.forget(await watch(registry, source))
    feed = registry.get(("number", "n"))
    await watch(registry, source)
    await asyncio.sleep(0.3)
    assert registry.get(("number", "n")) is feed
