"""What is written down of a seat that is taken and lost while other seats are looked after."""

import asyncio
import threading
from typing import Any

import pytest

from matches.consumers import seats
from matches.consumers.realtime import Realtime
from matches.models.presence import Presence
from matches.services import presence
from settings_singleton.testing import override_flags
from tests.builders import APlayer, a_game, players
from tests.sockets import DEADLINE_SECONDS, Socket


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tend seats when the test says so, and tell of a drop then."""
    monkeypatch.setattr("matches.consumers.realtime.TEND_SECONDS", 3600.0)
    monkeypatch.setattr(seats, "AWAY_AFTER_SECONDS", 0.0)


async def watching(player: APlayer, game_id: str) -> Socket:
    socket = await Socket(player).__aenter__()
    await socket.accepted()
    await socket.watch(game_id)
    return socket


@pytest.mark.parametrize(
    ("work", "grace_seconds", "written_down"),
    [("give_up", 0, {"other": False}), ("mark_away", 30, {"late": True, "other": False})],
)
async def test_a_seat_lost_while_others_are_tended_does_not_look_connected_afterwards(
    realtime: Realtime,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    grace_seconds: int,
    written_down: dict[str, bool],
) -> None:
    """A record that says so keeps the seat from being freed by any other process."""
    host, guest, other, late = players("host", "guest", "other", "late")
    first, second = a_game(host, guest).game_id, a_game(other, late).game_id
    guests, others = await watching(guest, first), await watching(other, second)
    begun, may_go_on = asyncio.Event(), threading.Event()
    loop, original = asyncio.get_running_loop(), getattr(presence, work)

    def slowly(*args: Any, **kwargs: Any) -> Any:
        loop.call_soon_threadsafe(begun.set)
        assert may_go_on.wait(DEADLINE_SECONDS)
        return original(*args, **kwargs)

    monkeypatch.setattr(presence, work, slowly)
    with override_flags(reconnect_grace_seconds=grace_seconds):
        await guests.hang_up()
        tending = asyncio.create_task(realtime.seats.tend())
        await begun.wait()
        await (await watching(late, second)).hang_up()
        may_go_on.set()
        await tending
        await realtime.seats.tend()
    records = Presence.of_process(realtime.seats.process_id)
    of_second = {one.username: bool(one.is_away) for one in records if one.game_id == second}
    assert of_second == written_down
    await others.hang_up()
