"""What becomes of clients that send rubbish, too much, or nothing."""

import json
from typing import Any

import pytest

from matches.consumers.realtime import Realtime
from matches.consumers.socket import MAX_STRIKES
from matches.messages.client import MAX_MESSAGE_BYTES
from settings_singleton.testing import override_flags
from tests.builders import a_player
from tests.sockets import Socket


@pytest.mark.parametrize("text", ["{", "", "null", "[]", "42", '{"type": NaN}', '"\\ud800"', "é\0"])
async def test_what_is_no_json_object_is_answered_and_the_socket_lives_on(
    realtime: Realtime, text: str
) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        await socket.send_text(text)
        assert (await socket.receive("error"))["code"] == "malformed_request"
        await socket.ok("ping")


async def test_a_binary_frame_is_answered_by_an_error(realtime: Realtime) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        await socket.send_bytes(b"\x00\x01")
        assert (await socket.receive("error"))["code"] == "malformed_request"


@pytest.mark.parametrize(
    "kind",
    ["websocket.disconnect", "kick", "send", "dispatch", "game.changed", "", "_read"],
)
async def test_a_type_from_a_client_never_names_a_method_of_the_server(
    realtime: Realtime, kind: str
) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        assert await socket.refused(kind) == "unknown_type"
        await socket.ok("ping")


@pytest.mark.parametrize(
    "message",
    [
        {"type": "game.watch"},
        {"type": "game.watch", "game_id": 7},
        {"type": "game.watch", "game_id": "x" * 65},
        {"type": "game.chat", "game_id": "g", "text": " "},
        {"type": "game.chat", "game_id": "g", "text": "x" * 301},
        {"type": "game.relay", "game_id": "g", "data": "x" * 1023},
        {"type": "ping", "id": [1]},
        {"type": "ping", "id": True},
    ],
)
async def test_a_message_of_the_wrong_shape_is_a_validation_error(
    realtime: Realtime, message: dict[str, Any]
) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        await socket.send_text(json.dumps(message))
        assert (await socket.receive("error"))["code"] == "validation_error"


async def test_a_client_that_sends_nothing_but_rubbish_is_cut_off(realtime: Realtime) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        for _ in range(MAX_STRIKES):
            await socket.send_text("{")
        assert await socket.closed() == 4429


async def test_a_flood_is_answered_and_then_cut_off(realtime: Realtime) -> None:
    with override_flags(messages_per_minute=60):
        async with Socket(a_player()) as socket:
            await socket.accepted()
            for _ in range(20):
                await socket.ok("ping")
            assert await socket.refused("ping") == "rate_limited"
            for _ in range(MAX_STRIKES):
                await socket.send("ping")
            assert await socket.closed() == 4429


@pytest.mark.parametrize("filler", ["x" * MAX_MESSAGE_BYTES, "é" * (MAX_MESSAGE_BYTES // 2)])
async def test_a_message_that_is_too_large_closes(realtime: Realtime, filler: str) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        await socket.send_text(json.dumps({"type": "ping", "filler": filler}, ensure_ascii=False))
        assert await socket.closed() == 4413


async def test_a_message_of_the_largest_size_is_carried_out(realtime: Realtime) -> None:
    head, tail = '{"type":"ping","filler":"', '"}'
    filler = "é" * ((MAX_MESSAGE_BYTES - len(head + tail)) // 2)
    async with Socket(a_player()) as socket:
        await socket.accepted()
        await socket.send_text(head + filler + tail)
        await socket.receive("ok")


async def test_a_silent_client_is_closed(
    realtime: Realtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        monkeypatch.setattr("matches.consumers.realtime.IDLE_SECONDS", 0.0)
        assert await socket.closed() == 4408
