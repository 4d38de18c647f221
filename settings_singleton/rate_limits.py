"""Requests per minute and caller: counted in memory, or in Redis for several processes together.

Windows are the minutes of the clock, so that one increment (the cheapest thing a store can do)
tells the count and the clock tells the reset. A caller can send up to twice the limit around the
turn of a minute. While Redis does not answer, each process counts for itself.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import structlog
from django.conf import settings
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.storage import MemoryStorage
from prometheus_client import Counter
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gameserver.errors import RateLimited

WINDOW_SECONDS = 60
REDIS_TIMEOUT_SECONDS = 0.1
# How long Redis is left alone after it failed, so that an outage does not slow every request.
REDIS_PAUSE_SECONDS = 5.0

LIMITED = Counter("rate_limited_requests_total", "Refused requests", ["by"])
REDIS_FAILURES = Counter("rate_limit_redis_failures_total", "Counted in the process instead")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Window:
    """What is left of a caller's minute; `reset_seconds` until the next one begins."""

    limit: int
    remaining: int
    reset_seconds: int

    @property
    def headers(self) -> dict[str, str]:
        """Name the limit to the client.

        Source: draft-ietf-httpapi-ratelimit-headers-07, sections 3.1 to 3.3.
        """
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_seconds),
        }


class RateLimits:
    """Count callers' requests; `redis_url` is empty for one process on its own."""

    def __init__(self, redis_url: str) -> None:
        self._redis_url = redis_url
        self._memory = MemoryStorage()
        # A Redis connection belongs to the loop it was opened in.
        self._redis = WeakKeyDictionary[asyncio.AbstractEventLoop, RedisStorage]()
        self._redis_again_at = 0.0

    async def count(self, callers: dict[str, str], per_minute: int, *, now: float) -> Window:
        """Count one request for every caller ("account", "address"); `now` in Unix seconds.

        Raises: RateLimited (`rate_limited`, with `retry_after`) if any of them is over the limit.
        """
        minute, passed = divmod(now, WINDOW_SECONDS)
        reset_seconds = max(1, round(WINDOW_SECONDS - passed))
        item = RateLimitItemPerMinute(per_minute)
        keys = [item.key_for(by, caller, int(minute)) for by, caller in callers.items()]
        counts = await self._increment(keys)
        for by, count in zip(callers, counts, strict=True):
            if count > per_minute:
                LIMITED.labels(by).inc()
                raise RateLimited(
                    f"More than {per_minute} requests in a minute from this {by}.",
                    retry_after=reset_seconds,
                )
        return Window(per_minute, per_minute - max(counts), reset_seconds)

    async def close(self) -> None:
        """Close this loop's connections to Redis."""
        redis = self._redis.pop(asyncio.get_running_loop(), None)
        if redis is not None:
            await cast(Any, redis.bridge).storage.aclose()

    async def _increment(self, keys: list[str]) -> list[int]:
        if self._redis_url and time.monotonic() >= self._redis_again_at:
            try:
                async with asyncio.timeout(2 * REDIS_TIMEOUT_SECONDS):
                    redis = self._redis_of_this_loop()
                    return await asyncio.gather(
                        *(redis.incr(key, 2 * WINDOW_SECONDS) for key in keys)
                    )
            except Exception as error:  # noqa: BLE001 (a limit must not fail the request)
                REDIS_FAILURES.inc()
                self._redis_again_at = time.monotonic() + REDIS_PAUSE_SECONDS
                _log.warning("rate_limits_without_redis", error=repr(error))
        return [self._memory.incr(key, 2 * WINDOW_SECONDS) for key in keys]

    def _redis_of_this_loop(self) -> RedisStorage:
        loop = asyncio.get_running_loop()
        if loop not in self._redis:
            self._redis[loop] = RedisStorage(
                f"async+{self._redis_url}",
                implementation="redispy",
                key_prefix=f"LIMITS:{settings.DYNAMODB_TABLE}-{settings.ENVIRONMENT}",
                socket_timeout=REDIS_TIMEOUT_SECONDS,
                socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
                # Passed on to redis-py, whose default retries would outlast the request.
                retry=cast(Any, Retry(NoBackoff(), 0)),
            )
        return self._redis[loop]
