"""A bridge over a real Redis ends when it is told to, whatever it does at that moment."""

import asyncio

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from gameserver.feeds import bridge as bridges
from gameserver.feeds.bridge import Bridge

TOPICS = ("game.1", "game.2")
# From before it begins to leave the topics until it is done with them.
MOMENTS = 12


async def test_it_ends_while_it_leaves_its_topics(
    redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S-01: the last players go, and the server goes with them.
    for rounds in range(MOMENTS):
        layer = RedisPubSubChannelLayer(hosts=[redis_server])
        monkeypatch.setattr(bridges, "get_channel_layer", lambda layer=layer: layer)
        bridge = Bridge(lambda *said: None, lambda topic: None)
        bridge.start()
        for topic in TOPICS:
            bridge.subscribe(topic)
        async with asyncio.timeout(10):
            while bridge._is_behind():  # noqa: ASYNC110 (a state, which sets no event)
                await asyncio.sleep(0.01)
        for topic in TOPICS:
            bridge.unsubscribe(topic)
        for _ in range(rounds):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await bridge.stop()
        assert all(task.done() for task in bridge._tasks)
