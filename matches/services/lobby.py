"""A game before its start: create, join, start, cancel. How a seat is given up is in `leaving`."""

import secrets
import uuid
from dataclasses import asdict, dataclass
from datetime import datetime

from prometheus_client import Counter

from gameserver import hints, retries
from gameserver.auth import Identity
from gameserver.errors import (
    AlreadyInGame,
    GameNotFound,
    GameNotOpen,
    NotAuthenticated,
    NotInGame,
)
from gameserver.models import ConditionFailed, Write
from matches import rules
from matches.models import CANCELLED, OPEN, STARTED, Game, UserGameMapping
from matches.services.idempotency import KeyedRequest
from players.models import User
from players.rules import DELETED_PLAYER
from settings_singleton.services import require_flag

JOINED = Counter("players_joined_total", "Seats taken in lobbies of others")


@dataclass(frozen=True)
class GameOptions:
    """What the creator of a game chooses; seats 2..50."""

    map: str
    max_players: int = rules.MAX_PLAYERS
    min_players: int = rules.MIN_PLAYERS
    is_private: bool = False
    auto_start: bool = False


def create_game(
    host: Identity, options: GameOptions, *, now: datetime, idempotency_key: str | None = None
) -> Game:
    """Create a lobby with its host seated. The same key and options again give the same game.

    Raises: FeatureDisabled, ValidationFailed, AlreadyInGame, IdempotencyKeyReused.
    """
    require_flag("game_creation_enabled")
    rules.check_map(options.map)
    rules.check_seats(options.max_players, options.min_players)
    game = new_game(host, options, now=now)
    request = KeyedRequest(host.username, idempotency_key, asdict(options))
    try:
        save_new_game(game, host, request.claim(game.game_id, now=now), now=now)
    except ConditionFailed as refused:
        first = request.first_in(refused)
        if first is None:
            raise
        return existing_game(first.game_id)
    return game


def new_game(host: Identity, options: GameOptions, *, now: datetime) -> Game:
    """Return an unsaved lobby with a fresh id, and a join code if it is private."""
    return Game.new(
        str(uuid.uuid4()),
        options.map,
        host.username,
        now=now,
        max_players=options.max_players,
        min_players=options.min_players,
        join_code=secrets.token_hex(4) if options.is_private else None,
        auto_start=options.auto_start,
    )


def save_new_game(game: Game, host: Identity, more: dict[str, Write], *, now: datetime) -> None:
    """Write a new lobby, its host's seat, his pointer, and `more`, in one transaction.

    Raises: AlreadyInGame, NotAuthenticated; ConditionFailed if one of `more` is refused.
    """
    seat = UserGameMapping.new(game.game_id, host.username, host.display_name, now=now)
    stale: str | None = None
    for _ in retries.races():
        user = User.seat(host.username, game.game_id, instead_of=stale)
        try:
            Game.create(game, seat, user, **more)
        except ConditionFailed as refused:
            # Nobody else knows this id. If the game is there, an earlier attempt wrote it all, and
            # both its answer and the table's memory of its token were lost.
            if "game" not in refused:
                if any(name in refused for name in more):
                    raise
                stale = _stale_pointer(refused, host.username, game.game_id)
                continue
        hints.game_changed(game.game_id, game.map)
        return


def join_game(
    player: Identity, game_id: str, *, now: datetime, join_code: str | None = None
) -> Game:
    """Seat a player; who sits there already gets the game as it is.

    The first try reads nothing: a refusal carries the items that explain it.

    Raises: FeatureDisabled, GameNotFound, GameNotOpen, WrongJoinCode, GameFull, AlreadyInGame.
    """
    require_flag("joining_enabled")
    rules.check_game_id(game_id)
    seat = UserGameMapping.new(game_id, player.username, player.display_name, now=now)
    stale: str | None = None
    at_last_seat: Game | None = None
    for _ in retries.races():
        user = User.seat(player.username, game_id, instead_of=stale)
        try:
            if at_last_seat is None:
                Game.take_seat(game_id, seat, user, join_code=join_code)
            else:
                Game.take_last_seat(at_last_seat, seat, user, now=now)
        except ConditionFailed as refused:
            taken = refused.failed.get("seat")
            if isinstance(taken, UserGameMapping):
                return _already_seated(game_id, taken)
            if "game" in refused:
                game = refused.failed["game"]
                if not isinstance(game, Game):
                    raise GameNotFound from refused
                rules.check_can_join(game.state, join_code)
                at_last_seat = game if game.player_count == game.last_seat else None
            if "user" in refused:
                stale = _stale_pointer(refused, player.username, game_id)
        else:
            JOINED.inc()
            game = existing_game(game_id)
            hints.game_changed(game_id, game.map)
            return game
    raise AssertionError("races() ends by raising")


def start_game(username: str, game_id: str, *, now: datetime) -> Game:
    """Start; starting a game that the same host has started gives the same game.

    Raises: GameNotFound, NotHost, GameNotOpen, NotEnoughPlayers.
    """
    for _ in retries.races():
        game = existing_game(game_id)
        rules.check_is_host(game.state, username)
        if game.status == STARTED:
            return game
        rules.check_can_start(game.state, username)
        try:
            game = Game.start(game, now=now)
        except ConditionFailed:
            continue
        hints.game_changed(game_id, game.map)
        return game
    raise AssertionError("races() ends by raising")


def cancel_game(username: str | None, game_id: str, *, now: datetime) -> Game:
    """Cancel a lobby (again: the same answer); `username` is None for an operator.

    Raises: GameNotFound, NotHost, GameNotOpen if it has started.
    """
    for _ in retries.races():
        game = existing_game(game_id)
        if username is not None:
            rules.check_is_host(game.state, username)
        if game.status == CANCELLED:
            return game
        rules.check_is_open(game.state)
        try:
            game = Game.end(game, CANCELLED, now=now)
        except ConditionFailed:
            continue
        hints.game_changed(game_id, game.map)
        return game
    raise AssertionError("races() ends by raising")


def existing_game(game_id: str) -> Game:
    """Read a game, strongly.

    Raises: GameNotFound.
    """
    rules.check_game_id(game_id)
    game = Game.by_id(game_id, consistent=True)
    if game is None:
        raise GameNotFound
    return game


def load(game_id: str) -> tuple[Game, list[UserGameMapping]]:
    """Read a game and its roster, strongly.

    Raises: GameNotFound.
    """
    rules.check_game_id(game_id)
    game, roster = Game.with_roster(game_id, consistent=True)
    if game is None:
        raise GameNotFound
    return game, roster


def seat_of(roster: list[UserGameMapping], username: str) -> UserGameMapping:
    """Raises: NotInGame."""
    for seat in roster:
        if seat.username == username and not seat.is_deleted:
            return seat
    raise NotInGame(f"{username} is not in this game.")


def without_deleted_host(game: Game, roster: list[UserGameMapping]) -> Game:
    """Take the host's name off an answer if his account is gone: a running game keeps its host."""
    if not any(seat.username == game.host and not seat.is_deleted for seat in roster):
        game.host = DELETED_PLAYER
    return game


def _already_seated(game_id: str, seat: UserGameMapping) -> Game:
    game, roster = load(game_id)
    if game.status in {OPEN, STARTED} and seat.is_alive:
        return without_deleted_host(game, roster)
    raise GameNotOpen("You were in this game, and it is over for you.")


def _stale_pointer(refused: ConditionFailed, username: str, game_id: str) -> str | None:
    """Return the pointer that may be replaced, or None if it was cleared meanwhile.

    Raises: NotAuthenticated if the account is gone, AlreadyInGame if the pointer is true.
    """
    user = refused.failed.get("user")
    if not isinstance(user, User):
        raise NotAuthenticated
    pointer = user.current_game
    if pointer is None or pointer == game_id:
        return pointer
    game, seat = Game.with_seat(pointer, username)
    if game and seat and seat.is_alive and game.status in {OPEN, STARTED}:
        raise AlreadyInGame(game_id=pointer)
    return pointer
