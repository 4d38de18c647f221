"""The grace rule: who drops keeps the seat for a while; who is back, or elsewhere, keeps it."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gameserver.errors import NotInGame
from matches.consumers.realtime import Realtime
from matches.consumers.upkeep import RepeatingTask, Upkeep
from matches.models import STARTED
from matches.models.presence import Heartbeat, Presence
from matches.services import leaving, lobby, presence
from settings_singleton.testing import override_flags
from tests.builders import NOW, APlayer, a_game, a_player, players, stored
from tests.sockets import DEADLINE_SECONDS, Socket

LATER = NOW + timedelta(seconds=60)


@pytest.fixture
def no_grace() -> Iterator[None]:
    """A seat is lost at the next look, which comes every second."""
    with override_flags(reconnect_grace_seconds=0):
        yield


def names(game_id: str) -> list[str]:
    return [seat.username for seat in lobby.load(game_id)[1]]


async def until_gone(game_id: str, username: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while username in names(game_id):  # noqa: ASYNC110 (a state, which sets no event)
            await asyncio.sleep(0.05)


async def watching(player: APlayer, game_id: str) -> Socket:
    socket = await Socket(player).__aenter__()
    await socket.accepted()
    await socket.watch(game_id)
    return socket


async def test_a_dropped_player_loses_the_seat_after_the_grace(
    realtime: Realtime, no_grace: None
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    await (await watching(guest, game_id)).hang_up()
    await until_gone(game_id, "guest")
    assert names(game_id) == ["host"]
    assert stored(game_id).player_count == 1
    assert guest.user.current_game is None


async def test_in_a_running_game_the_dropped_player_is_eliminated_without_a_killer(
    realtime: Realtime, no_grace: None
) -> None:
    host, guest, third = players("host", "guest", "third")
    game_id = a_game(host, guest, third, status=STARTED).game_id
    socket = await watching(host, game_id)
    await (await watching(guest, game_id)).hang_up()
    changed = await socket.receive("game.changed")
    assert changed["events"] == [
        {
            "type": "player_eliminated",
            "username": "guest",
            "placement": 3,
            "eliminated_by": None,
        }
    ]
    await socket.hang_up()


async def test_a_player_who_is_back_in_time_keeps_the_seat(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    with override_flags(reconnect_grace_seconds=2):
        await (await watching(guest, game_id)).hang_up()
        await asyncio.sleep(1)
        back = await watching(guest, game_id)
        await asyncio.sleep(2.2)
        assert names(game_id) == ["host", "guest"]
        await back.hang_up()


async def test_a_seat_that_a_feed_lets_go_while_it_is_freed_is_no_error(
    realtime: Realtime, no_grace: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(host, game_id)
    freed, was_seen = asyncio.Event(), threading.Event()
    loop, give_up = asyncio.get_running_loop(), presence.give_up

    def slowly(*args: Any, **kwargs: Any) -> bool:
        is_freed = give_up(*args, **kwargs)
        loop.call_soon_threadsafe(freed.set)
        assert was_seen.wait(DEADLINE_SECONDS)
        return is_freed

    monkeypatch.setattr(presence, "give_up", slowly)
    await (await watching(guest, game_id)).hang_up()
    tending = asyncio.create_task(realtime.seats.tend())
    await freed.wait()
    changed = await socket.receive("game.changed")
    assert changed["events"] == [{"type": "player_left", "username": "guest"}]
    was_seen.set()
    await tending
    await socket.hang_up()


@pytest.mark.parametrize("first_to_go", [0, 1])
async def test_of_two_devices_either_may_go(
    realtime: Realtime, no_grace: None, first_to_go: int
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    sockets = [await watching(guest, game_id), await watching(guest, game_id)]
    await sockets[first_to_go].hang_up()
    await realtime.seats.tend()
    assert names(game_id) == ["host", "guest"]
    await sockets[1 - first_to_go].hang_up()
    await until_gone(game_id, "guest")


async def test_a_seat_that_was_taken_while_watching_is_held_too(
    realtime: Realtime, no_grace: None
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host).game_id
    socket = await watching(guest, game_id)
    lobby.join_game(guest.identity, game_id, now=datetime.now(UTC))
    await socket.receive("game.changed")
    await socket.hang_up()
    await until_gone(game_id, "guest")


async def test_spectators_and_players_without_a_socket_are_left_alone(
    realtime: Realtime, no_grace: None
) -> None:
    host, watcher = players("host", "watcher")
    game_id = a_game(host).game_id
    await (await watching(watcher, game_id)).hang_up()
    await realtime.seats.tend()
    presence.sweep_dead_processes(now=LATER, since=NOW)
    assert names(game_id) == ["host"]


async def test_maintenance_stops_the_clock(realtime: Realtime, no_grace: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(guest, game_id)
    with override_flags(maintenance_mode=True):
        await socket.hang_up()
        await realtime.seats.tend()
        assert names(game_id) == ["host", "guest"]
    await until_gone(game_id, "guest")


async def test_a_seat_that_was_left_leaves_no_record(realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(guest, game_id)
    await realtime.seats.tend()
    process_id = realtime.seats.process_id
    assert [one.username for one in Presence.of_process(process_id)] == ["guest"]
    leaving.leave_game("guest", game_id, now=datetime.now(UTC))
    await socket.receive("game.changed")
    await realtime.seats.tend()
    assert Presence.of_process(process_id) == []
    await socket.hang_up()


async def test_leaving_by_button_and_by_a_lost_connection_at_once_frees_one_seat(
    realtime: Realtime, no_grace: None
) -> None:
    host, guest, third = players("host", "guest", "third")
    game_id = a_game(host, guest, third).game_id
    watcher = await watching(host, game_id)
    leaving = await watching(guest, game_id)
    await leaving.send("game.leave", game_id=game_id)
    await leaving.hang_up()
    await asyncio.gather(
        realtime.seats.tend(),
        *(asyncio.to_thread(leave_again, game_id, "guest") for _ in range(3)),
    )
    changed = await watcher.receive("game.changed")
    assert changed["events"] == [{"type": "player_left", "username": "guest"}]
    await realtime.seats.tend()
    assert await watcher.hears_nothing()
    assert stored(game_id).player_count == len(names(game_id)) == 2
    await watcher.hang_up()


def leave_again(game_id: str, username: str) -> None:
    with contextlib.suppress(NotInGame):
        leaving.leave_game(username, game_id, now=datetime.now(UTC))


def a_process(process_id: str, *seats: tuple[str, str], beat_at: datetime = NOW) -> None:
    presence.announce(process_id, now=beat_at)
    presence.record(process_id, seats, [], now=beat_at)


def test_what_a_killed_process_left_is_freed_after_the_grace(table: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    a_process("killed", (game_id, "guest"))
    assert presence.sweep_dead_processes(now=NOW + timedelta(seconds=29), since=NOW) == 0
    assert names(game_id) == ["host", "guest"]
    assert presence.sweep_dead_processes(now=NOW + timedelta(seconds=31), since=NOW) == 1
    assert names(game_id) == ["host"]
    assert Heartbeat.all_known() == []
    assert Presence.of_process("killed") == []


def test_after_an_outage_of_everything_players_get_the_whole_grace(table: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    a_process("killed", (game_id, "guest"))
    hours_later = NOW + timedelta(hours=3)
    soon = hours_later + timedelta(seconds=20)
    assert presence.sweep_dead_processes(now=soon, since=hours_later) == 0
    assert names(game_id) == ["host", "guest"]


def test_a_player_who_came_back_in_another_process_keeps_the_seat(table: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    a_process("killed", (game_id, "guest"))
    a_process("living", (game_id, "guest"), beat_at=LATER)
    assert presence.sweep_dead_processes(now=LATER, since=NOW) == 0
    assert names(game_id) == ["host", "guest"]


def test_two_processes_that_give_up_at_once_free_the_seat_once(table: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    for process_id in ("one", "other"):
        a_process(process_id, (game_id, "guest"))
    assert not presence.give_up("one", game_id, "guest", now=NOW)
    assert presence.give_up("other", game_id, "guest", now=NOW)
    assert stored(game_id).player_count == 1


def test_a_player_who_left_himself_is_not_taken_out_twice(table: None) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    a_process("killed", (game_id, "guest"))
    leaving.leave_game("guest", game_id, now=NOW)
    assert presence.sweep_dead_processes(now=LATER, since=NOW) == 0
    assert stored(game_id).player_count == 1


def test_a_background_task_outlives_its_errors() -> None:
    rounds: list[int] = []
    done = threading.Event()

    def work() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 3:
            done.set()
        raise ConnectionError("no table")

    task = RepeatingTask("test", 0.01, work)
    task.start()
    assert done.wait(DEADLINE_SECONDS)
    task.stop()


def test_a_process_that_does_not_beat_itself_judges_no_other(table: None) -> None:
    guest = a_player("guest")
    game_id = a_game(guest).game_id
    a_process("killed", (game_id, "guest"), beat_at=NOW - timedelta(hours=1))
    upkeep = Upkeep("me", lambda: None)
    upkeep.sweep_dead_processes()
    assert names(game_id) == ["guest"]
    upkeep.beat()
    with override_flags(reconnect_grace_seconds=0):
        upkeep.sweep_dead_processes()
    assert names(game_id) == []
