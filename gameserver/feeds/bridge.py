"""The bridge between processes: hints, chat and relayed messages over the channel layer.

The layer may lose anything, be slow, or be down: nothing here waits for it but the bridge's own two
tasks, and what they lose is found by the feeds' polls.
"""

import asyncio
import contextlib
import uuid
from collections import Counter as Multiset
from collections.abc import Awaitable, Callable
from dataclasses import astuple, dataclass, field
from typing import Any

import structlog
from channels.layers import InMemoryChannelLayer, get_channel_layer
from prometheus_client import Counter, Gauge

from gameserver import hints

# Every process hears this one; the others are for those that watch the thing.
EVERYONE = "everyone"
MESSAGE_TYPE = "gameserver.news"
SEND_TIMEOUT_SECONDS = 2.0
RETRY_SECONDS = 1.0
STOP_AGAIN_SECONDS = 0.1
# Topics that may wait for the layer; a hint beyond that is left to the polls.
MAX_WAITING_TOPICS = 10_000
MAX_SAID_BYTES = 256 * 1024

SENT = Counter("bridge_messages_sent_total", "Messages given to the channel layer")
LOST = Counter("bridge_messages_lost_total", "Messages the channel layer did not take")
RECEIVED = Counter("bridge_messages_received_total", "Messages from other processes")
IS_UP = Gauge("bridge_is_up", "Whether the channel layer took the last message")

_KINDS = {kind.__name__: kind for kind in hints.Hint.__args__}

_log = structlog.get_logger(__name__)


def game_topic(game_id: str) -> str:
    """Name what processes that watch a game listen to."""
    return f"game.{game_id}"


def lobby_topic(game_map: str) -> str:
    """Name what processes that watch a map's lobby list listen to."""
    return f"lobby.{game_map}"


@dataclass
class _Parcel:
    """What waits to be sent on one topic: each hint once, and sayings (ready JSON) in order."""

    changes: dict[hints.Hint, None] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)
    said_bytes: int = 0


class Bridge:
    """One process's end of the bridge. Lives on one event loop.

    `on_said(topic, kind, text)` gets what other processes said; `on_gap(topic)` is called when
    hints about a topic may have been lost (None: about any).
    """

    def __init__(
        self, on_said: Callable[[str, str, str], None], on_gap: Callable[[str | None], None]
    ) -> None:
        self._on_said = on_said
        self._on_gap = on_gap
        self._origin = uuid.uuid4().hex
        self._layer: Any = None
        self._channel: str | None = None
        self._wanted: Multiset[str] = Multiset({EVERYONE: 1})
        self._joined: set[str] = set()
        self._parcels: dict[str, _Parcel] = {}
        self._work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_forwarding: Callable[[], None] | None = None
        self._is_up = True

    @property
    def reaches_others(self) -> bool:
        """Whether there is a layer that other processes can hear."""
        return self._layer is not None

    def start(self) -> None:
        """Carry hints from now on. A layer in memory reaches nobody else: then, do nothing."""
        layer = get_channel_layer()
        if layer is None or isinstance(layer, InMemoryChannelLayer):
            return
        self._layer = layer
        loop = asyncio.get_running_loop()

        def carry(hint: hints.Hint) -> None:
            # From any thread; when the loop has ended, so has the need to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._carry, hint)

        self._stop_forwarding = hints.forward(carry)
        self._tasks = [loop.create_task(self._send()), loop.create_task(self._receive())]

    async def stop(self) -> None:
        """Send what waits, if that is quick, and end."""
        if self._stop_forwarding is not None:
            self._stop_forwarding()
        if self._parcels and self._is_up:
            try:
                async with asyncio.timeout(1.0):
                    await self._flush()
            except Exception as error:  # noqa: BLE001 (whatever ails the layer, end)
                self._note(error)
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            # Redis's client sends under `wait_for`, which can lose a cancellation: ask once more.
            _, running = await asyncio.wait(running, timeout=STOP_AGAIN_SECONDS)
        if self._layer is not None:
            try:
                async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                    await self._layer.flush()
            except Exception as error:  # noqa: BLE001 (whatever ails the layer, end)
                _log.warning("bridge_not_closed", error=repr(error))

    def subscribe(self, topic: str) -> None:
        """Listen to a topic (counted: each subscribe needs an unsubscribe)."""
        self._wanted[topic] += 1
        self._work.set()

    def unsubscribe(self, topic: str) -> None:
        """Listen no more."""
        self._wanted[topic] -= 1
        if self._wanted[topic] <= 0:
            del self._wanted[topic]
        self._work.set()

    def say(self, topic: str, kind: str, text: str) -> None:
        """Send ready JSON to the other processes that listen to a topic: at most once."""
        parcel = self._parcel(topic)
        if parcel is None:
            return
        if parcel.said_bytes > MAX_SAID_BYTES:
            LOST.inc()
            return
        parcel.said.append((kind, text))
        parcel.said_bytes += len(text.encode())

    def _carry(self, hint: hints.Hint) -> None:
        topics = [EVERYONE]
        if isinstance(hint, hints.GameChanged):
            topics = [game_topic(hint.game_id), lobby_topic(hint.map)]
        for topic in topics:
            parcel = self._parcel(topic)
            if parcel is not None:
                parcel.changes[hint] = None

    def _parcel(self, topic: str) -> _Parcel | None:
        if self._layer is None:
            return None
        parcel = self._parcels.get(topic)
        if parcel is None:
            if len(self._parcels) >= MAX_WAITING_TOPICS:
                LOST.inc()
                return None
            parcel = self._parcels[topic] = _Parcel()
        self._work.set()
        return parcel

    async def _send(self) -> None:
        while True:
            pause = RETRY_SECONDS if self._is_behind() or not self._is_up else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._work.wait()
            self._work.clear()
            try:
                await self._join_topics()
                await self._flush()
            except Exception as error:  # noqa: BLE001 (whatever ails the layer, go on)
                self._note(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _flush(self) -> None:
        while self._parcels:
            topic = next(iter(self._parcels))
            parcel = self._parcels.pop(topic)
            message = {
                "type": MESSAGE_TYPE,
                "origin": self._origin,
                "topic": topic,
                "hints": [[type(hint).__name__, *astuple(hint)] for hint in parcel.changes],
                "said": parcel.said,
            }
            await self._try(self._layer.group_send(topic, message))
            SENT.inc()

    async def _join_topics(self) -> None:
        if self._channel is None:
            return
        for topic in [one for one in self._wanted if one not in self._joined]:
            await self._try(self._layer.group_add(topic, self._channel))
            self._joined.add(topic)
            self._on_gap(topic)
        for topic in [one for one in self._joined if one not in self._wanted]:
            await self._try(self._layer.group_discard(topic, self._channel))
            self._joined.discard(topic)
        if not self._is_up:
            # Nothing to send told us whether the layer is back; this does.
            await self._try(self._layer.group_send(f"probe.{self._origin}", {"type": MESSAGE_TYPE}))

    def _is_behind(self) -> bool:
        return self._channel is None or self._joined != set(self._wanted)

    async def _try(self, call: Awaitable[None]) -> None:
        # Not `wait_for`: Python 3.11's can lose a cancellation, and then `stop` would never return.
        async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
            await call
        if not self._is_up:
            _log.info("bridge_recovered")
            self._is_up = True
            self._on_gap(None)
        IS_UP.set(1)

    async def _receive(self) -> None:
        while True:
            try:
                if self._channel is None:
                    self._channel = await self._layer.new_channel()
                    self._work.set()
                message = await self._layer.receive(self._channel)
            except Exception as error:  # noqa: BLE001 (whatever ails the layer, go on)
                self._note(error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            try:
                self._deliver(message)
            except Exception as error:  # noqa: BLE001 (another release's message is no reason to stop)
                _log.warning("bridge_message_ignored", error=repr(error))

    def _deliver(self, message: dict[str, Any]) -> None:
        if message.get("type") != MESSAGE_TYPE or message["origin"] == self._origin:
            return
        RECEIVED.inc()
        for kind, *values in message["hints"]:
            if kind in _KINDS:
                hints.receive(_KINDS[kind](*values))
        for kind, text in message["said"]:
            self._on_said(message["topic"], kind, text)

    def _note(self, error: Exception) -> None:
        LOST.inc(1 + len(self._parcels))
        # What waits is old by the time the layer is back; everybody looks again then.
        self._parcels.clear()
        IS_UP.set(0)
        if self._is_up:
            self._is_up = False
            _log.warning("bridge_down", error=repr(error))
