"""The ASGI application: HTTP goes to Django, `/ws/` to the realtime edge."""

import gc
import os
from typing import Any, cast

import django
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.handlers.asgi import ASGIHandler
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gameserver.settings")
django.setup(set_prefix=False)

from gameserver.blocking import run_blocking  # noqa: E402 (needs the settings)
from gameserver.middleware import API_PREFIXES  # noqa: E402 (needs the settings)
from matches.consumers import realtime  # noqa: E402 (needs the apps)
from matches.consumers.socket import websocket  # noqa: E402 (needs the apps)
from settings_singleton import cache  # noqa: E402 (needs the apps)

# Objects that may be made, less those that are gone, before the youngest are looked through.
GARBAGE_THRESHOLD = 20_000


class HttpHandler(ASGIHandler):
    """Django's handler, without its thread per request for the API, whose views are async.

    Measured: 0.5 ms of CPU a request.
    """

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"].startswith(API_PREFIXES):
            await self.handle(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def refuse(scope: Any, receive: Any, send: Any) -> None:
    """Answer a WebSocket to any other path before the handshake: 404, or 403 by a server's default.

    Source: ASGI's extension `websocket.http.response`, which not every server has.
    """
    await receive()
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    start = {"type": "websocket.http.response.start", "status": 404, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": b"The WebSocket is at /ws/.\n"})


async def lifespan(scope: Any, receive: Any, send: Any) -> None:
    """Start the settings, the bridge, the heartbeat and the sweep with the server."""
    while True:
        event = (await receive())["type"]
        if event == "lifespan.startup":
            # Requests come only after it, so that none is answered by safe defaults.
            await run_blocking(cache.start)
            realtime.current().start_upkeep()
            # What was loaded stays for ever, and connections stay long: looking through them all
            # again and again took a third of a busy server's CPU.
            gc.collect()
            gc.freeze()
            gc.set_threshold(GARBAGE_THRESHOLD)
        else:
            await realtime.stop()
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


application = ProtocolTypeRouter(
    {
        "http": HttpHandler(),
        "websocket": URLRouter(
            # Django's annotations know views only.
            [re_path(r"^ws/$", cast(Any, websocket)), re_path(r"", cast(Any, refuse))]
        ),
        "lifespan": lifespan,
    }
)
