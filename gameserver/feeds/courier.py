"""Hints from a process that runs no server, such as a management command."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from gameserver import hints
from gameserver.feeds.bridge import Bridge


@contextmanager
def carried_hints() -> Iterator[None]:
    """Carry the hints given inside the block to the server processes, at its end.

    It waits a second at most; what the channel layer does not take is left to the servers' polls.
    """
    given: list[hints.Hint] = []
    stop = hints.forward(given.append)
    try:
        yield
    finally:
        stop()
        if given:
            asyncio.run(_carry(given))


async def _carry(given: list[hints.Hint]) -> None:
    bridge = Bridge(on_said=lambda topic, kind, text: None, on_gap=lambda topic: None)
    bridge.start()
    for hint in given:
        hints.give(hint)
    # The bridge takes hints from any thread, hence one turn of the loop later.
    await asyncio.sleep(0)
    await bridge.stop()
