"""Which seats are held by connections of this process, and for how long after the last is gone."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from django.utils import timezone
from prometheus_client import Gauge

from gameserver.blocking import run_blocking
from gameserver.feeds.connection import Connection
from matches.services import presence
from matches.services.presence import Seat
from settings_singleton.cache import flags

# A page that is loaded anew drops its connection, too.
AWAY_AFTER_SECONDS = 1.0

HELD = Gauge("socket_seats_held", "Seats whose players are, or were just now, connected here")

_log = structlog.get_logger(__name__)


@dataclass
class _Hold:
    """A seat: the connections that hold it, and since when there is none (monotonic seconds).

    `is_away`: others were told that the player dropped.
    """

    connections: set[Connection] = field(default_factory=set)
    dropped_at: float | None = None
    is_away: bool = False


class SeatHolder:
    """The seats of a process's connected players. Lives on one event loop.

    A seat is held once its player has watched its game. It is held by all his connections that
    did, so the end of an old one never harms a newer one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.process_id = uuid.uuid4().hex
        self._clock = clock
        self._holds: dict[str, dict[str, _Hold]] = {}
        self._of_connection: dict[Connection, set[Seat]] = {}
        self._to_record: dict[Seat, bool] = {}
        self._is_record_lost = False
        self._back: set[Seat] = set()

    def seen(
        self, game_id: str, in_game: set[str], away: list[str], connections: list[Connection]
    ) -> None:
        """Hold the seats of connected players; let go those of players who are in it no more."""
        holds = self._holds.get(game_id, {})
        for username in [name for name in holds if name not in in_game]:
            self._release(game_id, username)
        for connection in connections:
            if connection.username in in_game:
                self._hold(game_id, connection)
        back = {(game_id, name) for name in away if self.is_held(game_id, name)}
        self._back |= back
        # While this process was silent, another may have written them down as away.
        self._to_record |= dict.fromkeys(back, True)

    def gone(self, connection: Connection) -> None:
        """Begin the grace of the seats that only this connection held."""
        for game_id, username in self._of_connection.pop(connection, ()):
            hold = self._holds[game_id][username]
            hold.connections.discard(connection)
            if not hold.connections:
                hold.dropped_at = self._clock()

    def is_held(self, game_id: str, username: str) -> bool:
        """Tell whether a connection of this process holds a seat."""
        hold = self._holds.get(game_id, {}).get(username)
        return hold is not None and bool(hold.connections)

    def record_anew(self) -> None:
        """Write all seats down with the next tending; from any thread.

        What others took for dead has no record of its seats left.
        """
        self._is_record_lost = True

    async def tend(self) -> None:
        """Write down what changed, say who dropped or is back, free seats whose grace is over.

        Once a second is fine. Maintenance keeps players out, so it starts every grace anew.

        Raises: whatever the table raises; what was not done is done the next time.
        """
        await self._record()
        await self._mark_back()
        for game_id, holds in tuple(self._holds.items()):
            await self._tend_game(game_id, holds)

    async def _tend_game(self, game_id: str, holds: dict[str, _Hold]) -> None:
        now = self._clock()
        missed: dict[str, _Hold] = {}
        for username, hold in tuple(holds.items()):
            if hold.dropped_at is None or not self._is_still(game_id, username, hold):
                continue
            if flags.maintenance_mode:
                hold.dropped_at = now
            elif now - hold.dropped_at >= flags.reconnect_grace_seconds:
                await self._give_up(game_id, username, hold)
            elif now - hold.dropped_at >= AWAY_AFTER_SECONDS and not hold.is_away:
                missed[username] = hold
        if missed:
            await self._mark_away(game_id, missed)

    async def _give_up(self, game_id: str, username: str, hold: _Hold) -> None:
        # Taken and dropped since this tending began: written down later, it would look connected.
        self._to_record.pop((game_id, username), None)
        await run_blocking(presence.give_up, self.process_id, game_id, username, now=timezone.now())
        if not self._is_still(game_id, username, hold):
            return
        if hold.connections:
            # Back while the seat was being freed; if it is free, his feed will tell him.
            self._to_record[game_id, username] = True
        else:
            self._forget(game_id, username)

    async def _mark_away(self, game_id: str, missed: dict[str, _Hold]) -> None:
        for username in missed:
            # As above.
            self._to_record.pop((game_id, username), None)
        await run_blocking(
            presence.mark_away, self.process_id, game_id, tuple(missed), now=timezone.now()
        )
        for username, hold in missed.items():
            if not self._is_still(game_id, username, hold):
                continue
            if hold.connections:
                # Back meanwhile. His feed, seeing him away, brings him up in `seen`.
                self._to_record[game_id, username] = True
            else:
                hold.is_away = True

    async def _mark_back(self) -> None:
        while self._back:
            game_id = next(iter(self._back))[0]
            back = {seat for seat in self._back if seat[0] == game_id}
            here = [username for _, username in back if self.is_held(game_id, username)]
            if here:
                await run_blocking(presence.mark_back, game_id, here)
            self._back -= back

    async def _record(self) -> None:
        changed, self._to_record = self._to_record, {}
        if self._is_record_lost:
            self._is_record_lost = False
            for game_id, holds in self._holds.items():
                for username, hold in holds.items():
                    changed[game_id, username] = True
                    # Who is gone is marked once more.
                    hold.is_away = False
        if not changed:
            return
        present = [seat for seat, is_there in changed.items() if is_there]
        gone = [seat for seat, is_there in changed.items() if not is_there]
        try:
            await run_blocking(presence.record, self.process_id, present, gone, now=timezone.now())
        except Exception:
            # Whatever it was, it goes on to who tends; a newer change of a seat outdoes an older.
            self._to_record = {**changed, **self._to_record}
            raise

    def _is_still(self, game_id: str, username: str, hold: _Hold) -> bool:
        """Tell whether a feed has not let a seat go while we waited for the table."""
        return self._holds.get(game_id, {}).get(username) is hold

    def _hold(self, game_id: str, connection: Connection) -> None:
        username = connection.username
        hold = self._holds.setdefault(game_id, {}).get(username)
        if hold is None:
            hold = self._holds[game_id][username] = _Hold()
            self._to_record[game_id, username] = True
            HELD.inc()
        elif hold.is_away:
            self._to_record[game_id, username] = True
            hold.is_away = False
        hold.dropped_at = None
        hold.connections.add(connection)
        self._of_connection.setdefault(connection, set()).add((game_id, username))

    def _release(self, game_id: str, username: str) -> None:
        hold = self._holds[game_id][username]
        for connection in hold.connections:
            self._of_connection[connection].discard((game_id, username))
        self._to_record[game_id, username] = False
        self._forget(game_id, username)

    def _forget(self, game_id: str, username: str) -> None:
        del self._holds[game_id][username]
        HELD.dec()
        if not self._holds[game_id]:
            del self._holds[game_id]
