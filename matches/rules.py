"""The rules of a last-one-standing game, as pure functions over plain state.

A game is a lobby (OPEN) until its host starts it; then nobody enters, players are eliminated one by
one, and the last survivor wins. A player's placement is the number of survivors at his elimination,
himself included, so the placements of a finished game are 1..n without gaps.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest

from gameserver.errors import (
    GameFull,
    GameNotFound,
    GameNotOpen,
    NotAlive,
    NotEnoughPlayers,
    NotHost,
    NotInGame,
    NotReferee,
    ValidationFailed,
    WrongJoinCode,
)

MAPS = {
    "green-grasslands": "Green Grasslands",
    "dirty-desert": "Dirty Desert",
    "juicy-jungle": "Juicy Jungle",
    "urban-underground": "Urban Underground",
    "open-ocean": "Open Ocean",
}
MIN_PLAYERS, MAX_PLAYERS = 2, 50
GAME_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True)
class GameState:
    """What the rules need to know of a game. `status` is OPEN, STARTED, FINISHED or CANCELLED."""

    status: str
    host: str
    player_count: int
    max_players: int = MAX_PLAYERS
    min_players: int = MIN_PLAYERS
    is_private: bool = False
    join_code: str | None = None


@dataclass(frozen=True)
class PlayerState:
    """What the rules need to know of a seated player."""

    username: str
    joined_at: datetime
    is_alive: bool = True


@dataclass(frozen=True)
class Elimination:
    """The result of one elimination; `winner` is set by the last one."""

    placement: int
    alive_count: int
    winner: str | None


def check_game_id(game_id: str) -> None:
    """Raises: GameNotFound for what cannot be an id, so that it never becomes part of a key."""
    if not GAME_ID.fullmatch(game_id):
        raise GameNotFound


def check_map(game_map: str) -> None:
    """Raises: ValidationFailed (`validation_error`) for a map that is not in the catalogue."""
    if game_map not in MAPS:
        raise ValidationFailed(f"There is no such map. Maps: {', '.join(MAPS)}.")


def check_seats(max_players: int, min_players: int) -> None:
    """Raises: ValidationFailed unless 2 <= min_players <= max_players <= 50."""
    if not MIN_PLAYERS <= min_players <= max_players <= MAX_PLAYERS:
        raise ValidationFailed(
            f"Seats must satisfy {MIN_PLAYERS} <= min_players <= max_players <= {MAX_PLAYERS}."
        )


def check_can_join(game: GameState, join_code: str | None = None) -> None:
    """Raises: GameNotOpen, WrongJoinCode or GameFull, in this order."""
    if game.status != "OPEN":
        raise GameNotOpen(f"The game is {game.status.lower()}; nobody can join it.")
    if game.is_private and not _same(game.join_code, join_code):
        raise WrongJoinCode
    if game.player_count >= game.max_players:
        raise GameFull


def check_is_open(game: GameState) -> None:
    """Raises: GameNotOpen unless the game is still a lobby."""
    if game.status != "OPEN":
        raise GameNotOpen(f"The game is {game.status.lower()}, no longer a lobby.")


def check_is_host(game: GameState, username: str) -> None:
    """Raises: NotHost unless `username` hosts the game."""
    if game.host != username:
        raise NotHost


def check_can_kick(game: GameState, host: str, username: str) -> None:
    """Raises: NotHost, or ValidationFailed for a host who names himself."""
    check_is_host(game, host)
    if username == host:
        raise ValidationFailed("A host cannot kick himself; he can leave.")


def check_can_start(game: GameState, username: str) -> None:
    """Raises: NotHost, GameNotOpen or NotEnoughPlayers."""
    check_is_host(game, username)
    check_is_open(game)
    if game.player_count < game.min_players:
        raise NotEnoughPlayers(
            f"{game.min_players} players are needed, {game.player_count} are here."
        )


def check_can_report(authority: str, role: str, reporter: str, killer: str | None) -> None:
    """Allow referees always, and players for their own kills if `authority` is "killer".

    Raises: NotReferee.
    """
    if role != "referee" and not (authority == "killer" and killer == reporter):
        raise NotReferee


def reported_killer(role: str, reporter: str, killer: str | None) -> str | None:
    """Return whom a report makes the killer: who names none reports his own, but for a referee."""
    return reporter if killer is None and role != "referee" else killer


def eliminate(
    game: GameState, roster: Sequence[PlayerState], victim: str, killer: str | None
) -> Elimination:
    """Decide what an elimination leads to; `killer` is None for a player who leaves or falls.

    Raises: GameNotOpen if the game is not running, NotInGame, NotAlive, ValidationFailed for a
    player who names himself.
    """
    if game.status != "STARTED":
        raise GameNotOpen(f"The game is {game.status.lower()}, not running.")
    if killer == victim:
        raise ValidationFailed("A player cannot eliminate himself; he can leave.")
    alive = {player.username for player in roster if player.is_alive}
    seated = {player.username for player in roster}
    for username in (victim, killer):
        if username is not None and username not in seated:
            raise NotInGame(f"{username} is not in this game.")
        if username is not None and username not in alive:
            raise NotAlive(f"{username} has already been eliminated.")
    survivors = alive - {victim}
    winner = next(iter(survivors)) if len(survivors) == 1 else None
    return Elimination(placement=len(alive), alive_count=len(survivors), winner=winner)


def next_host(game: GameState, roster: Sequence[PlayerState], leaving: str) -> str | None:
    """Return who hosts once `leaving` is gone: the longest-seated other player, None if none."""
    others = [player for player in roster if player.username != leaving]
    if not others:
        return None
    if game.host != leaving:
        return game.host
    return min(others, key=lambda player: (player.joined_at, player.username)).username


def listing_state(status: str, player_count: int, max_players: int, *, is_private: bool) -> str:
    """Return under which state a current game is listed: OPEN, FULL, PRIVATE or STARTED."""
    if status == "STARTED":
        return "STARTED"
    if is_private:
        return "PRIVATE"
    return "FULL" if player_count >= max_players else "OPEN"


def _same(expected: str | None, given: str | None) -> bool:
    # In constant time, so that a code cannot be guessed letter by letter.
    return compare_digest((expected or "").encode(), (given or "").encode(errors="replace"))
