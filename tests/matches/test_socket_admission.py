"""Who may connect, and what the others are told."""

from datetime import UTC, datetime, timedelta

import pytest
import websockets
from django.conf import settings

from matches.consumers import realtime as running
from matches.consumers.realtime import MAX_CONNECTIONS_PER_PLAYER, Realtime
from matches.consumers.socket import is_allowed_origin
from players.models import Session
from players.services import accounts, sessions
from settings_singleton.testing import override_flags
from tests.builders import a_player
from tests.servers import Server
from tests.sockets import Socket

FAR = datetime.now(UTC) + timedelta(days=1)


async def test_a_player_is_let_in_and_told_the_public_settings_first(realtime: Realtime) -> None:
    async with Socket(a_player()) as socket:
        told = await socket.accepted()
    assert socket.subprotocol == "gameserver.v1"
    assert told["flags"]["joining_enabled"] is True
    assert "requests_per_minute" not in told["flags"]


@pytest.mark.parametrize(
    "subprotocols", [[], ["gameserver.v1"], ["gameserver.v1", "bearer.x"], ["bearer.x"]]
)
async def test_who_has_no_good_token_is_accepted_and_closed_with_a_code(
    realtime: Realtime, subprotocols: list[str]
) -> None:
    async with Socket(None, subprotocols=subprotocols) as socket:
        assert (await socket.event())["type"] == "websocket.accept"
        assert await socket.closed() == 4401
    assert realtime.everyone() == []


async def test_a_banned_player_is_told_so(realtime: Realtime) -> None:
    player = a_player()
    accounts.ban(player.username, until=FAR, reason="test")
    async with Socket(player) as socket:
        assert await socket.closed() == 4403


async def test_maintenance_closes_with_a_hint_when_to_come_back(realtime: Realtime) -> None:
    async with Socket(a_player()) as socket:
        with override_flags(maintenance_mode=True):
            assert (await socket.event())["type"] == "websocket.accept"
            closed = await socket.event()
    assert closed["code"] == 1012
    assert closed["reason"].startswith("maintenance retry_after=")


async def test_a_client_that_says_it_is_too_old_is_told_to_update(realtime: Realtime) -> None:
    player = a_player()
    subprotocols = ["gameserver.v1", "client.1.2", f"bearer.{player.tokens.access_token}"]
    with override_flags(min_client_version="1.3"):
        async with Socket(player, subprotocols=subprotocols) as socket:
            assert await socket.closed() == 4426


async def test_a_foreign_page_is_refused_before_the_handshake(realtime: Realtime) -> None:
    headers = {"host": "game.example", "origin": "https://evil.example", "cookie": "sessionid=1"}
    async with Socket(a_player(), headers=headers) as socket:
        assert (await socket.event())["type"] == "websocket.close"


async def test_cookies_alone_let_nobody_in(realtime: Realtime) -> None:
    async with Socket(None, headers={"host": "localhost", "cookie": "sessionid=1"}) as socket:
        assert await socket.closed() == 4401


async def test_another_path_is_not_found_and_no_fault(server: Server) -> None:
    for path in ("/nope", "/ws", "/ws/other"):
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(f"{server.url.replace('http', 'ws')}{path}")
        assert refused.value.response.status_code == 404
        assert refused.value.response.body == b"The WebSocket is at /ws/.\n"
    assert '"level": "error"' not in server.output


async def test_another_path_is_refused_by_any_asgi_server(realtime: Realtime) -> None:
    async with Socket(a_player(), path="/ws/other") as socket:
        assert (await socket.event())["type"] == "websocket.close"


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        (None, True),
        ("https://game.example", True),
        ("https://partner.example", True),
        ("null", False),
        ("", False),
        ("https://game.example.evil.example", False),
        ("https://evilgame.example", False),
        ("https://sub.partner.example", False),
        ("https://game.example:8443", False),
        ("file://game.example", False),
    ],
)
def test_pages_of_ours_and_of_the_named_origins_may_connect(
    origin: str | None, is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "CORS_ALLOWED_ORIGINS", ["https://partner.example"])
    assert is_allowed_origin(origin, "game.example") is is_allowed


async def test_logging_out_closes_the_sessions_sockets(realtime: Realtime) -> None:
    player = a_player()
    async with Socket(player) as socket:
        await socket.accepted()
        sessions.log_out(player.username, player.identity.session_id)
        assert await socket.closed() == 4401


async def test_a_ban_closes_the_players_sockets(realtime: Realtime) -> None:
    player = a_player()
    async with Socket(player) as socket:
        await socket.accepted()
        accounts.ban(player.username, until=FAR, reason="test")
        assert await socket.closed() == 4403


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "RECHECK_SECONDS", 0.2)


async def test_a_session_whose_end_nobody_told_of_is_found_within_a_minute(
    quick_checks: None, realtime: Realtime
) -> None:
    player, other = a_player("alice"), a_player("bob")
    async with Socket(player) as socket, Socket(other) as others:
        await socket.accepted()
        await others.accepted()
        # As if the hint was lost.
        Session.close(player.username, player.identity.session_id)
        assert await socket.closed() == 4401
        assert (await others.ask("ping"))["type"] == "ok"


async def test_of_too_many_connections_of_one_player_the_oldest_goes(realtime: Realtime) -> None:
    player = a_player()
    sockets = [Socket(player) for _ in range(MAX_CONNECTIONS_PER_PLAYER + 1)]
    for socket in sockets:
        await socket.__aenter__()
        await socket.accepted()
    assert await sockets[0].closed() == 4429
    for socket in sockets:
        await socket.hang_up()
    assert realtime.everyone() == []
