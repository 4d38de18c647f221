"""A process that was paused, and taken for dead, holds its players' seats again when it goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from gameserver.errors import TryAgain
from matches.consumers import seats
from matches.consumers.realtime import Realtime
from matches.consumers.upkeep import Upkeep
from matches.models.presence import Heartbeat, Presence
from matches.services import lobby, presence
from settings_singleton.testing import override_flags
from tests.builders import NOW, APlayer, a_game, players, stored
from tests.faults.kinds import dropped
from tests.faults.layer import Clock, Faults
from tests.matches.test_seats import a_process, names
from tests.sockets import Socket

LONG_AGO = NOW - timedelta(days=1)


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tend seats when the test says so, and at no other moment."""
    monkeypatch.setattr("matches.consumers.realtime.TEND_SECONDS", 3600.0)


@pytest.fixture
def upkeep(realtime: Realtime) -> Upkeep:
    """The upkeep of this test's process, without its threads; the process is known."""
    upkeep = Upkeep(realtime.seats.process_id, realtime.seats.record_anew)
    upkeep.beat()
    return upkeep


async def watching(realtime: Realtime, player: APlayer, game_id: str) -> Socket:
    """Connect a player whose seat is written down."""
    socket = await Socket(player).__aenter__()
    await socket.accepted()
    await socket.watch(game_id)
    await realtime.seats.tend()
    return socket


def take_for_dead() -> int:
    """Look after dead processes as one that sees none beat; return how many seats it freed."""
    with override_flags(reconnect_grace_seconds=0):
        later = datetime.now(UTC) + timedelta(minutes=1)
        return presence.sweep_dead_processes(now=later, since=LONG_AGO)


def held(realtime: Realtime) -> list[str]:
    return [one.username for one in Presence.of_process(realtime.seats.process_id)]


async def test_it_writes_its_seats_down_anew(realtime: Realtime, upkeep: Upkeep) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(realtime, guest, game_id)
    tablet = datetime.now(UTC) + timedelta(minutes=1)
    a_process("elsewhere", (game_id, "guest"), beat_at=tablet)
    assert take_for_dead() == 0
    assert held(realtime) == []

    upkeep.beat()
    await realtime.seats.tend()

    assert held(realtime) == ["guest"]
    # His tablet goes; he is still here.
    assert not presence.give_up("elsewhere", game_id, "guest", now=datetime.now(UTC))
    assert names(game_id) == ["host", "guest"]
    await socket.hang_up()


async def test_who_was_thrown_out_and_is_back_at_once_is_held_again(
    realtime: Realtime, upkeep: Upkeep
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(realtime, guest, game_id)
    assert take_for_dead() == 1
    # His feed may see both changes in one look, and so none of him.
    lobby.join_game(guest.identity, game_id, now=datetime.now(UTC))
    upkeep.beat()
    await realtime.seats.tend()
    assert held(realtime) == ["guest"]
    await socket.hang_up()


async def test_it_does_so_although_the_answer_to_its_beat_is_lost(
    realtime: Realtime, upkeep: Upkeep, faults: Faults, clock: Clock
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(realtime, guest, game_id)
    take_for_dead()
    lobby.join_game(guest.identity, game_id, now=datetime.now(UTC))
    faults.order(dropped, on="BatchWriteItem", times=None)
    with pytest.raises(TryAgain):
        upkeep.beat()
    faults.stop()
    assert [one.process_id for one in Heartbeat.all_known()] == [realtime.seats.process_id]

    upkeep.beat()
    await realtime.seats.tend()

    assert held(realtime) == ["guest"]
    await socket.hang_up()


async def test_whom_others_took_for_away_meanwhile_is_written_down_as_here(
    realtime: Realtime, upkeep: Upkeep
) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    socket = await watching(realtime, guest, game_id)
    for _ in range(2):
        silent = datetime.now(UTC) + timedelta(seconds=20)
        assert presence.sweep_dead_processes(now=silent, since=LONG_AGO) == 0
        assert stored(game_id).away == {"guest"}
        await socket.receive("game.changed")
        await realtime.seats.tend()
        assert not stored(game_id).away
        assert [one.is_away for one in Presence.of_process(realtime.seats.process_id)] == [False]
        await socket.receive("game.changed")
    await socket.hang_up()


async def test_who_is_away_is_written_down_as_away_again(
    realtime: Realtime, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "AWAY_AFTER_SECONDS", 0.0)
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    await (await watching(realtime, guest, game_id)).hang_up()
    await realtime.seats.tend()
    a_process("elsewhere", (game_id, "guest"), beat_at=datetime.now(UTC) + timedelta(minutes=1))
    assert take_for_dead() == 0
    upkeep.beat()
    await realtime.seats.tend()
    assert [one.is_away for one in Presence.of_process(realtime.seats.process_id)] == [True]


async def test_a_process_that_nobody_forgot_writes_nothing_but_its_beat(
    realtime: Realtime, upkeep: Upkeep, faults: Faults
) -> None:
    host, guest = players("host", "guest")
    socket = await watching(realtime, guest, a_game(host, guest).game_id)
    faults.sent.clear()
    upkeep.beat()
    await realtime.seats.tend()
    assert [request.operation for request in faults.sent] == ["UpdateItem"]
    await socket.hang_up()


async def test_when_the_whole_machine_slept_the_first_to_wake_judges_nobody(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A machine's monotonic clock stands still while it sleeps; the time of day does not.
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    upkeep = Upkeep("first to wake", lambda: None)
    upkeep.beat()
    a_process("still asleep", (game_id, "guest"), beat_at=datetime.now(UTC))
    woken_at = datetime.now(UTC) + timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: woken_at)

    upkeep.sweep_dead_processes()
    upkeep.beat()
    upkeep.sweep_dead_processes()

    assert names(game_id) == ["host", "guest"]
