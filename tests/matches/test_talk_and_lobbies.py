"""Players talk to each other, and lists of open games follow the games."""

import json
from datetime import UTC, datetime
from typing import Any

from matches.consumers.realtime import Realtime
from matches.services import lobby
from settings_singleton.testing import override_flags
from tests.builders import a_game, a_player, players
from tests.sockets import Socket


def now() -> datetime:
    return datetime.now(UTC)


async def test_chat_reaches_the_players_and_nobody_else(realtime: Realtime) -> None:
    host, guest, watcher = players("host", "guest", "watcher")
    game_id = a_game(host, guest).game_id
    async with Socket(host) as one, Socket(guest) as other, Socket(watcher) as third:
        for socket in (one, other, third):
            await socket.accepted()
            await socket.watch(game_id)
        await one.send("game.chat", game_id=game_id, text=" hé <b>\n ".strip("\n "))
        for socket in (one, other):
            said = await socket.receive("game.chat")
            assert (said["username"], said["text"]) == ("host", "hé <b>")
        assert await third.hears_nothing()
        assert await third.refused("game.chat", game_id=game_id, text="me too") == "not_in_game"


async def test_chat_obeys_its_switch_and_its_limit(realtime: Realtime) -> None:
    host = a_player()
    game_id = a_game(host).game_id
    async with Socket(host) as socket:
        await socket.accepted()
        with override_flags(chat_enabled=False):
            assert await socket.refused("game.chat", game_id=game_id, text="hi") == (
                "feature_disabled"
            )
        for _ in range(20):
            await socket.ok("game.chat", game_id=game_id, text="hi")
        assert await socket.refused("game.chat", game_id=game_id, text="hi") == "rate_limited"


async def test_relayed_messages_leave_together_and_in_order(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    async with Socket(host) as one, Socket(guest) as other:
        for socket in (one, other):
            await socket.accepted()
            await socket.watch(game_id)
        for number in range(30):
            await one.send_text(
                json.dumps({"type": "game.relay", "game_id": game_id, "data": [number, "é"]})
            )
        heard: list[Any] = []
        frames = 0
        while len(heard) < 30:
            frames += 1
            heard += (await other.receive("game.relay"))["messages"]
        assert heard == [{"username": "host", "data": [number, "é"]} for number in range(30)]
        assert frames < 15


async def test_a_lobby_list_follows_the_open_games_of_a_map(realtime: Realtime) -> None:
    host, guest, watcher = players("host", "guest", "watcher")
    async with Socket(watcher) as socket:
        await socket.accepted()
        await socket.ok("lobby.watch", map="open-ocean")
        assert (await socket.receive("lobby.snapshot"))["games"] == []
        a_game(guest, game_map="dirty-desert")
        game = a_game(host, game_map="open-ocean")
        changed = await socket.receive("lobby.changed")
        assert [one["game_id"] for one in changed["games"]] == [game.game_id]
        lobby.cancel_game(host.username, game.game_id, now=now())
        changed = await socket.receive("lobby.changed")
        assert changed["removed"] == [game.game_id]
        assert await socket.refused("lobby.watch", map="nowhere") == "validation_error"
        await socket.ok("lobby.watch")
        everywhere = await socket.receive("lobby.snapshot")
        assert [one["map"] for one in everywhere["games"]] == ["dirty-desert"]
        assert everywhere["map"] is None


async def test_who_joins_or_talks_watches_without_asking(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    async with Socket(host) as one, Socket(guest) as other:
        for socket in (one, other):
            await socket.accepted()
        await other.ok("game.join", game_id=game_id)
        assert (await other.receive("game.snapshot"))["game"]["player_count"] == 2
        await one.send("game.chat", game_id=game_id, text="welcome")
        assert (await one.receive("game.snapshot"))["game"]["player_count"] == 2
        for socket in (one, other):
            assert (await socket.receive("game.chat"))["text"] == "welcome"


async def test_a_watcher_who_joins_may_talk_at_once(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    async with Socket(guest) as socket:
        await socket.accepted()
        await socket.watch(game_id)
        await socket.send("game.join", game_id=game_id)
        talked = await socket.send("game.relay", game_id=game_id, data=1)
        heard: list[Any] = []
        while not any(one.get("re") == talked for one in heard):
            heard.append(await socket.receive())
        assert heard[-1]["type"] == "ok"


async def test_who_is_not_in_a_game_neither_talks_there_nor_comes_to_watch_it(
    realtime: Realtime,
) -> None:
    host, stranger = players("host", "stranger")
    game_id = a_game(host).game_id
    async with Socket(stranger) as socket:
        await socket.accepted()
        for kind, fields in (("game.chat", {"text": "hi"}), ("game.relay", {"data": 1})):
            refusal = await socket.refused(kind, game_id=game_id, **fields)
            assert refusal == "not_in_game"
        assert await socket.hears_nothing()
