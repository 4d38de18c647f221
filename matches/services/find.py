"""Find games: open ones, one map's, a player's history, and quick-join."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from gameserver import cursors, retries
from gameserver.auth import Identity
from gameserver.errors import AlreadyInGame, GameFull, GameNotFound, GameNotOpen, WrongJoinCode
from gameserver.models import ConditionFailed
from matches import rules
from matches.models import ANY_MAP, OPEN, Game, QuickJoinPointer, UserGameMapping
from matches.services import lobby
from settings_singleton.services import require_flag

# How many listed games quick-join tries before it opens one: the list lags, seats go fast.
QUICK_JOIN_TRIES = 5


@dataclass(frozen=True)
class Listed:
    """A page of games; `next_cursor` is None on the last one."""

    games: list[Game]
    next_cursor: str | None


@dataclass(frozen=True)
class Membership:
    """One line of a player's history; `game` is None if it was deleted."""

    seat: UserGameMapping
    game: Game | None


def versions(game_ids: Iterable[str]) -> dict[str, int]:
    """Return the versions of the games that exist, read strongly, a hundred at once."""
    games = Game.by_ids(game_ids, consistent=True)
    return {game_id: int(game.version) for game_id, game in games.items()}


def open_games(
    game_map: str | None, *, limit: int, cursor: str | None = None, state: str = OPEN
) -> Listed:
    """List games with a free seat, oldest first: one Query per map and shard, merged.

    Raises: ValidationFailed for an unknown map, InvalidCursor.
    """
    if game_map is not None:
        rules.check_map(game_map)
    query = f"games:{state}:{game_map or '*'}"
    after = cursors.load(query, cursor) if cursor else None
    games: list[Game] = []
    horizon: str | None = None
    for one_map in [game_map] if game_map else rules.MAPS:
        for shard in range(settings.LISTING_SHARDS):
            page = Game.listed(state, one_map, shard, limit=limit, after=after)
            games += page.items
            if page.last_key is not None:
                read_up_to = str(page.last_key["listed_at"]["S"])
                horizon = min(horizon or read_up_to, read_up_to)
    # Beyond the shortest page's end another page might still hold an older game.
    within = [game for game in games if horizon is None or str(game.listed_at) <= horizon]
    within.sort(key=lambda game: str(game.listed_at))
    shown = within[:limit]
    if len(within) > limit:
        return Listed(shown, cursors.dump(query, str(shown[-1].listed_at)))
    return Listed(shown, cursors.dump(query, horizon) if horizon else None)


def history(
    username: str, *, limit: int, cursor: str | None = None
) -> tuple[list[Membership], str | None]:
    """List a player's games, newest first: one Query, and one BatchGet for maps and states.

    Raises: InvalidCursor.
    """
    query = f"history:{username}"
    start_key = cursors.load(query, cursor) if cursor else None
    page = UserGameMapping.history(username, limit=limit, start_key=start_key)
    games = Game.by_ids(seat.game_id for seat in page.items)
    items = [Membership(seat, games.get(seat.game_id)) for seat in page.items]
    return items, cursors.dump(query, page.last_key) if page.last_key else None


def quick_join(player: Identity, game_map: str | None, *, now: datetime) -> tuple[Game, bool]:
    """Seat a player in an open game, the fullest first; create one if there is none.

    Returns the game, and whether it was created. Who sits in a lobby that fits gets that one.

    Raises: FeatureDisabled, ValidationFailed, AlreadyInGame.
    """
    require_flag("joining_enabled")
    if game_map is not None:
        rules.check_map(game_map)
    try:
        listed = open_games(game_map, limit=100).games
        fullest = sorted(listed, key=lambda game: -game.player_count)[:QUICK_JOIN_TRIES]
        for candidate in fullest:
            if (game := _try_join(player, candidate.game_id, now=now)) is not None:
                return game, False
        return _join_or_create(player, game_map, now=now)
    except AlreadyInGame as refused:
        game = lobby.existing_game(refused.extra["game_id"])
        if game.status == OPEN and game_map in {None, game.map}:
            return game, False
        raise


def _join_or_create(player: Identity, game_map: str | None, *, now: datetime) -> tuple[Game, bool]:
    """Join the lobby that quick-join made last for such a wish, or make the next one.

    A creation swaps two pointers, its map's and the one of any map. So of two players at once whom
    one lobby would suit, one creates, and the other finds a pointer changed, and joins.
    """
    new_map = game_map or _map_of_the_minute(now)
    options = lobby.GameOptions(map=new_map)
    for _ in retries.races():
        seen = {where: _made_last(where) for where in (new_map, ANY_MAP)}
        last = seen[game_map or ANY_MAP]
        if last and (game := _try_join(player, last, now=now)) is not None:
            return game, False
        require_flag("game_creation_enabled")
        created = lobby.new_game(player, options, now=now)
        swaps = {
            f"pointer {where}": QuickJoinPointer.swap(where, old, created.game_id)
            for where, old in seen.items()
        }
        try:
            lobby.save_new_game(created, player, swaps, now=now)
        except ConditionFailed:
            continue
        return created, True
    raise AssertionError("races() ends by raising")


def _made_last(where: str) -> str | None:
    pointer = QuickJoinPointer.on_map(where)
    return pointer.game_id if pointer else None


def _try_join(player: Identity, game_id: str, *, now: datetime) -> Game | None:
    try:
        return lobby.join_game(player, game_id, now=now)
    except (GameFull, GameNotOpen, GameNotFound, WrongJoinCode):
        return None


def _map_of_the_minute(now: datetime) -> str:
    # Another one every minute, so that maps rotate.
    return list(rules.MAPS)[int(now.timestamp() // 60) % len(rules.MAPS)]
