"""The thread: when it reads, that it reads once for all, and that it survives a fork."""

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gameserver import hints
from settings_singleton.live import FlagsCache
from settings_singleton.refresher import JITTER, POLL_SECONDS, Refresher
from settings_singleton.registry import RawItem
from settings_singleton.shapes import Snapshot
from tests.settings_singleton.fakes import FakeStore
from tests.settings_singleton.items import an_item

DEADLINE_SECONDS = 10


@contextmanager
def a_refresher(store: FakeStore) -> Iterator[tuple[FlagsCache, Refresher]]:
    cache = FlagsCache(store.read)
    refresher = Refresher(cache)
    yield cache, refresher
    refresher.stop()


def changed(cache: FlagsCache) -> threading.Event:
    """An event that the next change sets."""
    event = threading.Event()
    cache.subscribe(lambda before, after: event.set())
    return event


def test_starting_reads_once_and_again_does_nothing() -> None:
    store = FakeStore(an_item())
    with a_refresher(store) as (cache, refresher):
        refresher.start()
        refresher.start()

        assert cache.live.signup_enabled
        assert store.reads == 1
        assert refresher.is_running


def test_a_thousand_cold_readers_cost_one_read() -> None:
    store = FakeStore(an_item())
    with a_refresher(store) as (cache, _):
        gate = threading.Barrier(100)
        seen: list[bool] = []

        def read_ten_times() -> None:
            gate.wait()
            seen.extend(cache.live.signup_enabled for _ in range(10))

        threads = [threading.Thread(target=read_ten_times) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_SECONDS)

        assert seen == [True] * 1_000
        assert store.reads == 1


def test_a_hint_makes_the_thread_read_at_once() -> None:
    store = FakeStore(an_item(1))
    with a_refresher(store) as (cache, refresher):
        refresher.start()
        store.item = an_item(2, signup_enabled=False)
        heard = changed(cache)

        hints.settings_changed(2)

        assert heard.wait(DEADLINE_SECONDS)
        assert not cache.live.signup_enabled


def test_a_hint_about_a_known_revision_costs_no_read() -> None:
    store = FakeStore(an_item(2))
    with a_refresher(store) as (_, refresher):
        refresher.start()

        hints.settings_changed(2)
        hints.settings_changed(1)

        assert not refresher._wake.is_set()
        assert store.reads == 1


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_the_poll_comes_every_ten_seconds_with_jitter(chance: float) -> None:
    cache = FlagsCache(FakeStore(an_item()).read)
    refresher = Refresher(cache, uniform=lambda low, high: low + chance * (high - low))
    cache.refresh()

    assert POLL_SECONDS * (1 - JITTER) <= refresher.pause_seconds() <= POLL_SECONDS * (1 + JITTER)


def test_a_failing_store_is_asked_again_sooner_and_then_as_usual() -> None:
    store = FakeStore()
    store.error = TimeoutError()
    cache = FlagsCache(store.read)
    refresher = Refresher(cache, uniform=lambda low, high: 1.0)
    pauses = []
    for _ in range(6):
        cache.refresh()
        pauses.append(refresher.pause_seconds())

    assert pauses == [1, 2, 4, 8, 10, 10]


def test_a_doubt_is_settled_after_a_second() -> None:
    store = FakeStore(an_item(5))
    cache = FlagsCache(store.read)
    refresher = Refresher(cache, uniform=lambda low, high: 1.0)
    cache.refresh()
    store.item = an_item(4)
    cache.refresh()

    assert refresher.pause_seconds() == 1


def test_a_stopped_thread_leaves_the_last_values() -> None:
    with a_refresher(FakeStore(an_item())) as (cache, refresher):
        refresher.start()
        thread = refresher._thread
        assert thread is not None
        refresher.stop()

        assert not thread.is_alive()
        assert not refresher.is_running
        assert cache.live.signup_enabled


async def test_a_first_read_inside_a_running_loop_waits_for_nothing() -> None:
    """Safe defaults at once, the table's values as soon as the thread has them."""
    answer = threading.Event()
    store = FakeStore(an_item())

    def slow_read() -> dict[str, RawItem]:
        answer.wait(DEADLINE_SECONDS)
        return store.read()

    cache = FlagsCache(slow_read)
    refresher = Refresher(cache)
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def arrive(before: Snapshot, after: Snapshot) -> None:
        loop.call_soon_threadsafe(arrived.set)

    cache.subscribe(arrive)

    assert [cache.live.signup_enabled for _ in range(1_000)] == [False] * 1_000
    answer.set()
    await asyncio.wait_for(arrived.wait(), DEADLINE_SECONDS)

    assert cache.live.signup_enabled
    assert store.reads == 1
    refresher.stop()


async def test_a_loop_does_not_wait_for_another_threads_first_read() -> None:
    reading, answer = threading.Event(), threading.Event()
    store = FakeStore(an_item())

    def slow_read() -> dict[str, RawItem]:
        reading.set()
        answer.wait(DEADLINE_SECONDS)
        return store.read()

    cache = FlagsCache(slow_read)
    refresher = Refresher(cache)
    starter = threading.Thread(target=refresher.start)
    starter.start()
    reading.wait(DEADLINE_SECONDS)

    assert not cache.live.signup_enabled

    answer.set()
    starter.join(DEADLINE_SECONDS)
    assert cache.live.signup_enabled
    refresher.stop()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_keeps_the_values_and_reads_on() -> None:
    store = FakeStore(an_item(1))
    with a_refresher(store) as (cache, refresher):
        refresher.start()
        # Locked as a fork may find them.
        with refresher._starting, cache._reading, cache._publishing:
            child = os.fork()
            if child == 0:
                os._exit(_child(store, cache, refresher))
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 0


def _child(store: FakeStore, cache: FlagsCache, refresher: Refresher) -> int:
    """Return how many things are wrong."""
    refresher.after_fork()
    store.item = an_item(2, signup_enabled=False)
    threads_before = threading.active_count()
    has_parents_values = cache.live.signup_enabled
    heard = changed(cache)
    hints.settings_changed(2)
    return [
        threads_before == 1,
        has_parents_values,
        refresher.is_running,
        heard.wait(DEADLINE_SECONDS),
        not cache.live.signup_enabled,
    ].count(False)
