"""What a scenario is, and the items that most of them begin with."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from matches.models import Game, UserGameMapping
from players.models import Credential, User

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
# As long as Django's argon2 hashes are.
PASSWORD_HASH = "argon2$argon2id$v=19$m=102400,t=2,p=8$" + "x" * 60

Call = Callable[[], object]


@dataclass(frozen=True)
class Scenario:
    """`prepare` writes what the pattern needs and returns the call to measure."""

    pattern: str
    prepare: Callable[[], Call]
    measured_with: str = ""


def a_player(username: str) -> User:
    """Sign up a player."""
    user = User.new(username, username.title(), now=NOW)
    User.create_with_credential(user, Credential.new(username, PASSWORD_HASH))
    return user


def a_seat(game_id: str, username: str) -> UserGameMapping:
    """Return an unsaved seat."""
    return UserGameMapping.new(game_id, username, username.title(), now=NOW)


def a_new_game(
    game_id: str, host: str, *, max_players: int = 50, game_map: str = "juicy-jungle"
) -> Game:
    """Return an unsaved lobby."""
    return Game.new(game_id, game_map, host, now=NOW, max_players=max_players, min_players=2)


def a_lobby(
    game_id: str, seats: int, *, max_players: int = 50, game_map: str = "juicy-jungle"
) -> Game:
    """Write a lobby with players {game_id}-1 (its host), {game_id}-2, ... up to `seats`."""
    host = f"{game_id}-1"
    a_player(host)
    game = a_new_game(game_id, host, max_players=max_players, game_map=game_map)
    Game.create(game, a_seat(game_id, host), User.seat(host, game_id))
    for number in range(2, seats + 1):
        guest = f"{game_id}-{number}"
        a_player(guest)
        _sit_down(game, guest, is_last=number == max_players)
    return _as_stored(game_id)


def a_running_game(game_id: str, seats: int) -> tuple[Game, dict[str, UserGameMapping]]:
    """Write a started game; return it with its roster by username."""
    Game.start(a_lobby(game_id, seats), now=NOW)
    game, roster = Game.with_roster(game_id, consistent=True)
    assert game is not None  # noqa: S101 (for the type checker: it was just written)
    return game, {seat.username: seat for seat in roster}


def _sit_down(game: Game, username: str, *, is_last: bool) -> None:
    seat = a_seat(game.game_id, username)
    user = User.seat(username, game.game_id)
    if is_last:
        Game.take_last_seat(game, seat, user, now=NOW)
    else:
        Game.take_seat(game.game_id, seat, user, join_code=None)


def _as_stored(game_id: str) -> Game:
    game = Game.by_id(game_id, consistent=True)
    assert game is not None  # noqa: S101 (for the type checker: it was just written)
    return game
