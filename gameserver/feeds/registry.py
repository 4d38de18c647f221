"""Every feed of this process: made for the first who watches, dropped after the last."""

import asyncio
from collections.abc import Callable
from typing import Any

from gameserver.feeds.bridge import Bridge
from gameserver.feeds.connection import Connection
from gameserver.feeds.feed import LINGER_SECONDS, Feed, Key

AnyFeed = Feed[Any]


class Registry:
    """Feeds by what they watch. Lives on one event loop."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._feeds: dict[Key, AnyFeed] = {}
        self._by_topic: dict[str, set[AnyFeed]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def get(self, key: Key) -> AnyFeed | None:
        """Return the feed if somebody watches it here."""
        return self._feeds.get(key)

    def of_kind(self, kind: str) -> list[AnyFeed]:
        """Return all feeds of a kind."""
        return [feed for feed in self._feeds.values() if feed.kind == kind]

    async def watch(
        self,
        key: Key,
        make: Callable[[str], AnyFeed],
        connection: Connection,
        on_watching: Callable[[], None],
    ) -> None:
        """Send a connection a snapshot of a thing, and then its changes; `make` if it is the first.

        Raises: GameServerError if there is no such thing, or it can't be read now.
        """
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = make(key[1])
            for topic in feed.topics:
                self._by_topic.setdefault(topic, set()).add(feed)
                self._bridge.subscribe(topic)
        try:
            await feed.watch(connection, on_watching)
        finally:
            self._drop_later(feed)

    def unwatch(self, key: Key, connection: Connection) -> bool:
        """Send a connection no more of a thing; False if it did not watch it."""
        feed = connection.watching.get(key)
        if feed is None:
            return False
        feed.unwatch(connection)
        self._drop_later(feed)
        return True

    def forget(self, connection: Connection) -> None:
        """Take a closed connection out of all feeds."""
        for key in tuple(connection.watching):
            self.unwatch(key, connection)

    def wake(self, topic: str | None) -> None:
        """Let the feeds of a topic look again; all feeds, if any hint may have been lost."""
        feeds = self._feeds.values() if topic is None else self._by_topic.get(topic, ())
        for feed in feeds:
            feed.wake()

    async def stop(self) -> None:
        """End all feeds."""
        for feed in list(self._feeds.values()):
            self._remove(feed)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _drop_later(self, feed: AnyFeed) -> None:
        if feed.is_idle:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._drop, feed)

    def _drop(self, feed: AnyFeed) -> None:
        if feed.is_idle and self._feeds.get(feed.key) is feed:
            self._remove(feed)

    def _remove(self, feed: AnyFeed) -> None:
        del self._feeds[feed.key]
        for topic in feed.topics:
            self._by_topic[topic].discard(feed)
            if not self._by_topic[topic]:
                del self._by_topic[topic]
            self._bridge.unsubscribe(topic)
        # The loop itself keeps only weak references to tasks.
        task = asyncio.get_running_loop().create_task(feed.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
