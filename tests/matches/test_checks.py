"""Each broken invariant of games and players has a report of its own."""

from typing import Any

import pytest

from matches import checks
from matches.checks import Career, Standing
from matches.models import CANCELLED, FINISHED, STARTED, Game, UserGameMapping
from matches.services import lobby
from tests.builders import NOW, a_game, logged_in, players
from tests.matches.tampering import (
    a_finished_game,
    a_running_game,
    broken_in_table,
    change,
    game_item,
    seat,
    user,
)

NO_STANDING = Standing(0, 0, 0, 0, 0, 0, None)


GAME_BREAKS: dict[str, tuple[dict[str, Any], str]] = {
    "player_count": ({"player_count": 3}, "player_count is 3, but 2 are seated"),
    "last_seat": ({"last_seat": 7}, "last_seat is 7, but max_players is 50"),
    "status": ({"status": "PAUSED"}, "status is 'PAUSED'"),
    "alive_count": ({"alive_count": 2}, "alive_count is 2, but it never started"),
    "host": ({"host": "zoe"}, "host zoe is not seated"),
    "listing": (
        {"listing": "FULL#dirty-desert#0"},
        "listing is FULL#dirty-desert#0, should be OPEN#dirty-desert#0 while OPEN",
    ),
    "no listing": (
        {"listing": None},
        "listing is absent, should be OPEN#dirty-desert#0 while OPEN",
    ),
    "winner": ({"winner": "ada"}, "winner is ada while OPEN"),
    "game_id": ({"game_id": "other"}, "its item says it is game other"),
}


@pytest.mark.parametrize("name", GAME_BREAKS)
def test_a_broken_lobby_is_reported(name: str, table: None) -> None:
    changes, line = GAME_BREAKS[name]
    game = a_game(*players("ada", "ben"))
    change(game_item(game), **changes)
    assert f"game {game.game_id}: {line}" in broken_in_table()
    if name != "game_id":
        # Its seats lie under another id than the item tells, so they are reported, too.
        assert broken_in_table() == [f"game {game.game_id}: {line}"]


def test_a_missing_listed_at_is_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"))
    change(game_item(game), listed_at=None)
    (line,) = broken_in_table()
    assert line.startswith(f"game {game.game_id}: listed_at is absent, should be 20")


def test_more_players_than_seats_are_reported(table: None) -> None:
    game = a_game(*players("ada", "ben", "cleo"), max_players=3)
    change(game_item(game), max_players=2, last_seat=1)
    assert broken_in_table() == [f"game {game.game_id}: player_count is 3, outside 0..2"]


def test_a_listed_game_that_ended_is_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"), status=CANCELLED)
    change(game_item(game), listing="OPEN#dirty-desert#0")
    assert broken_in_table() == [
        f"game {game.game_id}: listing is OPEN#dirty-desert#0, should be absent while CANCELLED"
    ]


def test_a_lobby_with_a_result_is_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"))
    change(seat(game, "ben"), placement=2)
    assert broken_in_table() == [f"game {game.game_id}: ben has a result, but it never started"]


def test_a_wrong_alive_count_is_reported(table: None) -> None:
    game, _ = a_running_game("ada", "ben", "cleo")
    change(game_item(game), alive_count=3)
    assert broken_in_table() == [f"game {game.game_id}: alive_count is 3, but 2 are alive"]


def test_a_running_game_with_one_survivor_is_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"), status=STARTED)
    change(seat(game, "ben"), is_alive=False, placement=2, is_settled=True)
    change(user("ben"), games_played=1, deaths=1, current_game=None)
    change(game_item(game), alive_count=1)
    assert broken_in_table() == [f"game {game.game_id}: 1 alive, but it has not ended"]


SEAT_BREAKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "placement twice": (
        "cleo",
        {"placement": 2},
        "placements of the 2 eliminated are [2, 2], should be each of 2..3",
    ),
    "no placement": (
        "cleo",
        {"placement": None},
        "placements of the 2 eliminated are [2], should be each of 2..3",
    ),
    "winner's placement": ("ada", {"placement": None}, "winner is ada, but placement 1 has nobody"),
    "history_of": ("ben", {"history_of": None}, "ben's history_of is absent, should be ben"),
    "history_of another": (
        "ben",
        {"history_of": "cleo"},
        "ben's history_of is cleo, should be ben",
    ),
    "kills": ("ben", {"kills": 1}, "ben's kills is 1, but 0 eliminations name him"),
    "eliminated_by": (
        "ben",
        {"eliminated_by": "zoe"},
        "zoe eliminated a player, but is not seated",
    ),
    "is_settled": ("ben", {"is_settled": False}, "ben has a result that is not settled"),
}


@pytest.mark.parametrize("name", SEAT_BREAKS)
def test_a_broken_result_is_reported(name: str, table: None) -> None:
    username, changes, line = SEAT_BREAKS[name]
    game = a_finished_game()
    change(seat(game, username), **changes)
    of_games = [each for each in broken_in_table() if each.startswith("game ")]
    assert f"game {game.game_id}: {line}" in of_games
    # A seat taken from its killer also costs him a kill.
    assert len(of_games) == (2 if name == "eliminated_by" else 1)


def test_a_second_survivor_of_a_won_game_is_reported(table: None) -> None:
    game = a_finished_game()
    change(seat(game, "ben"), is_alive=True, placement=None, is_settled=False)
    assert f"game {game.game_id}: ada, ben alive, but ada has won" in broken_in_table()


def test_a_result_of_somebody_still_in_is_reported(table: None) -> None:
    game, _ = a_running_game("ada", "ben", "cleo")
    change(seat(game, "cleo"), placement=2)
    assert broken_in_table() == [f"game {game.game_id}: cleo has placement 2, but is still in"]
    change(seat(game, "cleo"), placement=None, is_settled=True)
    assert f"game {game.game_id}: cleo is settled, but still in" in broken_in_table()


def test_memberships_without_a_game_are_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"), status=CANCELLED)
    game_item(game).delete()
    assert broken_in_table() == [f"game {game.game_id}: 2 memberships (ada, ben), but no game"]


def test_a_seat_under_another_key_is_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"), status=CANCELLED)
    change(seat(game, "ben"), game_id="other")
    assert f"game {game.game_id}: the seat USER#ben says it is ben's in other" in broken_in_table()


def test_memberships_without_a_user_are_reported(table: None) -> None:
    a_game(*players("ada", "ben"), status=CANCELLED)
    user("ben").delete()
    assert broken_in_table() == ["player ben: 1 memberships, but no such user"]


USER_BREAKS: dict[str, tuple[dict[str, Any], str]] = {
    "games_played": (
        {"games_played": 2},
        "games_played is 2, but the settled memberships say 1",
    ),
    "wins": ({"wins": 0}, "wins is 0, but the settled memberships say 1"),
    "kills": ({"kills": 3}, "kills is 3, but the settled memberships say 2"),
    "deaths": ({"deaths": 1}, "deaths is 1, but the settled memberships say 0"),
    "score": ({"score": 10}, "score is 10, but 1 wins and 2 kills make 12"),
    "coins": ({"coins": -1}, "coins is -1, below 0"),
}


@pytest.mark.parametrize("name", USER_BREAKS)
def test_broken_stats_are_reported(name: str, table: None) -> None:
    changes, line = USER_BREAKS[name]
    a_finished_game()
    change(user("ada"), **changes)
    assert broken_in_table() == [f"player ada: {line}"]


@pytest.mark.parametrize("pointer", [None, "another"])
def test_a_lost_pointer_is_reported(pointer: str | None, table: None) -> None:
    game, _ = a_running_game("ada", "ben", "cleo")
    change(user("cleo"), current_game=pointer)
    assert broken_in_table() == [
        f"player cleo: sits in game {game.game_id}, but current_game is {pointer}"
    ]


def test_a_player_in_two_games_is_reported(table: None) -> None:
    first = a_game(*players("ada", "ben"))
    change(user("ben"), current_game=None)
    second = a_game(*players("cleo"))
    lobby.join_game(logged_in("ben").identity, second.game_id, now=NOW)
    games = ", ".join(sorted([first.game_id, second.game_id]))
    assert broken_in_table() == [f"player ben: sits in 2 games at once: {games}"]


def test_a_stale_pointer_is_no_finding(table: None) -> None:
    a_game(*players("ada", "ben"), status=CANCELLED)
    assert user("ada").current_game is not None
    assert broken_in_table() == []


def test_an_imported_record_may_know_less() -> None:
    game = Game.new("g", "dirty-desert", "ada", now=NOW, max_players=50, min_players=2)
    game.status, game.is_imported, game.player_count = FINISHED, True, 2
    game.listing = game.listed_at = None
    roster = [UserGameMapping.new("g", name, name, now=NOW) for name in ("ada", "ben")]
    assert checks.broken_game("g", game, roster) == []
    roster[0].placement = roster[1].placement = 3
    assert checks.broken_game("g", game, roster) == [
        "game g: placements are [3, 3], should differ and lie in 1..2"
    ]


def test_an_imported_game_needs_no_pointer() -> None:
    game = Game.new("g", "dirty-desert", "ada", now=NOW, max_players=50, min_players=2)
    career = Career()
    game.is_imported = True
    career.add(UserGameMapping.new("g", "ada", "Ada", now=NOW), game)
    assert checks.broken_user("ada", NO_STANDING, career) == []
