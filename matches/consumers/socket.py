"""One WebSocket: who may connect, and reading what a client sends."""

import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.utils import timezone
from prometheus_client import Counter
from pydantic import ValidationError

from gameserver import strict_json
from gameserver.blocking import run_blocking
from gameserver.errors import (
    Banned,
    ClientTooOld,
    GameServerError,
    InternalError,
    MalformedRequest,
    NotAuthenticated,
    RateLimited,
    UnknownType,
    ValidationFailed,
)
from gameserver.feeds import connection as codes
from gameserver.feeds.connection import AsgiOutlet, Connection, Outlet, retry_hint
from gameserver.feeds.limits import Allowance, retry_after
from matches.consumers import realtime as running
from matches.consumers.commands import Commands
from matches.messages.client import CLIENT_MESSAGES, MAX_MESSAGE_BYTES, ClientMessage
from players.services import sessions
from settings_singleton.cache import flags
from settings_singleton.rules import check_client_version

SUBPROTOCOL = "gameserver.v1"
TOKEN_PREFIX = "bearer."  # noqa: S105 (what stands before the token)
VERSION_PREFIX = "client."
# The server's own extension: see gameserver/websocket_protocol.py.
OUTLET_EXTENSION = "gameserver.outlet"
# A broken client is told so this often, then it is cut off.
MAX_STRIKES = 20

_received = Counter("socket_messages_received_total", "Messages from clients", ["type"])
RECEIVED = {kind: _received.labels(kind) for kind in CLIENT_MESSAGES}
REFUSED = Counter("socket_messages_refused_total", "Messages answered by an error", ["code"])

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_log = structlog.get_logger(__name__)


async def websocket(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Serve `/ws/`: check the origin, accept, authenticate, then read until the end.

    A foreign web page is refused before the handshake (HTTP 403). Everybody else is accepted and,
    if need be, closed with a code that says why, because browsers hide an HTTP refusal.
    """
    await receive()
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    if not is_allowed_origin(headers.get(b"origin"), headers.get(b"host", "")):
        await send({"type": "websocket.close", "code": 403})
        return
    offered: list[str] = scope["subprotocols"]
    accepted = SUBPROTOCOL if SUBPROTOCOL in offered else None
    await send({"type": "websocket.accept", "subprotocol": accepted})
    # Taken out of the scope, because it is the server's protocol object, which holds the scope.
    outlet: Outlet = scope.get("extensions", {}).pop(OUTLET_EXTENSION, None) or AsgiOutlet(send)
    realtime = running.current()
    try:
        connection = await _admit(offered, outlet)
    except Refused as refused:
        outlet.close(refused.code, refused.reason)
        await _until_closed(receive)
        return
    # A thousand idle clients keep their scopes; what was needed of it is known by now.
    scope.pop("headers", None)
    realtime.add(connection)
    try:
        connection.send(realtime.settings_frame())
        await _read(receive, connection, Commands(realtime, connection))
    finally:
        connection.close_code = connection.close_code or codes.NORMAL
        realtime.remove(connection)


class Refused(Exception):
    """A client is not let in; it gets this close code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


def is_allowed_origin(origin: str | None, host: str) -> bool:
    """Allow clients that are no web page, our own pages, and pages of the configured origins.

    Cookies are never looked at, so a page that is let in still needs a player's token.
    """
    if origin is None:
        return True
    if origin in {*settings.CORS_ALLOWED_ORIGINS, *settings.CSRF_TRUSTED_ORIGINS}:
        return True
    parts = urlsplit(origin)
    return parts.scheme in {"http", "https"} and bool(host) and parts.netloc == host.lower()


async def _admit(offered: list[str], outlet: Outlet) -> Connection:
    """Raises: Refused."""
    if SUBPROTOCOL not in offered:
        raise Refused(codes.NOT_AUTHENTICATED, f"offer {SUBPROTOCOL} and bearer.<token>")
    token = _offered(offered, TOKEN_PREFIX) or ""
    version = _offered(offered, VERSION_PREFIX)
    try:
        identity = await run_blocking(sessions.authenticate, token, now=timezone.now())
        check_client_version(flags.min_client_version, version)
    except NotAuthenticated:
        raise Refused(codes.NOT_AUTHENTICATED, "not authenticated") from None
    except Banned:
        raise Refused(codes.BANNED, "banned") from None
    except ClientTooOld:
        raise Refused(codes.TOO_OLD, "client too old") from None
    except GameServerError:
        raise Refused(codes.TRY_LATER, retry_hint("try again")) from None
    if flags.maintenance_mode:
        raise Refused(codes.RESTART, retry_hint("maintenance"))
    now = time.monotonic()
    allowance = Allowance(_messages_per_minute, time.monotonic)
    connection = Connection(identity.username, identity.session_id, outlet, allowance, now=now)
    connection.version = version
    return connection


async def _read(receive: Receive, connection: Connection, commands: Commands) -> None:
    """Carry out a client's messages in order, until it or the server closes."""
    strikes = 0
    while True:
        event = await receive()
        if event["type"] != "websocket.receive":
            return
        if connection.close_code is not None:
            continue
        connection.heard_at = time.monotonic()
        error = await _carry_out(event, connection, commands)
        if not isinstance(error, RateLimited | MalformedRequest | UnknownType):
            strikes = 0
            continue
        strikes += 1
        if strikes >= MAX_STRIKES:
            connection.close(codes.RATE_LIMITED, f"too many: {error.code}")


async def _carry_out(
    event: dict[str, Any], connection: Connection, commands: Commands
) -> GameServerError | None:
    """Carry out one message; return why it was refused, if it was."""
    message_id: int | str | None = None
    error: GameServerError
    try:
        wait = connection.allowance.take()
        text = event.get("text")
        if _is_too_large(text if text is not None else event.get("bytes") or b""):
            connection.close(codes.TOO_LARGE, "message too large")
            return None
        value = _parse(text)
        message_id = _id_of(value)
        if wait:
            raise RateLimited(retry_after=retry_after(wait))
        message = _validate(value)
        RECEIVED[message.type].inc()
        await commands.run(message)
    except GameServerError as refusal:
        error = refusal
    except Exception as fault:  # noqa: BLE001 (a fault of ours must not cost the connection)
        _log.error("socket_message_failed", username=connection.username, exc_info=fault)
        error = InternalError()
    else:
        return None
    _refuse(connection, message_id, error)
    return error


async def _until_closed(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


def _is_too_large(data: str | bytes) -> bool:
    # A character takes one to four bytes, so few texts have to be counted.
    if isinstance(data, str) and len(data) > MAX_MESSAGE_BYTES // 4:
        data = data.encode()
    return len(data) > MAX_MESSAGE_BYTES


def _parse(text: str | None) -> dict[str, Any]:
    """Raises: MalformedRequest for binary frames and what is no JSON object."""
    if text is None:
        raise MalformedRequest("Send text frames.")
    try:
        value = strict_json.loads(text)
    except ValueError as error:
        raise MalformedRequest("This is not valid JSON.") from error
    if not isinstance(value, dict):
        raise MalformedRequest("A message is a JSON object.")
    return value


def _validate(value: dict[str, Any]) -> ClientMessage:
    """Raises: UnknownType, ValidationFailed."""
    kind = value.get("type")
    model = CLIENT_MESSAGES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise UnknownType
    try:
        return model.model_validate(value)
    except ValidationError as error:
        errors = [{"loc": list(each["loc"]), "msg": each["msg"]} for each in error.errors()]
        raise ValidationFailed(errors=errors) from error


def _id_of(value: dict[str, Any]) -> int | str | None:
    given = value.get("id")
    if isinstance(given, str):
        return given[:64]
    return given if type(given) is int else None


def _refuse(connection: Connection, message_id: int | str | None, error: GameServerError) -> None:
    REFUSED.labels(error.code).inc()
    connection.reply(
        {
            "type": "error",
            "re": message_id,
            "code": error.code,
            "detail": error.detail,
            **error.extra,
        }
    )


def _offered(offered: list[str], prefix: str) -> str | None:
    return next((one.removeprefix(prefix) for one in offered if one.startswith(prefix)), None)


def _messages_per_minute() -> int:
    return flags.messages_per_minute
