"""One connected client, as feeds and commands see it."""

import asyncio
import itertools
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import structlog
from prometheus_client import Counter

from gameserver.feeds.frames import Frame, frame
from gameserver.feeds.limits import Allowance

NOT_AUTHENTICATED, BANNED, IDLE, TOO_LARGE = 4401, 4403, 4408, 4413
TOO_OLD, RATE_LIMITED, TOO_SLOW = 4426, 4429, 4430
# Source: RFC 6455, section 7.4.1, and IANA's registry of close codes (1012, 1013).
NORMAL, RESTART, TRY_LATER = 1000, 1012, 1013

# What may wait for one client. Relayed messages are left out beyond the first bound; who lets
# the second fill up is closed, because leaving out anything else would tell him a wrong story.
LOSSY_BYTES = 256 * 1024
QUEUE_BYTES = 512 * 1024
# Clients that a restart throws out at once should not all come back at once.
RETRY_SPREAD_SECONDS = 3.0

DELIVERED = Counter("socket_messages_sent_total", "Frames that feeds handed to connections")
DROPPED = Counter("socket_relays_dropped_total", "Relay frames left out for slow readers")
UNSENT = Counter("socket_messages_unsent_total", "Frames given up with their connection")
CLOSED = Counter("socket_closed_total", "Connections closed by the server", ["code"])

_ids = itertools.count(1)
_log = structlog.get_logger(__name__)


class Outlet(Protocol):
    """The way out to one client: never waits, and knows how much it holds back."""

    def write(self, message: Frame, most_waiting: int) -> bool:
        """Queue a frame; refuse (False) if the client has not taken more than so many bytes yet.

        What is for a client that is gone is taken, and dropped.
        """

    def close(self, code: int, reason: str) -> None:
        """Send a close frame after what waits, and give up on a client that does not take it."""


class Connection:
    """A client that was let in. `id` rises with every connection of this process."""

    __slots__ = (
        "allowance",
        "close_code",
        "heard_at",
        "id",
        "outlet",
        "session_id",
        "username",
        "version",
        "watching",
    )

    def __init__(
        self, username: str, session_id: str, outlet: Outlet, allowance: Allowance, *, now: float
    ) -> None:
        self.id = next(_ids)
        self.username = username
        self.session_id = session_id
        self.outlet = outlet
        self.allowance = allowance
        self.heard_at = now
        self.watching: dict[tuple[str, str], Any] = {}
        self.close_code: int | None = None
        self.version: str | None = None

    def send(self, message: Frame) -> None:
        """Send what the client must not miss; closes a client that does not keep up (4430)."""
        if self.close_code is not None:
            return
        if not self.outlet.write(message, QUEUE_BYTES):
            self.close(TOO_SLOW, "reader too slow")

    def send_lossy(self, message: Frame) -> None:
        """Send what may be left out while the client is behind."""
        if self.close_code is not None:
            return
        if not self.outlet.write(message, LOSSY_BYTES):
            DROPPED.inc()

    def reply(self, message: Mapping[str, Any]) -> None:
        """Send a message that is for this client alone."""
        self.send(frame(message))

    def close(self, code: int, reason: str) -> None:
        """Close; only the first code counts."""
        if self.close_code is None:
            self.close_code = code
            CLOSED.labels(str(code)).inc()
            self.outlet.close(code, reason)


def retry_hint(what: str) -> str:
    """Return a close reason that tells a client when to come back, e.g. `restart retry_after=1.7`.

    Each call gives another time, so that clients spread.
    """
    return f"{what} retry_after={1 + random.uniform(0, RETRY_SPREAD_SECONDS):.1f}"  # noqa: S311 (jitter)


class AsgiOutlet:
    """The way out under any ASGI server: a queue, and a task that empties it."""

    def __init__(self, send: Callable[[Any], Awaitable[None]]) -> None:
        self._send = send
        self._queue: deque[tuple[dict[str, Any], int]] = deque()
        self.waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def write(self, message: Frame, most_waiting: int) -> bool:
        if self.waiting_bytes > most_waiting:
            return False
        self._put({"type": "websocket.send", "text": message.text}, len(message.wire))
        return True

    def close(self, code: int, reason: str) -> None:
        if code == TOO_SLOW:
            self._drop()
        self._put({"type": "websocket.close", "code": code, "reason": reason}, 0)

    def _put(self, message: dict[str, Any], size: int) -> None:
        self._queue.append((message, size))
        self.waiting_bytes += size
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._empty())

    async def _empty(self) -> None:
        try:
            while self._queue:
                message, size = self._queue.popleft()
                try:
                    await self._send(message)
                finally:
                    self.waiting_bytes -= size
        except OSError:
            # The client is gone, which its reader is told, too. Source: ASGI, WebSocket 2.4.
            self._drop()
        except Exception as error:  # noqa: BLE001 (the way out ends; its reader hears of the rest)
            _log.warning("socket_send_failed", error=repr(error))
            self._drop()
        finally:
            self._task = None

    def _drop(self) -> None:
        UNSENT.inc(len(self._queue))
        self.waiting_bytes -= sum(size for _, size in self._queue)
        self._queue.clear()
