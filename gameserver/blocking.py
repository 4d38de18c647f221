"""Blocking work (DynamoDB, the staff database) off the event loop, in one bounded pool."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings

from gameserver import retries

P = ParamSpec("P")
R = TypeVar("R")

# No more threads than pooled DynamoDB connections: a thread never waits for a connection.
POOL = ThreadPoolExecutor(max_workers=settings.BLOCKING_THREADS, thread_name_prefix="blocking")


async def run_blocking(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` in the pool, with the request's time budget for its DynamoDB calls.

    Raises: whatever `function` raises.
    """
    with retries.budget(settings.REQUEST_BUDGET_SECONDS):
        return await sync_to_async(function, thread_sensitive=False, executor=POOL)(*args, **kwargs)
