"""Connections to clients that take everything, or nothing."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from gameserver.feeds.connection import Connection
from gameserver.feeds.frames import Frame
from gameserver.feeds.limits import Allowance

DEADLINE_SECONDS = 5.0


class Outlet:
    """A client that takes everything, or nothing."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[Any] = asyncio.Queue()
        self.waiting = 0
        self.codes: list[int] = []

    def write(self, message: Frame, most_waiting: int) -> bool:
        if self.waiting > most_waiting:
            return False
        self.taken.put_nowait(message)
        return True

    def close(self, code: int, reason: str) -> None:
        self.codes.append(code)

    async def next(self) -> str:
        message: Frame = await asyncio.wait_for(self.taken.get(), DEADLINE_SECONDS)
        return message.text


def a_connection(outlet: Outlet | None = None) -> Connection:
    allowance = Allowance(lambda: 600, time.monotonic)
    return Connection("ada", "session", outlet or Outlet(), allowance, now=0.0)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not is_so():  # noqa: ASYNC110 (a state, which sets no event)
            await asyncio.sleep(0.01)
