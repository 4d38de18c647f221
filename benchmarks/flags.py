"""Measure the settings singleton: `python -m benchmarks.flags`.

Prints a table of figure, target and whether it was met; exits with 1 if one was missed. It starts
an engine in memory, a Redis, and four server processes of its own; run it on an idle machine.
"""

import os
import statistics
import sys
import tempfile
import threading
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READS = 10_000
REPEATS = 50
COLD_READERS = 1_000
FLIPS = 60
PROCESSES = 4
HOUR_SECONDS = 3_600


@dataclass(frozen=True)
class Figure:
    """One measured value; `limit` is the most it may be, None where it is only there to compare."""

    name: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def is_met(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def __str__(self) -> str:
        target = "" if self.limit is None else f"at most {self.limit:g}"
        mark = "" if self.limit is None else ("yes" if self.is_met else "NO")
        return f"| {self.name} | {self.value:.4g} {self.unit} | {target} | {mark} |"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, surroundings(Path(folder)) as environment:
        figures = [
            *read_figures(),
            *table_figures(),
            *flip_figures(environment),
        ]
    print("| Figure | Measured | Target | Met |\n|---|---|---|---|")
    for figure in figures:
        print(figure)
    return 0 if all(figure.is_met for figure in figures) else 1


@contextmanager
def surroundings(folder: Path) -> Iterator[dict[str, str]]:
    """Give an engine, a Redis and Django that uses them; and the environment of more processes."""
    from tests.servers import running_redis, server_environment

    with running_redis() as redis_url:
        environment = server_environment(
            folder,
            AWS_ACCESS_KEY_ID="local",
            AWS_SECRET_ACCESS_KEY="local",  # noqa: S106 (any)
            REDIS_URL=redis_url,
            LOG_LEVEL="ERROR",
        )
        os.environ.update(environment)
        import django
        from django.conf import settings

        django.setup()
        from gameserver.engine import EmbeddedEngine

        with EmbeddedEngine() as engine:
            environment["DYNAMODB_ENDPOINT_URL"] = settings.DYNAMODB_ENDPOINT_URL = engine.url
            prepare_table()
            yield environment


def prepare_table() -> None:
    from django.utils import timezone

    from gameserver.schema import create_table
    from settings_singleton import cache, services

    create_table()
    services.create_first_item(timezone.now())
    cache.start()


def read_figures() -> list[Figure]:
    """Time one read of a flag, beside what else one might read it from."""
    from django.core.cache.backends.locmem import LocMemCache
    from openfeature import api

    from settings_singleton import cache
    from settings_singleton.cache import flags
    from settings_singleton.openfeature import SettingsProvider

    class Bare:
        def __init__(self) -> None:
            self.signup_enabled = True

    bare = Bare()
    local = LocMemCache("flags", {})
    local.set("signup_enabled", True)
    api.set_provider_and_wait(SettingsProvider())
    client = api.get_client()
    # The thread has reads of its own; here only those of flags count.
    cache.stop()
    requests = count_of_requests()
    names = {"flags": flags, "bare": bare, "local": local, "client": client}
    figures = [
        Figure("read of a flag", nanoseconds("flags.signup_enabled", names), "ns", 150),
        Figure("bare attribute", nanoseconds("bare.signup_enabled", names), "ns"),
        Figure("django's LocMemCache", nanoseconds("local.get('signup_enabled')", names), "ns"),
        Figure(
            "OpenFeature client",
            nanoseconds("client.get_boolean_value('signup_enabled', False)", names),
            "ns",
        ),
    ]
    for _ in range(100_000):
        _ = flags.signup_enabled
    made = count_of_requests() - requests
    cache.start()
    return [*figures, Figure("DynamoDB requests of 100,000 reads", made, "", 0)]


def nanoseconds(statement: str, names: dict[str, Any]) -> float:
    """Return the best of many short runs: what the machine does beside them only adds."""
    best = min(timeit.repeat(statement, globals=names, number=READS, repeat=REPEATS))
    return best / READS * 1e9


def table_figures() -> list[Figure]:
    """Count what keeping the settings fresh asks of the table."""
    from settings_singleton import models
    from settings_singleton.live import FlagsCache
    from settings_singleton.refresher import Refresher

    cache = FlagsCache(models.read_flags)
    refresher = Refresher(cache)
    seen: list[bool] = []
    requests = count_of_requests()
    readers = [
        threading.Thread(target=lambda: seen.append(cache.live.signup_enabled))
        for _ in range(COLD_READERS)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    cold = count_of_requests() - requests
    refresher.stop()
    assert seen == [True] * COLD_READERS

    hours, polls, passed = 100, 0, 0.0
    while passed < hours * HOUR_SECONDS:
        passed += refresher.pause_seconds()
        polls += 1
    item = models.read_flags()["FLAGS#V1"]
    return [
        Figure(f"GetItem for {COLD_READERS} cold readers at once", cold, "", 1),
        Figure("reads a process-hour", polls / hours, "", 361),
        Figure("the item", size_of(item), "bytes", 1_024),
    ]


def size_of(item: dict[str, dict[str, Any]]) -> int:
    """Return an item's billed size.

    Source: DynamoDB developer guide, "Item sizes and formats".
    """
    size = 0
    for name, attribute in item.items():
        ((kind, value),) = attribute.items()
        size += len(name.encode())
        size += {"BOOL": 1, "NULL": 1}.get(kind) or (
            len(value.encode()) if kind == "S" else len(value.strip("-0.")) // 2 + 2
        )
    return size


def flip_figures(environment: dict[str, str]) -> list[Figure]:
    """Flip in this process; time until the last of four others answers the new value."""
    from tests.settings_singleton.processes import Worker, wait_until

    workers = [Worker(environment) for _ in range(PROCESSES)]
    try:
        for worker in workers:
            worker.wait_until_it_listens()
            wait_until(worker.is_ready)
        # Their ends of the bridge need a moment; what comes before is left to the poll.
        time.sleep(3)
        took = [flip(workers) for _ in range(FLIPS)]
    finally:
        for worker in workers:
            worker.close()
    p99 = statistics.quantiles(took, n=100, method="inclusive")[98]
    return [
        Figure(f"flip until {PROCESSES} processes show it, median", statistics.median(took), "ms"),
        Figure(f"flip until {PROCESSES} processes show it, p99", p99, "ms", 250),
    ]


def flip(workers: list[Any]) -> float:
    """Return milliseconds from the operator's call to the slowest process's new answer."""
    from django.utils import timezone

    from gameserver.feeds.courier import carried_hints
    from settings_singleton import services
    from settings_singleton.cache import flags

    began = time.perf_counter()
    seen: list[float] = []

    def watch(worker: Any, revision: int) -> None:
        while worker.revision < revision:
            time.sleep(0.001)
        seen.append(time.perf_counter())

    with carried_hints():
        done = services.change(
            {"chat_enabled": not flags.chat_enabled},
            who="benchmark",
            why="benchmark",
            now=timezone.now(),
        )
    watchers = [threading.Thread(target=watch, args=(one, done.revision)) for one in workers]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    return (max(seen) - began) * 1_000


def count_of_requests() -> float:
    """Return how many requests this process has sent to the table so far."""
    from gameserver.capacity import REQUESTS

    return sum(
        sample.value
        for metric in REQUESTS.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    )


if __name__ == "__main__":
    sys.exit(main())
