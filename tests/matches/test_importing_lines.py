"""What each line of a dump means here, and what is said of broken ones; no table."""

import json
from datetime import UTC, datetime

import pytest

from gameserver import table as keys
from matches.importing.lines import read_line
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
