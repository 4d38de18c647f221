"""An account and its games: where it plays, and how it goes without leaving a seat behind."""

from datetime import datetime

from gameserver import retries
from gameserver.errors import GameNotOpen, NotAlive, NotInGame
from gameserver.models import ConditionFailed
from matches.models import OPEN, STARTED, Game, UserGameMapping
from matches.services import leaving
from players.models import User
from players.services import accounts


def current_game(user: User) -> str | None:
    """Return the game a player really is in: his pointer, unless it is stale."""
    if user.current_game is None:
        return None
    game, seat = Game.with_seat(user.current_game, user.username)
    if game and seat and seat.is_alive and game.status in {OPEN, STARTED}:
        return str(user.current_game)
    return None


def delete_account(username: str, *, now: datetime) -> None:
    """Leave every game, take the name out of the history, delete the account.

    Whole in that order: after a crash in between, deleting again finishes the job.

    Raises: PlayerNotFound (`player_not_found`) if there is no such account.
    """
    for _ in retries.races():
        user = accounts.profile(username)
        _leave_all(user, now=now)
        try:
            accounts.delete_account(username, over=_game_that_is_over(user))
        except ConditionFailed:
            # He joined a game meanwhile, from another device.
            continue
        return


def _game_that_is_over(user: User) -> str | None:
    """Return his pointer if nothing can seat him there again: the game, or his part, has ended."""
    if user.current_game is None:
        return None
    game, seat = Game.with_seat(user.current_game, user.username)
    is_out = seat is not None and not seat.is_alive
    is_over = game is None or game.status not in {OPEN, STARTED}
    return str(user.current_game) if is_out or is_over else None


def _leave_all(user: User, *, now: datetime) -> None:
    start_key = None
    if user.current_game is not None:
        # His newest seat may not be in the index yet.
        _leave(user.username, user.current_game, now=now)
        _anonymise(user.current_game, user.username)
    while True:
        page = UserGameMapping.history(user.username, limit=100, start_key=start_key)
        games = Game.by_ids(seat.game_id for seat in page.items)
        for seat in page.items:
            game = games.get(seat.game_id)
            if game and seat.is_alive and game.status in {OPEN, STARTED}:
                _leave(user.username, seat.game_id, now=now)
            _anonymise(seat.game_id, user.username)
        start_key = page.last_key
        if start_key is None:
            return


def _leave(username: str, game_id: str, *, now: datetime) -> None:
    try:
        leaving.leave_game(username, game_id, now=now)
    except (NotInGame, NotAlive, GameNotOpen):
        return


def _anonymise(game_id: str, username: str) -> None:
    try:
        UserGameMapping.anonymise(game_id, username)
    except ConditionFailed:
        # A lobby's seat is deleted, not kept.
        return
