"""What each line of a dump means here, and what is said of broken ones; no table."""

import json
from datetime import UTC, datetime

import pytest

from gameserver import table as keys
from matches.importing.lines import read_line
from matches.importing.plan import Dump, PlannedGame, gather, plan_games
from matches.importing.records import DumpedGame, DumpedSeat, DumpedUser, Finding
from tests.matches.dumps import (
    LATER,
    LATEST,
    MADE,
    Line,
    encoded,
    finished_game_line,
    game_line,
    item,
    seat_line,
    user_line,
)

NOON = datetime(2019, 4, 14, 12, tzinfo=UTC)


def findings_of(line: Line) -> list[str]:
    return [str(finding) for finding in read_line(7, encoded(line)).findings]


def plan(*lines: Line) -> tuple[Dump, list[PlannedGame], list[str]]:
    dump = gather(read_line(number, encoded(line)) for number, line in enumerate(lines, 1))
    games, findings = plan_games(dump)
    return dump, games, [str(finding) for finding in [*dump.findings, *findings]]


def test_of_a_person_only_the_name_is_taken() -> None:
    read = read_line(7, encoded(user_line("ada")))
    assert read.record == DumpedUser(7, "ada", "Ada Smith")
    assert read.dropped == ("address", "birthdate", "email")
    assert read.findings == ()


def test_an_open_game_is_read() -> None:
    read = read_line(7, encoded(game_line("g", 34, map="Juicy Jungle")))
    assert read.record == DumpedGame(
        line=7,
        game_id="g",
        map="juicy-jungle",
        status="OPEN",
        creator="ada",
        people=34,
        created_at=NOON,
        started_at=None,
        ended_at=None,
        placements={},
    )
    assert (read.zoneless, read.dropped, read.findings) == (2, (), ())


def test_a_started_and_a_finished_game_are_read() -> None:
    started = read_line(1, encoded(game_line("g", start_time=LATER))).record
    finished = read_line(2, encoded(finished_game_line("g", gold="a", silver="b", bronze="c")))
    assert isinstance(started, DumpedGame)
    assert isinstance(finished.record, DumpedGame)
    assert (started.status, started.started_at) == ("STARTED", NOON.replace(minute=10))
    assert (finished.record.status, finished.record.ended_at) == (
        "FINISHED",
        NOON.replace(minute=40),
    )
    assert finished.record.placements == {"a": 1, "b": 2, "c": 3}
    assert finished.findings == ()


def test_a_membership_is_read() -> None:
    assert read_line(7, encoded(seat_line("g", "ada", place="gold"))).record == DumpedSeat(
        7, "g", "ada", "gold"
    )


def test_a_time_with_a_zone_is_converted() -> None:
    line = game_line("g", create_time="2019-04-14T14:00:00+02:00", open_timestamp=None)
    read = read_line(7, encoded({**line, "start_time": "2019-04-14T12:00:00Z"}))
    assert isinstance(read.record, DumpedGame)
    assert (read.record.created_at, read.zoneless) == (NOON, 0)


def test_unknown_fields_are_dropped_by_name() -> None:
    assert read_line(7, encoded(seat_line("g", "ada", shoe_size=42))).dropped == ("shoe_size",)


LEFT_OUT: dict[str, tuple[Line, str]] = {
    "bad json": ('{"PK": ', "not JSON (Expecting value: line 1 column 8 (char 7))"),
    "not utf-8": (b"\xff{}", "not JSON ('utf-8' codec can't decode byte 0xff"),
    "too deep": ("[" * 100_000, "not JSON ("),
    "no object": ("[1]", "not a JSON object"),
    "no keys": ({"username": "ada"}, "no PK"),
    "keys no text": ({"PK": 1, "SK": "x"}, "PK is not text"),
    "unknown kind": ({"PK": "PET#1", "SK": "#METADATA#1"}, "unknown kind of item: 'PET#1' / "),
    "no username": (item(keys.user_key("ada"), name="Ada"), "no username"),
    "username no text": (user_line("ada", username=5), "username is not text"),
    "short username": (user_line("ab"), "username 'ab': A username has 3 to 20"),
    "long username": (user_line("a" * 21), f"username '{'a' * 21}': A username has 3 to 20"),
    "forged username": (user_line("ada#x"), "username 'ada#x': A username has 3 to 20"),
    "capital username": (user_line("Ada"), "username 'Ada': here it would be another, 'ada'"),
    "reserved username": (user_line("guest-1"), "username 'guest-1': This username is reserved."),
    "other key": (user_line("ada", username="ben"), "its keys are 'USER#ada' / "),
    "no game_id": (game_line("g", game_id=None), "no game_id"),
    "odd game_id": (game_line("g#1"), "game_id 'g#1' is none of ours"),
    "no map": (game_line("g", map=None), "no map"),
    "unknown map": (game_line("g", map="Mount Doom"), "unknown map 'Mount Doom'"),
    "no create_time": (game_line("g", create_time=None), "no create_time"),
    "odd time": (game_line("g", create_time="yesterday"), "create_time is no time: 'yesterday'"),
    "date only": (game_line("g", create_time="2019-04-14"), "create_time is no time: '2019-04-14'"),
    "time no text": (game_line("g", create_time=5), "create_time is not text"),
    "time long ago": (
        game_line("g", create_time="0001-01-01T00:00:00+09:00"),
        "create_time is no time: '0001",
    ),
    "no state": (
        game_line("g", open_timestamp=None),
        "neither open_timestamp, start_time nor end_time tells its state",
    ),
    "membership of nobody": (seat_line("g", "ada", username=None), "no username"),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_broken_line_is_left_out(name: str) -> None:
    line, text = LEFT_OUT[name]
    assert read_line(7, encoded(line)).record is None
    (finding,) = findings_of(line)
    assert finding.startswith(f"line 7: left out: {text}")


INCONSISTENT: dict[str, tuple[Line, str]] = {
    "end before start": (
        finished_game_line(
            "g", start_time=LATEST, end_time=LATER, gold="a", silver="b", bronze="c"
        ),
        f"end_time {LATER}Z is before start_time {LATEST}Z; both stay as they are",
    ),
    "start before creation": (
        game_line("g", create_time=LATER, start_time=MADE),
        f"start_time {MADE}Z is before create_time {LATER}Z; both stay as they are",
    ),
    "opened later": (
        game_line("g", open_timestamp=LATER),
        "open_timestamp differs from create_time, which stays",
    ),
    "open and started": (
        game_line("g", open_timestamp=MADE, start_time=LATER),
        "has open_timestamp, but is STARTED",
    ),
    "ended, never started": (
        finished_game_line("g", start_time=None, gold="a", silver="b", bronze="c"),
        "has end_time, but no start_time",
    ),
    "no people": (game_line("g", people=None), "no people"),
    "odd people": (game_line("g", people="many"), "people is no number: 'many'"),
    "people true": (game_line("g", people=True), "people is no number: True"),
    "medal before the end": (
        game_line("g", gold="ada"),
        "gold goes to 'ada', but it has not ended",
    ),
    "no medal": (finished_game_line("g", gold="a", silver="b"), "has ended, but nobody has bronze"),
    "two medals": (
        finished_game_line("g", gold="a", silver="b", bronze="a"),
        "bronze goes to 'a', who has a better place",
    ),
    "no name": (
        user_line("ada", name=None),
        "name '' is replaced by the username. A display name has 1 to 32 characters.",
    ),
    "long name": (
        user_line("ada", name="x" * 33),
        f"name '{'x' * 33}' is replaced by the username. A display name has 1 to 32 characters.",
    ),
    "unknown place": (seat_line("g", "ada", place="tin"), "unknown place 'tin'"),
}


@pytest.mark.parametrize("name", INCONSISTENT)
def test_an_inconsistent_line_is_taken_and_reported(name: str) -> None:
    line, text = INCONSISTENT[name]
    assert read_line(7, encoded(line)).record is not None
    assert findings_of(line) == [f"line 7: {text}"]


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


def test_a_finding_reads_as_one_line() -> None:
    assert str(Finding(3, "no people")) == "line 3: no people"
    assert str(Finding(3, "no PK", is_left_out=True)) == "line 3: left out: no PK"


@pytest.mark.parametrize(
    "value", [None, 1e400, True, "text", [], {}, {"PK": None, "SK": []}, {"\ud800": "\ud800"}]
)
def test_any_json_is_survived(value: object) -> None:
    read = read_line(1, json.dumps(value).encode())
    assert read.record is None
    assert str(read.findings[0]).isprintable()


def test_odd_values_make_short_printable_lines() -> None:
    line = user_line("ada", name="\ud800" * 1_000_000, **{"\ud801": 1})
    read = read_line(1, encoded(line))
    assert isinstance(read.record, DumpedUser)
    assert read.record.display_name == "ada"
    assert read.dropped[0] == "\\ud801"
    assert len(str(read.findings[0])) < 300
    assert str(read.findings[0]).isprintable()
