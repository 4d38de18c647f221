"""The lines of a dump held against each other, and the games that come of them; no table."""

import pytest

from matches.importing.lines import read_line
from matches.importing.plan import Dump, PlannedGame, gather, plan_games
from tests.matches.dumps import (
    LATER,
    Line,
    encoded,
    finished_game_line,
    game_line,
    seat_line,
    user_line,
)


def plan(*lines: Line) -> tuple[Dump, list[PlannedGame], list[str]]:
    dump = gather(read_line(number, encoded(line)) for number, line in enumerate(lines, 1))
    games, findings = plan_games(dump)
    return dump, games, [str(finding) for finding in [*dump.findings, *findings]]


def test_a_lobby_is_planned_with_its_members() -> None:
    users = [user_line("ada"), user_line("ben")]
    _, (game,), found = plan(*users, game_line("g"), seat_line("g", "ben"), seat_line("g", "ada"))
    assert (game.host, game.winner, game.alive_count, found) == ("ada", None, None, [])
    assert [(s.username, s.display_name, s.kills, s.is_alive) for s in game.seats] == [
        ("ada", "Ada Smith", 0, True),
        ("ben", "Ben Smith", 0, True),
    ]


def test_a_running_game_knows_nobody_who_is_out() -> None:
    users = [user_line("ada"), user_line("ben")]
    seats = [seat_line("g", "ada"), seat_line("g", "ben")]
    _, (game,), _ = plan(*users, game_line("g", start_time=LATER), *seats)
    assert game.alive_count == 2
    assert [(s.is_alive, s.kills, s.placement, s.has_result) for s in game.seats] == [
        (True, None, None, False)
    ] * 2


def test_a_finished_game_knows_three_placements() -> None:
    names = ("ada", "ben", "cleo", "dora")
    _, (game,), found = plan(
        *map(user_line, names),
        finished_game_line("g", 4, gold="dora", silver="cleo", bronze="ben"),
        seat_line("g", "dora", place="gold"),
        seat_line("g", "cleo", place="silver"),
        seat_line("g", "ben", place="bronze"),
        seat_line("g", "ada"),
    )
    assert (game.winner, game.alive_count, found) == ("dora", None, [])
    assert [(s.username, s.placement, s.is_alive, s.kills, s.has_result) for s in game.seats] == [
        ("ada", None, False, None, True),
        ("ben", 3, False, None, True),
        ("cleo", 2, False, None, True),
        ("dora", 1, True, None, True),
    ]


def test_without_a_known_winner_only_known_placements_are_results() -> None:
    names = ("ada", "ben", "cleo")
    line = finished_game_line("g", 3, silver="ada", bronze="ben")
    seats = [seat_line("g", "ada", place="silver"), seat_line("g", "ben", place="bronze")]
    _, (game,), found = plan(*map(user_line, names), line, *seats, seat_line("g", "cleo"))
    assert game.winner is None
    assert [(s.username, s.is_alive, s.has_result) for s in game.seats] == [
        ("ada", False, True),
        ("ben", False, True),
        ("cleo", True, False),
    ]
    assert found == ["line 4: has ended, but nobody has gold"]


def both(line: Line, *more: Line) -> list[str]:
    """Findings in a dump of ada (line 1), ben (2), a game with both (3 to 5), and `more`."""
    seats = [seat_line("g", "ada"), seat_line("g", "ben")]
    return plan(user_line("ada"), user_line("ben"), line, *seats, *more)[2]


MISFITS: dict[str, tuple[list[str], list[str]]] = {
    "people": (
        both(game_line("g", 3)),
        ["line 3: people is 3, but 2 memberships could be taken"],
    ),
    "unknown user": (
        both(game_line("g"), seat_line("g", "zoe")),
        ["line 6: left out: membership of an unknown user zoe"],
    ),
    "unknown game": (
        both(game_line("g"), seat_line("h", "ada")),
        ["line 6: left out: membership of an unknown game h"],
    ),
    "unknown both": (
        both(game_line("g"), seat_line("h", "zoe")),
        ["line 6: left out: membership of an unknown game h and user zoe"],
    ),
    "game left out": (
        both(game_line("g", map="Mount Doom")),
        [
            "line 3: left out: unknown map 'Mount Doom'",
            "line 4: left out: membership of an unknown game g",
            "line 5: left out: membership of an unknown game g",
        ],
    ),
    "same user": (
        both(game_line("g"), user_line("ben")),
        ["line 6: left out: the same item as line 2"],
    ),
    "same game": (
        both(game_line("g"), game_line("g", 7)),
        ["line 6: left out: the same item as line 3"],
    ),
    "same membership": (
        both(game_line("g"), seat_line("g", "ada")),
        ["line 6: left out: the same item as line 4"],
    ),
    "no members": (
        both(game_line("g"), game_line("h", 0)),
        ["line 6: left out: has 0 memberships, a game here has 1 to 50"],
    ),
    "creator no member": (
        both(game_line("g", creator="zoe")),
        ["line 3: creator zoe is no member; its first member by name hosts it"],
    ),
    "no creator": (
        both(game_line("g", creator=None)),
        ["line 3: no creator who could host it; its first member by name does"],
    ),
    "odd creator": (
        both(game_line("g", creator="\ud800#")),
        ["line 3: no creator who could host it; its first member by name does"],
    ),
    "creator no member, started": (
        both(game_line("g", creator="zoe", start_time=LATER)),
        ["line 3: creator zoe is no member"],
    ),
    "placement of a stranger": (
        both(
            finished_game_line("g", gold="zoe", silver="ada", bronze="ben"),
        ),
        [
            "line 3: placement 1 of 'zoe', who is no member, is dropped",
            "line 4: place is absent, but line 3, which counts, gives ada placement 2",
            "line 5: place is absent, but line 3, which counts, gives ben placement 3",
        ],
    ),
    "place without a placement": (
        both(game_line("g"), user_line("cleo"), seat_line("g", "cleo", place="gold")),
        [
            "line 3: people is 2, but 3 memberships could be taken",
            "line 7: place is gold, but line 3, which counts, gives cleo no placement",
        ],
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_lines_that_do_not_fit_are_reported(name: str) -> None:
    found, expected = MISFITS[name]
    assert found == expected


def test_a_game_with_more_members_than_seats_is_left_out() -> None:
    names = [f"user-{number}" for number in range(51)]
    seats = [seat_line("g", name) for name in names]
    _, games, found = plan(*map(user_line, names), game_line("g", 51), *seats)
    assert games == []
    assert found[0] == "line 52: left out: has 51 memberships, a game here has 1 to 50"
    assert found[1] == "line 53: left out: membership of the game left out on line 52"
    assert len(found) == 52


def test_broken_lines_do_not_stop_the_others() -> None:
    dump, games, found = plan("{", *map(user_line, ("ada", "ben")), "", game_line("g", 1), "[]")
    assert list(dump.users) == ["ada", "ben"]
    assert len(found) == 5
    assert games == []
