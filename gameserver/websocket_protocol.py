"""uvicorn's WebSocket protocol with a way out that costs one write for each delivered message.

ASGI's `send` builds and serialises a frame for every receiver. Frames of a server are not masked,
so here the bytes are made once and handed to the transport as they are. The ASGI scope offers this
as the extension `gameserver.outlet`; under another server `AsgiOutlet` does the same, slower.
"""

import math
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from gameserver.feeds.connection import RESTART, retry_hint
from gameserver.feeds.frames import Frame, frame

# A client that does not take its close frame is cut off after this time.
CLOSE_TIMEOUT_SECONDS = 3.0
# How many messages of one client may wait for the ones before.
MESSAGES_AHEAD = 16
# Pings are due at multiples of this part of their interval.
PINGS_PER_INTERVAL = 20
FAREWELL = frame({"type": "notice", "code": "restart", "seconds": 0})


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """One connection; also an `Outlet`."""

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.handshake_initiated and not self.handshake_complete:
            extensions = cast(dict[str, Any], self.scope["extensions"])
            extensions["gameserver.outlet"] = self

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection's objects go at once, not when garbage is next collected.

        The parser is a generator that holds what holds it. Measured, with a thousand clients and
        many who came and went: 100 MB of garbage, and pauses of half a second to collect it.
        """
        super().connection_lost(exc)
        self.conn.parser.close()

    def send_receive_event_to_app(self) -> None:
        """Queue a message, and stop reading only from a client that is ahead of us by several.

        uvicorn stops and resumes for each, which costs two system calls a message.
        """
        is_ahead = self.queue.qsize() >= MESSAGES_AHEAD
        was_paused, self.read_paused = self.read_paused, True
        super().send_receive_event_to_app()
        self.read_paused = was_paused
        if is_ahead and not was_paused and not self.close_sent:
            self.read_paused = True
            self.transport.pause_reading()

    def schedule_ping(self) -> None:
        """Ping together with others: one that comes alone wakes the process for itself."""
        interval = cast(float, self.ping_interval)
        step = interval / PINGS_PER_INTERVAL
        due = math.ceil((self.loop.time() + interval - self.last_ping_rtt) / step) * step
        self.ping_timer = self.loop.call_at(due, self.send_keepalive_ping)

    async def send(self, message: Any) -> None:
        """Send an ASGI event.

        uvicorn takes an answer instead of a handshake for an application that broke, and logs it.
        """
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True

    def write(self, message: Frame, most_waiting: int) -> bool:
        """Hand a frame to the transport, which never blocks, unless it holds back too much."""
        if self.close_sent or self.disconnected:
            return True
        if self.transport.get_write_buffer_size() > most_waiting:
            return False
        self.transport.write(message.wire)
        return True

    def close(self, code: int, reason: str) -> None:
        """Send a close frame; abort if the client does not answer it in time."""
        if self.close_sent or self.disconnected or self.transport.is_closing():
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(CLOSE_TIMEOUT_SECONDS, self.transport.abort)

    def shutdown(self) -> None:
        """Tell a client of a restarting server when to come back, each at another moment."""
        if self.handshake_complete and not self.close_sent:
            self.transport.write(FAREWELL.wire)
            self.close(RESTART, retry_hint("restart"))
        else:
            super().shutdown()
