"""What clients ask over a socket, and what they hear."""

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from gameserver import capacity, hints
from matches.consumers import realtime as running
from matches.consumers.realtime import Realtime
from matches.feeds import poll_games
from matches.models import STARTED
from matches.services import lobby, play
from settings_singleton.testing import override_flags
from tests.builders import a_game, a_player, players
from tests.sockets import Socket


def now() -> datetime:
    return datetime.now(UTC)


async def test_a_watcher_sees_a_whole_game_without_a_gap(realtime: Realtime) -> None:
    host, guest, watcher = players("host", "guest", "watcher")
    game = a_game(host)
    async with Socket(watcher) as socket:
        await socket.accepted()
        story = await socket.watch(game.game_id)
        lobby.join_game(guest.identity, game.game_id, now=now())
        assert story.take(await socket.receive()) == ["player_joined"]
        lobby.start_game(host.username, game.game_id, now=now())
        assert story.take(await socket.receive()) == ["game_started"]
        play.eliminate_player(host.identity, game.game_id, "guest", "host", now=now())
        assert story.take(await socket.receive()) == ["player_eliminated", "game_finished"]
        assert story.view["game"]["winner"] == "host"
        assert [player["placement"] for player in story.view["players"]] == [1, 2]


async def test_a_join_code_is_never_pushed(realtime: Realtime) -> None:
    host = a_player()
    game = a_game(host, is_private=True)
    async with Socket(host) as socket:
        await socket.accepted()
        await socket.ok("game.watch", game_id=game.game_id)
        assert game.join_code not in json.dumps(await socket.receive("game.snapshot"))


@pytest.mark.parametrize("game_id", ["nothing", "no/id", "é" * 30])
async def test_a_game_that_is_not_there_cannot_be_watched(realtime: Realtime, game_id: str) -> None:
    async with Socket(a_player()) as socket:
        await socket.accepted()
        assert await socket.refused("game.watch", game_id=game_id) == "game_not_found"
        assert await socket.refused("game.join", game_id=game_id) == "game_not_found"


async def test_a_game_is_played_over_sockets_alone(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    async with Socket(host) as one, Socket(guest) as other:
        await one.accepted()
        await other.accepted()
        joined = await other.ok("game.join", game_id=game_id)
        assert joined["game"]["player_count"] == 2
        assert await other.refused("game.start", game_id=game_id) == "not_host"
        assert (await one.ok("game.start", game_id=game_id))["game"]["status"] == STARTED
        done = await one.ok("game.eliminate", game_id=game_id, victim="GUEST")
        assert done["elimination"]["winner"] == "host"
        assert await other.refused("game.leave", game_id=game_id) == "game_not_open"


async def test_refusals_carry_the_codes_of_http(realtime: Realtime) -> None:
    host, guest, late = players("host", "guest", "late")
    game_id = a_game(host, guest, max_players=2).game_id
    async with Socket(late) as socket:
        await socket.accepted()
        assert await socket.refused("game.join", game_id=game_id) == "game_full"
        assert await socket.refused("game.leave", game_id=game_id) == "not_in_game"
        with override_flags(joining_enabled=False):
            answer = await socket.ask("game.join", game_id=game_id)
    assert (answer["code"], answer["flag"]) == ("feature_disabled", "joining_enabled")


async def test_maintenance_refuses_everything_but_leaving(realtime: Realtime) -> None:
    host = a_player()
    game_id = a_game(host).game_id
    async with Socket(host) as socket:
        await socket.accepted()
        with override_flags(maintenance_mode=True):
            assert await socket.refused("game.watch", game_id=game_id) == "maintenance"
            assert (await socket.ok("game.leave", game_id=game_id))["game"]["player_count"] == 0


async def test_unwatching_ends_the_pushes(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    async with Socket(host) as socket:
        await socket.accepted()
        await socket.watch(game_id)
        await socket.ok("game.unwatch", game_id=game_id)
        lobby.join_game(guest.identity, game_id, now=now())
        assert await socket.hears_nothing()


@pytest.fixture
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "GAME_POLL_SECONDS", 0.2)


async def test_a_lost_hint_only_delays(
    quick_polls: None, realtime: Realtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    async with Socket(host) as socket:
        await socket.accepted()
        story = await socket.watch(game_id)
        monkeypatch.setattr(hints, "_tell", lambda *lost: None)
        lobby.join_game(guest.identity, game_id, now=now())
        assert story.take(await socket.receive()) == ["player_joined"]


async def test_the_games_that_a_process_watches_are_polled_together(
    realtime: Realtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = players("ada", "ben", "cleo")
    games = [a_game(host).game_id for host in hosts]
    async with Socket(hosts[0]) as socket:
        await socket.accepted()
        stories = {game_id: await socket.watch(game_id) for game_id in games}
        monkeypatch.setattr(hints, "_tell", lambda *lost: None)
        lobby.cancel_game("ben", games[1], now=now())
        with capacity.measure() as meter:
            await poll_games(realtime.registry)
        changed = await socket.receive("game.changed")
        assert stories[changed["game_id"]].take(changed) == ["game_cancelled"]
        assert changed["game_id"] == games[1]
        assert await socket.hears_nothing()
    # One read for all; what changed was read again by its feed.
    assert meter.operations == ["BatchGetItem"]


async def test_one_players_slow_call_delays_nobody_else(
    realtime: Realtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = players("slow", "quick")
    game_id = a_game(slow).game_id
    start_game = lobby.start_game

    def slowly(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.5)
        return start_game(*args, **kwargs)

    monkeypatch.setattr(lobby, "start_game", slowly)
    async with Socket(slow) as one, Socket(quick) as other:
        await one.accepted()
        await other.accepted()
        await other.watch(game_id)
        asked = asyncio.create_task(one.ask("game.start", game_id=game_id))
        begin = time.monotonic()
        for _ in range(20):
            await other.watch(game_id)
        assert time.monotonic() - begin < 0.5 + 20 * 0.06
        assert not asked.done() or time.monotonic() - begin >= 0.5
        assert (await asked)["code"] == "not_enough_players"


async def test_clients_that_come_and_go_leave_nothing_behind(realtime: Realtime) -> None:
    host = a_player()
    game_id = a_game(host).game_id
    for visit in range(100):
        async with Socket(host) as socket:
            await socket.accepted()
            await socket.send("game.watch", game_id=game_id)
            # A list rests half a second between two reads, and who comes to it waits for the next.
            if visit % 10 == 0:
                await socket.send("lobby.watch")
    assert realtime.everyone() == []
    assert realtime.seats._of_connection == {}
    feeds = list(realtime.registry._feeds.values())
    assert all(feed.is_idle for feed in feeds)
