"""Who drops is shown as away to the others, and as back when he is."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from matches.consumers import seats
from matches.consumers.realtime import Realtime
from matches.models import STARTED
from matches.models.presence import Presence
from matches.services import leaving, lobby, play, presence
from tests.builders import NOW, APlayer, a_game, players, stored
from tests.sockets import Socket, Story

SILENT = NOW + timedelta(seconds=16)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell of a drop at the next look, which comes every second."""
    monkeypatch.setattr(seats, "AWAY_AFTER_SECONDS", 0.0)


@pytest.fixture
def three(table: None) -> list[APlayer]:
    return players("host", "guest", "third")


async def watching(player: APlayer, game_id: str) -> tuple[Socket, Story]:
    socket = await Socket(player).__aenter__()
    await socket.accepted()
    return socket, await socket.watch(game_id)


async def told(socket: Socket, story: Story, event: str) -> None:
    """Wait until a change tells of one thing, and nothing else."""
    assert story.take(await socket.receive("game.changed")) == [event]


@pytest.mark.parametrize("status", ["OPEN", STARTED])
async def test_a_dropped_player_is_away_until_he_is_back(
    realtime: Realtime, three: list[APlayer], status: str
) -> None:
    host, guest, _ = three
    game_id = a_game(*three, status=status).game_id
    socket, story = await watching(host, game_id)
    gone, _ = await watching(guest, game_id)
    await gone.hang_up()
    await told(socket, story, "player_away")
    assert story.view["away"] == ["guest"]
    # Who comes now knows it from the snapshot.
    late, seen = await watching(three[2], game_id)
    assert seen.view["away"] == ["guest"]

    back, _ = await watching(guest, game_id)
    for other, others_story in ((socket, story), (late, seen)):
        await told(other, others_story, "player_back")
        assert others_story.view["away"] == []
        assert others_story.names == ["host", "guest", "third"]
    for each in (socket, late, back):
        await each.hang_up()


async def test_players_who_drop_together_are_told_in_one_change(
    realtime: Realtime, three: list[APlayer]
) -> None:
    game_id = a_game(*three).game_id
    socket, story = await watching(three[0], game_id)
    gone = [await watching(player, game_id) for player in three[1:]]
    await realtime.seats.tend()
    await asyncio.gather(*(one.hang_up() for one, _ in gone))
    version = story.version
    assert story.take(await socket.receive("game.changed")) == ["player_away", "player_away"]
    assert story.version == version + 1
    await socket.hang_up()


async def test_nobody_is_away_who_has_another_device(
    realtime: Realtime, three: list[APlayer]
) -> None:
    game_id = a_game(*three).game_id
    (first, _), (second, _) = [await watching(three[1], game_id) for _ in range(2)]
    await first.hang_up()
    await realtime.seats.tend()
    assert stored(game_id).away is None
    await second.hang_up()


def test_nobody_is_away_who_is_connected_to_another_process(three: list[APlayer]) -> None:
    game_id = a_game(*three).game_id
    for process_id in ("one", "other"):
        presence.announce(process_id, now=NOW)
        presence.record(process_id, [(game_id, "guest"), (game_id, "third")], [], now=NOW)
    presence.mark_away("one", game_id, ["guest"], now=NOW)
    assert stored(game_id).away is None
    # Now both have lost him.
    presence.mark_away("other", game_id, ["guest", "third"], now=NOW)
    assert stored(game_id).away == {"guest"}


async def test_who_takes_a_seat_anew_is_present(three: list[APlayer]) -> None:
    host, guest, _ = three
    game_id = a_game(host, guest).game_id
    presence.mark_away("process", game_id, ["guest"], now=NOW)
    leaving.leave_game("guest", game_id, now=NOW)
    assert stored(game_id).away is None
    # A mark that came too late means nobody.
    presence.mark_away("process", game_id, ["guest"], now=NOW)
    lobby.join_game(guest.identity, game_id, now=NOW)
    assert stored(game_id).away is None


async def test_an_eliminated_player_is_not_away(realtime: Realtime, three: list[APlayer]) -> None:
    game_id = a_game(*three, status=STARTED).game_id
    presence.mark_away("process", game_id, ["guest", "third"], now=NOW)
    socket, story = await watching(three[0], game_id)
    play.take_out(game_id, "guest", "host", now=datetime.now(UTC))
    await told(socket, story, "player_eliminated")
    assert story.view["away"] == ["third"]
    play.take_out(game_id, "third", "host", now=datetime.now(UTC))
    assert story.take(await socket.receive("game.changed"))[-1] == "game_finished"
    assert story.view["away"] == []
    assert stored(game_id).away is None
    # A mark that comes too late changes nothing.
    presence.mark_away("process", game_id, ["third"], now=NOW)
    assert stored(game_id).version == story.version
    await socket.hang_up()


def test_the_players_of_a_dead_process_are_away_until_the_grace_is_over(
    three: list[APlayer],
) -> None:
    game_id = a_game(*three).game_id
    presence.announce("killed", now=NOW)
    presence.record("killed", [(game_id, "guest"), (game_id, "third")], [], now=NOW)
    presence.announce("living", now=SILENT)
    presence.record("living", [(game_id, "third")], [], now=SILENT)
    assert presence.sweep_dead_processes(now=SILENT, since=NOW) == 0
    assert stored(game_id).away == {"guest"}
    version = stored(game_id).version
    presence.sweep_dead_processes(now=SILENT, since=NOW)
    assert stored(game_id).version == version
    assert all(seat.is_away for seat in Presence.of_process("killed"))


async def test_a_player_who_was_wrongly_called_away_is_back_at_once(
    realtime: Realtime, three: list[APlayer]
) -> None:
    game_id = a_game(*three).game_id
    socket, story = await watching(three[0], game_id)
    presence.mark_away("hasty", game_id, ["host"], now=NOW)
    await told(socket, story, "player_away")
    await told(socket, story, "player_back")
    await socket.hang_up()
