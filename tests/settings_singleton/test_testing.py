"""`override_flags`: for one block or test, in every thread, sync and async; never stored."""

import asyncio
import threading

import pytest

from gameserver.errors import ValidationFailed
from settings_singleton import cache, services
from settings_singleton.cache import flags
from settings_singleton.testing import fresh_flags, override_flags


@pytest.fixture(autouse=True)
def nothing_read() -> None:
    """The endpoint of a test run without an engine answers nobody: a read would show."""
    cache.forget()


def test_a_block_sees_the_value_and_nobody_sees_it_afterwards() -> None:
    with override_flags(signup_enabled=True):
        with override_flags(signup_enabled=False):
            assert not flags.signup_enabled
        assert flags.signup_enabled


def test_without_a_table_the_settings_that_are_not_named_have_their_first_values() -> None:
    with override_flags(win_reward_coins=7):
        assert flags.joining_enabled
        assert not flags.maintenance_mode
        assert flags.requests_per_minute == 6_000


def test_nothing_is_read_and_nothing_is_known_afterwards() -> None:
    with override_flags(signup_enabled=False):
        assert not flags.signup_enabled

    assert cache.status().age_seconds is None
    assert not cache._cache.has_snapshot()


def test_overrides_nest_and_end_in_any_order() -> None:
    outer = override_flags(chat_enabled=False)
    inner = override_flags(joining_enabled=False)
    with outer:
        inner.__enter__()
        assert (flags.chat_enabled, flags.joining_enabled) == (False, False)
    assert (flags.chat_enabled, flags.joining_enabled) == (True, False)
    inner.__exit__(None, None, None)
    assert not cache._cache.has_snapshot()


def test_one_override_can_be_entered_inside_itself() -> None:
    override = override_flags(chat_enabled=False)
    with override:
        with override:
            pass
        assert not flags.chat_enabled


@override_flags(chat_enabled=False)
def test_a_decorated_function_sees_the_value() -> None:
    assert not flags.chat_enabled


@override_flags(chat_enabled=False)
async def test_a_decorated_coroutine_function_sees_the_value_across_its_awaits() -> None:
    await asyncio.sleep(0)
    assert not flags.chat_enabled


async def test_an_async_block_sees_the_value_in_other_threads_too() -> None:
    async with override_flags(chat_enabled=False):
        assert await asyncio.to_thread(lambda: flags.chat_enabled) is False


def test_threads_see_the_value() -> None:
    seen: list[bool] = []
    with override_flags(chat_enabled=False):
        thread = threading.Thread(target=lambda: seen.append(flags.chat_enabled))
        thread.start()
        thread.join()

    assert seen == [False]


def test_an_exception_ends_the_override() -> None:
    with pytest.raises(RuntimeError), override_flags(chat_enabled=False):
        raise RuntimeError

    assert not cache._cache.has_snapshot()


def test_a_typo_or_a_wrong_value_is_an_error() -> None:
    with pytest.raises(ValidationFailed):
        override_flags(signups_enabled=False)
    with pytest.raises(ValidationFailed):
        override_flags(requests_per_minute="many")


def test_an_override_lies_over_the_table_and_writes_nothing(stored_flags: None) -> None:
    cache.refresh_now()
    with override_flags(signup_enabled=False):
        cache.refresh_now()
        assert not flags.signup_enabled
        snapshot = services.read_now()
        assert snapshot is not None
        assert snapshot.signup_enabled

    assert flags.signup_enabled


def test_what_one_test_read_does_not_reach_the_next(stored_flags: None) -> None:
    with fresh_flags():
        cache.refresh_now()
        assert cache.status().revision == 1

    assert cache.status().revision == 0
