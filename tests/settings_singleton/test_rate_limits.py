"""Counting requests: alone, together through Redis, and while Redis is away."""

import socket
import time
from collections.abc import AsyncIterator, Callable

import pytest
from redis import Redis

from gameserver.engine import free_port
from gameserver.errors import RateLimited
from settings_singleton import rate_limits
from settings_singleton.rate_limits import RateLimits

NOW = 1_800_000_030.0
Make = Callable[[str], RateLimits]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Make limits, and close their connections in the end."""
    made: list[RateLimits] = []

    def make(redis_url: str) -> RateLimits:
        made.append(RateLimits(redis_url))
        return made[-1]

    yield make
    for limits in made:
        await limits.close()


async def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    limits = RateLimits("")
    left = [(await limits.count({"address": "a"}, 3, now=NOW)).remaining for _ in range(3)]

    assert left == [2, 1, 0]
    with pytest.raises(RateLimited) as refused:
        await limits.count({"address": "a"}, 3, now=NOW)
    assert refused.value.extra == {"retry_after": 30}


async def test_callers_do_not_share_a_limit() -> None:
    limits = RateLimits("")
    await limits.count({"address": "a"}, 1, now=NOW)

    await limits.count({"address": "b"}, 1, now=NOW)
    await limits.count({"account": "a"}, 1, now=NOW)


async def test_the_next_minute_begins_with_the_whole_limit() -> None:
    limits = RateLimits("")
    await limits.count({"address": "a"}, 1, now=NOW + 29)

    window = await limits.count({"address": "a"}, 1, now=NOW + 30)

    assert (window.remaining, window.reset_seconds) == (0, 60)


async def test_the_tighter_of_account_and_address_is_shown() -> None:
    limits = RateLimits("")
    await limits.count({"address": "a", "account": "x"}, 10, now=NOW)
    await limits.count({"address": "a", "account": "y"}, 10, now=NOW)

    window = await limits.count({"address": "a", "account": "z"}, 10, now=NOW)

    assert window.remaining == 7


async def test_two_processes_on_one_redis_share_a_limit(redis_server: str, make: Make) -> None:
    one, other = make(redis_server), make(redis_server)
    caller = {"address": f"a{time.time_ns()}"}
    answers = [await limits.count(caller, 4, now=NOW) for limits in (one, other, one, other)]

    assert [answer.remaining for answer in answers] == [3, 2, 1, 0]
    with pytest.raises(RateLimited):
        await one.count(caller, 4, now=NOW)


async def test_what_is_counted_in_redis_expires(redis_server: str, make: Make) -> None:
    caller = f"a{time.time_ns()}"
    await make(redis_server).count({"address": caller}, 4, now=NOW)

    with Redis.from_url(redis_server) as redis:
        keys = list(redis.scan_iter(f"*{caller}*"))
        assert len(keys) == 1
        assert 0 < int(redis.ttl(keys[0])) <= 120


async def test_while_redis_is_away_the_process_counts_for_itself(make: Make) -> None:
    limits = make(f"redis://127.0.0.1:{free_port()}/0")

    left = [(await limits.count({"address": "a"}, 2, now=NOW)).remaining for _ in range(2)]

    assert left == [1, 0]
    with pytest.raises(RateLimited):
        await limits.count({"address": "a"}, 2, now=NOW)


async def test_a_redis_that_hangs_costs_one_request_a_fifth_of_a_second_and_the_next_nothing(
    make: Make,
) -> None:
    # It accepts, as far as the kernel is concerned, and never says a word.
    with socket.create_server(("127.0.0.1", 0)) as hung:
        limits = make(f"redis://127.0.0.1:{hung.getsockname()[1]}/0")
        began = time.monotonic()
        await limits.count({"address": "a"}, 100, now=NOW)
        first = time.monotonic() - began
        for _ in range(50):
            await limits.count({"address": "a"}, 100, now=NOW)

    assert first < 1
    assert time.monotonic() - began < first + 0.5


async def test_redis_is_tried_again_after_a_while(
    redis_server: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = make(redis_server)
    limits._redis_again_at = time.monotonic() + rate_limits.REDIS_PAUSE_SECONDS
    caller = {"address": f"a{time.time_ns()}"}
    await limits.count(caller, 10, now=NOW)
    limits._redis_again_at = 0.0

    assert (await limits.count(caller, 10, now=NOW)).remaining == 9
    assert (await make(redis_server).count(caller, 10, now=NOW)).remaining == 8
