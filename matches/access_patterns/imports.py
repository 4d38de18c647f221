"""Scenarios of what an import reads and writes."""

from matches.access_patterns.scenario import NOW, Call, Scenario, a_new_game, a_player, a_seat
from matches.models import Game, ImportProgress, UserGameMapping
from matches.models.imports import RESULTS_AT_ONCE, USERS_AT_ONCE
from matches.rules import MAX_PLAYERS
from players.models import User


def read_import_progress() -> Call:
    ImportProgress.add_users("begun", [], seen=None, through=1)
    return lambda: ImportProgress.through("begun")


def import_users() -> Call:
    names = _names("arriving", USERS_AT_ONCE)
    users = [User.new(name, name, now=NOW) for name in names]
    return lambda: ImportProgress.add_users("arriving", users, seen=None, through=len(users))


def read_users() -> Call:
    names = _names("arrived", 20)
    for name in names:
        a_player(name)
    return lambda: ImportProgress.users_there(names)


def import_game() -> Call:
    game, seats = _a_record("recorded", MAX_PLAYERS)
    return lambda: ImportProgress.add_game(game, seats)


def import_results() -> Call:
    game, seats = _a_record("counted", RESULTS_AT_ONCE)
    for seat in seats:
        a_player(seat.username)
    ImportProgress.add_game(game, seats)
    results = {seat.username: seat is seats[0] for seat in seats}
    return lambda: ImportProgress.settle("counted", results)


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number}" for number in range(1, count + 1)]


def _a_record(game_id: str, seats: int) -> tuple[Game, list[UserGameMapping]]:
    """Return an unsaved game with its roster."""
    names = _names(game_id, seats)
    game = a_new_game(game_id, names[0])
    game.player_count = seats
    return game, [a_seat(game_id, name) for name in names]


SCENARIOS = (
    Scenario("read import progress", read_import_progress),
    Scenario("import users", import_users, f"{USERS_AT_ONCE} users"),
    Scenario("import users, read", read_users, "20 users"),
    Scenario("import game", import_game, f"{MAX_PLAYERS} players"),
    Scenario("import results", import_results, f"{RESULTS_AT_ONCE} players"),
)
