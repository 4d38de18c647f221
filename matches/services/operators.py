"""What operators do with games, and with all that is stored about a player."""

import json
from datetime import datetime
from typing import Any

from django.conf import settings

from gameserver import hints, retries
from gameserver.errors import GameNotOpen
from gameserver.models import ConditionFailed
from matches import rules
from matches.models import FINISHED, STARTED, Game, UserGameMapping
from matches.services import leaving, lobby, play
from players.models import Session
from players.services import accounts


def end_without_winner(game_id: str, *, now: datetime) -> Game:
    """End a running game now (again: the same answer). Who is still in it gets no result.

    Raises: GameNotFound, GameNotOpen if it has not started, or was cancelled.
    """
    for _ in retries.races():
        game = lobby.existing_game(game_id)
        if game.status == FINISHED:
            return game
        if game.status != STARTED:
            raise GameNotOpen(f"The game is {game.status.lower()}, not running.")
        try:
            game = Game.end(game, FINISHED, now=now)
        except ConditionFailed:
            continue
        hints.game_changed(game_id, game.map)
        return game
    raise AssertionError("races() ends by raising")


def remove_player(game_id: str, username: str, *, now: datetime) -> Game:
    """Take a player out: of a lobby by freeing his seat, of a running game as eliminated.

    Raises: GameNotFound, GameNotOpen if it is over, NotInGame, NotAlive.
    """
    if lobby.existing_game(game_id).status == STARTED:
        return play.take_out(game_id, username, None, now=now)
    return leaving.kick_player(None, game_id, username, now=now)


def relist(game_id: str) -> tuple[str | None, str | None]:
    """Write a game's entry in the listing index anew; returns the old and the new listing.

    Raises: GameNotFound.
    """
    for _ in retries.races():
        game = lobby.existing_game(game_id)
        try:
            listed = Game.relist(game)
        except ConditionFailed:
            continue
        hints.game_changed(game_id, game.map)
        return game.listing, listed.listing
    raise AssertionError("races() ends by raising")


def count_current(limit: int = 100) -> dict[str, dict[str, tuple[int, bool]]]:
    """Count open and started games by state and map: one Query per state, map and shard.

    Counting stops at `limit` games of each; then the second value says that there are more.
    """
    counts: dict[str, dict[str, tuple[int, bool]]] = {}
    for state in ("OPEN", "STARTED"):
        counts[state] = {}
        for game_map in rules.MAPS:
            pages = [
                Game.listed(state, game_map, shard, limit=limit)
                for shard in range(settings.LISTING_SHARDS)
            ]
            has_more = any(page.last_key is not None for page in pages)
            counts[state][game_map] = (sum(len(page.items) for page in pages), has_more)
    return counts


def export_player(username: str) -> dict[str, Any]:
    """Collect all that is stored about a player, ready for JSON; without secrets.

    1 GetItem, 1 Query, and 1 Query and BatchGetItem per 100 games.

    Raises: PlayerNotFound.
    """
    profile = accounts.profile(username).to_simple_dict()
    logins = [
        {"since": login.created_at, "until": login.expires_at} for login in Session.all_of(username)
    ]
    memberships: list[dict[str, Any]] = []
    start_key = None
    while True:
        page = UserGameMapping.history(username, limit=100, start_key=start_key)
        games = Game.by_ids(seat.game_id for seat in page.items)
        memberships += [
            {
                **{name: value for name, value in seat.to_simple_dict().items() if name != "kind"},
                "map": getattr(games.get(seat.game_id), "map", None),
                "status": getattr(games.get(seat.game_id), "status", None),
            }
            for seat in page.items
        ]
        start_key = page.last_key
        if start_key is None:
            break
    whole = {"profile": profile, "sessions": logins, "games": memberships}
    plain: dict[str, Any] = json.loads(json.dumps(whole, default=str))
    return plain
