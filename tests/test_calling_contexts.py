"""A-02: every service can be called from wherever code runs, and none waits for itself."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient
from django.urls import path
from pytest_django import Settings

from gameserver.blocking import POOL, run_blocking
from gameserver.commands import TableCommand
from matches.consumers import realtime as running
from matches.consumers.realtime import Realtime
from tests.service_calls import UNUSUAL, USUAL, Scene, arguments, every_call, every_service

WATCHDOG_SECONDS = 10

pytestmark = pytest.mark.usefixtures("stored_flags", "cheap_passwords")


@pytest.fixture
async def realtime() -> AsyncIterator[Realtime]:
    """Feeds that hear the services' hints, on the test's own loop."""
    yield running.current()
    await running.stop()


@contextmanager
def watchdog(name: str) -> Iterator[None]:
    """Interrupt the main thread, whatever it waits for, and say which service it was."""

    def bark(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"{name} did not return within {WATCHDOG_SECONDS} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(WATCHDOG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_services_are_found_and_the_tables_name_nothing_else() -> None:
    found = every_service()
    assert {"matches.services.lobby.join_game", "settings_singleton.services.change"} <= set(found)
    assert UNUSUAL.keys() <= found.keys()
    assert USUAL.keys() <= {name for one in found.values() for name in signature(one).parameters}


def test_a_service_whose_arguments_nobody_knows_is_named(tmp_path: Path) -> None:
    def new_service(username: str, shoe_size: int) -> None:
        raise AssertionError("called without its arguments")

    with pytest.raises(AssertionError, match=r"\['shoe_size'\] of players.services.new"):
        arguments("players.services.new", new_service, Scene(tmp_path))


async def test_a_sync_view_under_asgi(
    realtime: Realtime, settings: Settings, tmp_path: Path
) -> None:
    waiting: list[Callable[[], Any]] = []

    def view(request: HttpRequest) -> HttpResponse:
        waiting.pop()()
        return HttpResponse()

    settings.ROOT_URLCONF = (path("call/", view),)
    browser = AsyncClient()
    for name, call in every_call(tmp_path):
        waiting.append(call)
        with watchdog(name):
            assert (await browser.get("/call/")).status_code == 200
    assert not waiting


async def test_a_consumer(realtime: Realtime, tmp_path: Path) -> None:
    for name, call in every_call(tmp_path):
        with watchdog(name):
            await run_blocking(call)


def test_a_management_command(tmp_path: Path) -> None:
    class Calling(TableCommand):
        stealth_options = ("call",)

        def handle(self, *args: Any, **options: Any) -> None:
            options["call"]()

    for name, call in every_call(tmp_path):
        with watchdog(name):
            call_command(Calling(), call=call)


def test_a_background_thread(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as thread:
        for name, call in every_call(tmp_path):
            with watchdog(name):
                thread.submit(call).result()


async def test_tasks_that_share_the_last_free_thread(
    realtime: Realtime, settings: Settings, tmp_path: Path
) -> None:
    # A service that waited for another thread of the pool would wait for ever.
    settings.REQUEST_BUDGET_SECONDS = 60
    calls = dict(every_call(tmp_path))
    first, others = threading.Event(), threading.Event()
    busy = [POOL.submit(first.wait)]
    busy += [POOL.submit(others.wait) for _ in range(django_settings.BLOCKING_THREADS - 1)]
    try:
        tasks = {name: asyncio.create_task(run_blocking(call)) for name, call in calls.items()}
        # The loop goes on while they all wait.
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks.values())
        first.set()
        done, waiting = await asyncio.wait(tasks.values(), timeout=WATCHDOG_SECONDS)
        assert not waiting, [name for name, task in tasks.items() if task in waiting]
        await asyncio.gather(*done)
    finally:
        first.set()
        others.set()
        await asyncio.gather(*map(asyncio.wrap_future, busy))
