"""The grace rule: a dropped player keeps the seat for a while, then leaves or is eliminated.

Each process records the seats whose players are connected to it, and beats. It frees a seat itself
when the player's last connection is gone and the grace is over; what a dead process left is freed
by the sweep of another. Players who only use HTTP have no such record and are left alone.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import structlog

from gameserver.errors import GameNotFound, GameNotOpen, NotAlive, NotInGame
from gameserver.models import ConditionFailed
from matches.models.presence import Heartbeat, Presence
from matches.services import lobby
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
    living = [one.process_id for one in Heartbeat.all_known() if now - one.beat_at <= DEAD_AFTER]
    others = [one for one in living if one != process_id]
    is_elsewhere = any(
        not found.is_given_up for found in Presence.in_processes(others, game_id, username)
    )
    if not is_elsewhere:
        try:
            lobby.leave_game(username, game_id, now=now)
            _log.info("seat_freed", game_id=game_id, username=username, process=process_id)
        except (GameNotFound, GameNotOpen, NotAlive, NotInGame):
            is_elsewhere = True
    Presence.record([], [mine])
    return not is_elsewhere


def sweep_dead_processes(*, now: datetime, since: datetime) -> int:
    """Free the seats that dead processes left, once the grace is over; return how many.

    `since`: this process has watched without a break from then on. A seat's grace begins no
    earlier, so that players can come back after an outage of everything. Maintenance keeps players
    out, so it stops the clock.
    """
    if flags.maintenance_mode:
        return 0
    freed = 0
    grace = timedelta(seconds=flags.reconnect_grace_seconds)
    for process in Heartbeat.all_known():
        silent_since = max(process.beat_at, since)
        if now - process.beat_at <= DEAD_AFTER or now - silent_since <= grace:
            continue
        for seat in Presence.of_process(process.process_id):
            freed += give_up(process.process_id, seat.game_id, seat.username, now=now)
        Heartbeat.forget(process.process_id)
    return freed
