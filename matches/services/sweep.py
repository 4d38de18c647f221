"""Games that nobody tends end by themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings

from gameserver import hints, table
from gameserver.models import ConditionFailed
from matches import rules
from matches.models import CANCELLED, FINISHED, Game, Lease
from settings_singleton.cache import flags

LEASE_NAME = "sweep"
LEASE_SECONDS = 60
PAGE = 100

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Swept:
    """How many games one sweep ended."""

    cancelled: int
    ended: int


def sweep(*, now: datetime) -> Swept:
    """Cancel lobbies past `lobby_timeout_seconds`, end games past `match_timeout_seconds`.

    An ended game has no winner; who was still in it gets no result. Imported games are left alone:
    they are a record, not a lobby that somebody forgot.
    """
    lobby_cutoff = now - timedelta(seconds=flags.lobby_timeout_seconds)
    match_cutoff = now - timedelta(seconds=flags.match_timeout_seconds)
    cancelled = sum(
        _end(game, CANCELLED, now=now)
        for state in ("OPEN", "FULL", "PRIVATE")
        for game in _listed_before(state, lobby_cutoff)
    )
    ended = sum(
        _end(game, FINISHED, now=now)
        for game in _listed_before("STARTED", match_cutoff)
        if game.started_at and game.started_at < match_cutoff
    )
    return Swept(cancelled, ended)


def sweep_under_lease(owner: str, *, now: datetime) -> Swept | None:
    """Sweep if no other process holds the lease; None if one does."""
    until = now + timedelta(seconds=LEASE_SECONDS)
    if not Lease.take(LEASE_NAME, owner, now=now, until=until):
        return None
    return sweep(now=now)


def _listed_before(state: str, cutoff: datetime) -> Iterator[Game]:
    for game_map in rules.MAPS:
        for shard in range(settings.LISTING_SHARDS):
            after: str | None = None
            while True:
                page = Game.listed(
                    state,
                    game_map,
                    shard,
                    limit=PAGE,
                    after=after,
                    before=table.listed_at(cutoff, ""),
                )
                yield from (game for game in page.items if not game.is_imported)
                if page.last_key is None:
                    break
                after = str(page.last_key["listed_at"]["S"])


def _end(game: Game, status: str, *, now: datetime) -> bool:
    try:
        Game.end(game, status, now=now)
    except ConditionFailed:
        # It moved on since the index saw it; the next sweep looks again.
        return False
    _log.info("game_swept", game_id=game.game_id, status=status)
    hints.game_changed(game.game_id, game.map)
    return True
