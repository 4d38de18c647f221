"""How a seat is given up: a player leaves, before the start or after it, or is kicked."""

from datetime import datetime

from gameserver import hints, retries
from gameserver.errors import NotAlive, NotInGame
from gameserver.models import ConditionFailed, Write
from matches import rules
from matches.models import STARTED, Game, UserGameMapping
from matches.services import lobby, play
from players.models import User


def leave_game(username: str, game_id: str, *, now: datetime) -> Game:
    """Give a seat back (lobby), or be eliminated without a killer (running game).

    Never blocked by a switch. The host's role passes on; the last one out cancels the lobby.

    Raises: GameNotFound, NotInGame, GameNotOpen if the game is over.
    """
    with retries.turn(game_id):
        return _leave(username, game_id, now=now)


def _leave(username: str, game_id: str, *, now: datetime) -> Game:
    for tries in retries.races():
        game, roster = lobby.load(game_id)
        try:
            seat = lobby.seat_of(roster, username)
        except NotInGame:
            if tries:
                # He sat there a moment ago: the same wish from another device, or an earlier
                # attempt of this one whose answer was lost, has freed his seat.
                return game
            raise
        if game.status == STARTED:
            if not seat.is_alive:
                return lobby.without_deleted_host(game, roster)
            try:
                game = play.take_out(game_id, username, None, now=now)
            except NotAlive:
                # Eliminated meanwhile, perhaps by the same wish from another device.
                continue
            return lobby.without_deleted_host(game, roster)
        rules.check_is_open(game.state)
        if _free(game, roster, seat, now=now):
            return lobby.existing_game(game_id)
    raise AssertionError("races() ends by raising")


def kick_player(host: str | None, game_id: str, username: str, *, now: datetime) -> Game:
    """Take a player out of the lobby; `host` is None for an operator. The player may join again.

    Raises: GameNotFound, NotHost, GameNotOpen, NotInGame, ValidationFailed.
    """
    for _ in retries.races():
        game, roster = lobby.load(game_id)
        if host is not None:
            rules.check_can_kick(game.state, host, username)
        rules.check_is_open(game.state)
        if _free(game, roster, lobby.seat_of(roster, username), now=now):
            return lobby.existing_game(game_id)
    raise AssertionError("races() ends by raising")


def _free(
    game: Game, roster: list[UserGameMapping], seat: UserGameMapping, *, now: datetime
) -> bool:
    """Free one seat of a lobby; False if the lobby changed meanwhile."""
    host = rules.next_host(game.state, [other.state for other in roster], seat.username)
    user: Write | None = User.unseat(seat.username, game.game_id)
    while True:
        try:
            if host is None:
                Game.cancel_empty(game, seat, user=user, now=now)
            else:
                Game.free_seat(game, seat, host=host, user=user)
        except ConditionFailed as refused:
            if "game" in refused or "seat" in refused:
                return False
            # He points elsewhere (an imported game) or is gone: his seat is freed all the same.
            user = None
        else:
            hints.game_changed(game.game_id, game.map)
            return True
