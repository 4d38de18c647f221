"""Hints from a process that runs no server, such as a management command."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from typing import Any

import structlog
from channels.layers import InMemoryChannelLayer, get_channel_layer

from gameserver import hints
from gameserver.feeds.bridge import EVERYONE, MESSAGE_TYPE, game_topic, lobby_topic

TIMEOUT_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@contextmanager
def carried_hints() -> Iterator[None]:
    """Carry the hints given inside the block to the server processes, at its end.

    What the channel layer does not take within a second is left to the servers' own polls.
    """
    given: list[hints.Hint] = []
    stop = hints.forward(given.append)
    try:
        yield
    finally:
        stop()
        layer = get_channel_layer()
        if given and layer is not None and not isinstance(layer, InMemoryChannelLayer):
            asyncio.run(_send(layer, given))


async def _send(layer: Any, given: list[hints.Hint]) -> None:
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            for hint in given:
                for topic in _topics_of(hint):
                    message = {
                        "type": MESSAGE_TYPE,
                        "origin": "",
                        "topic": topic,
                        "hints": [[type(hint).__name__, *astuple(hint)]],
                        "said": [],
                    }
                    await layer.group_send(topic, message)
            await layer.flush()
    except Exception as error:  # noqa: BLE001 (whatever ails the layer, the write is done)
        _log.warning("hints_not_carried", error=repr(error))


def _topics_of(hint: hints.Hint) -> list[str]:
    if isinstance(hint, hints.GameChanged):
        return [game_topic(hint.game_id), lobby_topic(hint.map)]
    return [EVERYONE]
