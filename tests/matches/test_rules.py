from datetime import timedelta

import pytest

from gameserver.errors import (
    GameFull,
    GameNotFound,
    GameNotOpen,
    GameServerError,
    NotAlive,
    NotEnoughPlayers,
    NotHost,
    NotInGame,
    NotReferee,
    ValidationFailed,
    WrongJoinCode,
)
from matches import rules
from matches.rules import Elimination, GameState, PlayerState
from tests.builders import NOW


def a_state(status: str = "OPEN", player_count: int = 2, max_players: int = 4) -> GameState:
    return GameState(status, "ann", player_count, max_players=max_players)


def a_private_state() -> GameState:
    return GameState("OPEN", "ann", 2, max_players=4, is_private=True, join_code="c0de")


def a_roster(*usernames: str, dead: str = "") -> list[PlayerState]:
    return [
        PlayerState(name, NOW + timedelta(seconds=n), is_alive=name not in dead.split())
        for n, name in enumerate(usernames)
    ]


@pytest.mark.parametrize("game_id", ["1", "x" * 64, "6a1b2c3d-0000-4000-8000-000000000000"])
def test_an_id_is_letters_digits_and_dashes(game_id: str) -> None:
    rules.check_game_id(game_id)


@pytest.mark.parametrize("game_id", ["", "x" * 65, "a#b", "a b", "a\n", "a/b", "ä", "\0"])
def test_what_cannot_be_an_id_is_not_found(game_id: str) -> None:
    with pytest.raises(GameNotFound):
        rules.check_game_id(game_id)


@pytest.mark.parametrize("game_map", ["", " ", "Dirty-Desert", "dirty-desert#0", "x" * 5000])
def test_only_maps_of_the_catalogue_exist(game_map: str) -> None:
    with pytest.raises(ValidationFailed):
        rules.check_map(game_map)


@pytest.mark.parametrize(("most", "least"), [(50, 2), (2, 2), (50, 50), (7, 3)])
def test_seats_may_be_2_to_50(most: int, least: int) -> None:
    rules.check_seats(most, least)


@pytest.mark.parametrize(("most", "least"), [(51, 2), (1, 1), (2, 3), (10, 1), (0, 0), (-2, -3)])
def test_other_seats_are_refused(most: int, least: int) -> None:
    with pytest.raises(ValidationFailed):
        rules.check_seats(most, least)


def test_an_open_game_with_a_free_seat_takes_players() -> None:
    rules.check_can_join(a_state(player_count=3, max_players=4))


@pytest.mark.parametrize(
    ("game", "code", "refusal"),
    [
        (a_state(player_count=4), None, GameFull),
        (a_state("STARTED"), None, GameNotOpen),
        (a_state("FINISHED", player_count=4), None, GameNotOpen),
        (a_state("CANCELLED"), None, GameNotOpen),
        (a_private_state(), None, WrongJoinCode),
        (a_private_state(), "", WrongJoinCode),
        (a_private_state(), "C0DE", WrongJoinCode),
        (a_private_state(), "\ud800", WrongJoinCode),
    ],
)
def test_a_game_refuses_with_the_reason(
    game: GameState, code: str | None, refusal: type[GameServerError]
) -> None:
    with pytest.raises(refusal):
        rules.check_can_join(game, code)


def test_a_private_game_takes_who_knows_its_code() -> None:
    rules.check_can_join(a_private_state(), "c0de")


@pytest.mark.parametrize(
    ("game", "username", "refusal"),
    [
        (a_state(), "bob", NotHost),
        (a_state("STARTED"), "bob", NotHost),
        (a_state("STARTED"), "ann", GameNotOpen),
        (a_state("CANCELLED"), "ann", GameNotOpen),
        (a_state(player_count=1), "ann", NotEnoughPlayers),
    ],
)
def test_a_start_is_refused_with_the_reason(
    game: GameState, username: str, refusal: type[GameServerError]
) -> None:
    with pytest.raises(refusal):
        rules.check_can_start(game, username)


def test_the_host_of_enough_players_starts() -> None:
    rules.check_can_start(a_state(player_count=2), "ann")


@pytest.mark.parametrize(
    ("authority", "role", "killer", "allowed"),
    [
        ("killer", "player", "ann", True),
        ("killer", "player", "bob", False),
        ("killer", "player", None, False),
        ("killer", "referee", "bob", True),
        ("killer", "referee", None, True),
        ("referee", "player", "ann", False),
        ("referee", "player", None, False),
        ("referee", "referee", "bob", True),
        ("referee", "referee", None, True),
    ],
)
def test_who_may_report_what(authority: str, role: str, killer: str | None, allowed: bool) -> None:
    if allowed:
        rules.check_can_report(authority, role, "ann", killer)
    else:
        with pytest.raises(NotReferee):
            rules.check_can_report(authority, role, "ann", killer)


def test_placement_counts_the_survivors_and_the_last_one_wins() -> None:
    game, names = a_state("STARTED", player_count=3), ("ann", "bob", "cat")

    first = rules.eliminate(game, a_roster(*names), "bob", "ann")
    last = rules.eliminate(game, a_roster(*names, dead="bob"), "ann", None)

    assert first == Elimination(placement=3, alive_count=2, winner=None)
    assert last == Elimination(placement=2, alive_count=1, winner="cat")


@pytest.mark.parametrize(
    ("status", "victim", "killer", "refusal"),
    [
        ("OPEN", "bob", "ann", GameNotOpen),
        ("FINISHED", "bob", "ann", GameNotOpen),
        ("STARTED", "ann", "ann", ValidationFailed),
        ("STARTED", "dan", "ann", NotInGame),
        ("STARTED", "bob", "dan", NotInGame),
        ("STARTED", "cat", "ann", NotAlive),
        ("STARTED", "bob", "cat", NotAlive),
    ],
)
def test_an_elimination_is_refused_with_the_reason(
    status: str, victim: str, killer: str, refusal: type[GameServerError]
) -> None:
    roster = a_roster("ann", "bob", "cat", dead="cat")

    with pytest.raises(refusal):
        rules.eliminate(a_state(status, player_count=3), roster, victim, killer)


def test_the_longest_seated_player_hosts_next() -> None:
    roster = a_roster("ann", "bob", "cat")

    assert rules.next_host(a_state(), roster, "ann") == "bob"
    assert rules.next_host(a_state(), roster, "bob") == "ann"
    assert rules.next_host(a_state(), a_roster("ann"), "ann") is None


def test_of_players_seated_at_the_same_moment_the_first_by_name_hosts() -> None:
    roster = [PlayerState(name, NOW) for name in ("ann", "cat", "bob")]

    assert rules.next_host(a_state(), roster, "ann") == "bob"


@pytest.mark.parametrize(
    ("status", "player_count", "is_private", "listed"),
    [
        ("OPEN", 1, False, "OPEN"),
        ("OPEN", 3, False, "OPEN"),
        ("OPEN", 4, False, "FULL"),
        ("OPEN", 1, True, "PRIVATE"),
        ("OPEN", 4, True, "PRIVATE"),
        ("STARTED", 4, False, "STARTED"),
        ("STARTED", 2, True, "STARTED"),
    ],
)
def test_a_game_is_listed_by_its_state(
    status: str, player_count: int, is_private: bool, listed: str
) -> None:
    assert rules.listing_state(status, player_count, 4, is_private=is_private) == listed
