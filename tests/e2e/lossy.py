"""A Redis channel layer that loses 1 in 5 messages, and counts them in /metrics."""

import random
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer
from prometheus_client import Counter

LOSS = 0.2
LOST = Counter("lossy_layer_lost_total", "Messages that the test's layer lost")


class LossyLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # channels_redis has no types
    """Like Redis, but less so."""

    async def group_send(self, group: str, message: Any) -> None:
        if random.random() < LOSS:
            LOST.inc()
            return
        await self.__getattr__("group_send")(group, message)
