"""The grace rule: a dropped player is away, and after a while leaves or is eliminated.

Each process records the seats whose players are connected to it, and beats. It frees a seat itself
when the player's last connection is gone and the grace is over; what a dead process left is freed
by the sweep of another. Players who only use HTTP have no such record and are left alone.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

import structlog

from gameserver import hints
from gameserver.errors import GameNotFound, GameNotOpen, NotAlive, NotInGame
from gameserver.models import ConditionFailed
from matches.models import Game
from matches.models.presence import Heartbeat, Presence
from matches.services import leaving
from settings_singleton.cache import flags

BEAT_SECONDS = 5.0
# Three missed beats; a process that is only slow must not lose its players.
DEAD_AFTER = timedelta(seconds=15)

Seat = tuple[str, str]

_log = structlog.get_logger(__name__)


def announce(process_id: str, *, now: datetime) -> None:
    """Make a process known, so that its seats are freed should it die."""
    Heartbeat.announce(process_id, now=now)


def beat(process_id: str, *, now: datetime) -> bool:
    """Say that a process lives; False if nobody knows it: it is new, or was taken for dead."""
    try:
        Heartbeat.beat(process_id, now=now)
    except ConditionFailed:
        return False
    return True


def record(
    process_id: str, present: Iterable[Seat], gone: Iterable[Seat], *, now: datetime
) -> None:
    """Write down which (game, player) seats are connected to a process, and which no longer."""
    Presence.record(
        [Presence.new(process_id, *seat, now=now) for seat in present],
        [Presence.new(process_id, *seat, now=now) for seat in gone],
    )


def give_up(process_id: str, game_id: str, username: str, *, now: datetime) -> bool:
    """Free a seat whose grace is over, unless its player is connected to another process.

    The record is marked before the others are read, so of two processes that give up at the same
    moment at least one sees that the other has, too.
    """
    mine = Presence.new(process_id, game_id, username, now=now, is_given_up=True)
    Presence.record([mine])
    elsewhere = _elsewhere(process_id, game_id, [username], now=now)
    is_elsewhere = any(not found.is_given_up for found in elsewhere)
    if not is_elsewhere:
        try:
            leaving.leave_game(username, game_id, now=now)
            _log.info("seat_freed", game_id=game_id, username=username, process=process_id)
        except (GameNotFound, GameNotOpen, NotAlive, NotInGame):
            is_elsewhere = True
    Presence.record([], [mine])
    return not is_elsewhere


def mark_away(process_id: str, game_id: str, usernames: Iterable[str], *, now: datetime) -> None:
    """Tell a game's watchers who dropped, but for those who are connected to another process.

    As above, the records are marked before the others are read.
    """
    dropped = set(usernames)
    Presence.record(
        [Presence.new(process_id, game_id, one, now=now, is_away=True) for one in sorted(dropped)]
    )
    for found in _elsewhere(process_id, game_id, sorted(dropped), now=now):
        if not (found.is_away or found.is_given_up):
            dropped.discard(found.username)
    if dropped:
        _tell(Game.mark_away, game_id, dropped)


def mark_back(game_id: str, usernames: Iterable[str]) -> None:
    """Tell a game's watchers who is connected again."""
    _tell(Game.mark_back, game_id, set(usernames))


def sweep_dead_processes(*, now: datetime, since: datetime) -> int:
    """Free the seats that dead processes left, once the grace is over; return how many.

    Until then their players are away. `since`: this process has watched without a break from then
    on. A seat's grace begins no earlier, so that players can come back after an outage of
    everything. Maintenance keeps players out, so it stops the clock.
    """
    if flags.maintenance_mode:
        return 0
    freed = 0
    grace = timedelta(seconds=flags.reconnect_grace_seconds)
    for process in Heartbeat.all_known():
        silent_for = now - max(process.beat_at, since)
        if now - process.beat_at <= DEAD_AFTER or silent_for <= min(grace, DEAD_AFTER):
            continue
        seats = Presence.of_process(process.process_id)
        if silent_for <= grace:
            _mark_all_away(process.process_id, seats, now=now)
            continue
        for seat in seats:
            freed += give_up(process.process_id, seat.game_id, seat.username, now=now)
        Heartbeat.forget(process.process_id)
    return freed


def _mark_all_away(process_id: str, seats: Iterable[Presence], *, now: datetime) -> None:
    unmarked = sorted((seat.game_id, seat.username) for seat in seats if not seat.is_away)
    for game_id, those in groupby(unmarked, key=itemgetter(0)):
        mark_away(process_id, game_id, [username for _, username in those], now=now)


def _elsewhere(
    process_id: str, game_id: str, usernames: Sequence[str], *, now: datetime
) -> list[Presence]:
    """Return what the other living processes have written down about players of a game."""
    living = {one.process_id for one in Heartbeat.all_known() if now - one.beat_at <= DEAD_AFTER}
    return Presence.in_processes(living - {process_id}, game_id, usernames)


def _tell(mark: Callable[[str, set[str]], Game], game_id: str, usernames: set[str]) -> None:
    try:
        game = mark(game_id, usernames)
    except ConditionFailed:
        # The game is over.
        return
    hints.game_changed(game_id, game.map)
