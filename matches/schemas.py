"""How games look to clients, and what clients may send."""

from typing import Any

from ninja import Schema
from pydantic import Field

from gameserver.times import Timestamp
from matches import rules
from matches.models import Game, UserGameMapping
from matches.rules import MAX_PLAYERS, MIN_PLAYERS
from matches.services.find import Membership
from players.rules import DELETED_PLAYER


class MapOut(Schema):
    id: str
    title: str


class CreateIn(Schema):
    map: str = Field(max_length=50)
    # Strict: JSON has numbers and truth values of its own; `true` is no 1, and "5" no 5.
    max_players: int = Field(MAX_PLAYERS, ge=MIN_PLAYERS, le=MAX_PLAYERS, strict=True)
    min_players: int = Field(MIN_PLAYERS, ge=MIN_PLAYERS, le=MAX_PLAYERS, strict=True)
    is_private: bool = Field(False, strict=True)
    auto_start: bool = Field(False, strict=True)


class QuickJoinIn(Schema):
    map: str | None = Field(None, max_length=50)


class JoinIn(Schema):
    join_code: str | None = Field(None, max_length=50)


class KickIn(Schema):
    username: str = Field(max_length=100)


class EliminationIn(Schema):
    victim: str = Field(max_length=100)
    killer: str | None = Field(None, max_length=100)


class EliminationOut(Schema):
    victim: str
    killer: str | None
    placement: int
    alive_count: int
    winner: str | None


class GameOut(Schema):
    """A game; `alive_count` is null before the start. `join_code` is for those who may know it."""

    game_id: str
    map: str
    status: str
    host: str
    player_count: int
    max_players: int
    min_players: int
    alive_count: int | None
    is_private: bool
    version: int
    created_at: Timestamp
    started_at: Timestamp | None
    ended_at: Timestamp | None
    winner: str | None
    join_code: str | None = Field(None, exclude_if=lambda code: code is None)


class PlayerOut(Schema):
    """A seat; `kills` and `placement` are null where they are not (or not yet) known."""

    username: str
    display_name: str
    joined_at: Timestamp
    is_alive: bool
    kills: int | None
    placement: int | None
    eliminated_by: str | None


class GameWithPlayers(GameOut):
    players: list[PlayerOut]


class GamesPage(Schema):
    items: list[GameOut]
    next_cursor: str | None


class HistoryItem(Schema):
    game_id: str
    map: str | None
    status: str | None
    joined_at: Timestamp
    kills: int | None
    placement: int | None
    is_winner: bool


class HistoryPage(Schema):
    items: list[HistoryItem]
    next_cursor: str | None


def game_out(game: Game, *, show_code: bool = False) -> GameOut:
    """Shape a game for clients."""
    return GameOut(**_game_fields(game, show_code=show_code))


def public_game(game: Game) -> dict[str, Any]:
    """Shape a game as JSON values for everybody who may see it, so without its join code."""
    shown = game_out(game).model_dump(mode="json")
    shown.pop("join_code", None)
    return shown


def elimination_out(victim: str, killer: str | None, result: rules.Elimination) -> EliminationOut:
    """Shape the answer to a report."""
    return EliminationOut(
        victim=victim,
        killer=killer,
        placement=result.placement,
        alive_count=result.alive_count,
        winner=result.winner,
    )


def game_with_players(
    game: Game, roster: list[UserGameMapping], *, viewer: str | None
) -> GameWithPlayers:
    """Shape a game and its roster; deleted accounts have no name there."""
    names = {seat.username for seat in roster if not seat.is_deleted}
    fields = _game_fields(game, show_code=viewer in names)
    fields["host"] = _shown(game.host, names)
    fields["winner"] = _shown(game.winner, names)
    return GameWithPlayers(**fields, players=[_player_out(seat, names) for seat in roster])


def history_item(membership: Membership) -> HistoryItem:
    """Shape one line of a player's history."""
    seat, game = membership.seat, membership.game
    return HistoryItem(
        game_id=seat.game_id,
        map=game.map if game else None,
        status=game.status if game else None,
        joined_at=seat.joined_at,
        kills=_number(seat.kills),
        placement=_number(seat.placement),
        is_winner=_number(seat.placement) == 1,
    )


def _game_fields(game: Game, *, show_code: bool) -> dict[str, Any]:
    return {
        "game_id": game.game_id,
        "map": game.map,
        "status": game.status,
        "host": game.host,
        "player_count": int(game.player_count),
        "max_players": int(game.max_players),
        "min_players": int(game.min_players),
        "alive_count": _number(game.alive_count),
        "is_private": bool(game.is_private),
        "version": int(game.version),
        "created_at": game.created_at,
        "started_at": game.started_at,
        "ended_at": game.ended_at,
        "winner": game.winner,
        "join_code": game.join_code if show_code else None,
    }


def _player_out(seat: UserGameMapping, names: set[str]) -> PlayerOut:
    return PlayerOut(
        username=_shown(seat.username, names) or "",
        display_name=DELETED_PLAYER if seat.is_deleted else seat.display_name,
        joined_at=seat.joined_at,
        is_alive=bool(seat.is_alive),
        kills=_number(seat.kills),
        placement=_number(seat.placement),
        eliminated_by=_shown(seat.eliminated_by, names),
    )


def _shown(username: str | None, names: set[str]) -> str | None:
    return username if username is None or username in names else DELETED_PLAYER


def _number(value: float | None) -> int | None:
    return None if value is None else int(value)
