"""One line of the dump: what it means here, what it drops, and what is wrong with it."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from reprlib import Repr
from typing import Any

from gameserver import table
from gameserver.errors import ValidationFailed
from matches.importing.records import (
    DumpedGame,
    DumpedSeat,
    DumpedUser,
    Finding,
    ReadLine,
    Record,
)
from matches.models import FINISHED, OPEN, STARTED
from matches.rules import GAME_ID, MAPS
from players import rules as player_rules

PLACEMENTS = {"gold": 1, "silver": 2, "bronze": 3}
_MAP_IDS = {title: map_id for map_id, title in MAPS.items()}
# The beginnings of the keys, which the dump shares with us.
_USER, _GAME, _SEAT = table.user_key(""), table.game_key(""), table.mapping_key("", "")


# Values are shown in one line of a report, however long they are.
_short = Repr()
_short.maxstring = _short.maxother = 60


class _Broken(Exception):
    """Nothing of this line can be taken."""


def read_line(number: int, raw: bytes) -> ReadLine:
    """Map one line of the dump; never raises."""
    fields = _Fields(number)
    try:
        fields.load(raw)
        record = _record(fields)
    except _Broken as broken:
        return ReadLine(None, (Finding(number, str(broken), is_left_out=True),))
    return ReadLine(record, tuple(fields.findings), fields.unused(), fields.zoneless)


class _Fields:
    """The fields of one line: remembers which were taken, and what was odd about them."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.findings: list[Finding] = []
        self.zoneless = 0
        self._values: dict[str, Any] = {}
        self._taken: set[str] = set()

    def load(self, raw: bytes) -> None:
        try:
            values = json.loads(raw.decode())
        except (ValueError, RecursionError) as error:
            raise _Broken(f"not JSON ({error})") from error
        if not isinstance(values, dict):
            raise _Broken("not a JSON object")
        self._values = values

    def unused(self) -> tuple[str, ...]:
        names = self._values.keys() - self._taken
        # They are printed, and may be anything.
        return tuple(sorted(ascii(name)[1:-1] for name in names))

    def note(self, text: str) -> None:
        self.findings.append(Finding(self.line, text))

    def any(self, name: str) -> Any:
        self._taken.add(name)
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        value = self.any(name)
        if value is not None and not isinstance(value, str):
            raise _Broken(f"{name} is not text")
        return value

    def needed(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise _Broken(f"no {name}")
        return value

    def time(self, name: str) -> datetime | None:
        """Return a time; one without a zone is taken as UTC and counted."""
        text = self.text(name)
        if text is None:
            return None
        try:
            # A date alone is no time.
            value = datetime.fromisoformat(text) if len(text) > len("2019-04-16") else None
            if value is None or value.year < 1970:
                raise ValueError
            if value.tzinfo is None:
                self.zoneless += 1
                return value.replace(tzinfo=UTC)
            return value.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise _Broken(f"{name} is no time: {_short.repr(text)}") from error


def _record(fields: _Fields) -> Record:
    pk, sk = fields.needed("PK"), fields.needed("SK")
    for prefix, read in ((_USER, _user), (_GAME, _game), (_SEAT, _seat)):
        if pk.startswith(prefix[0]) and sk.startswith(prefix[1]):
            return read(fields, (pk, sk))
    raise _Broken(f"unknown kind of item: {_short.repr(pk)} / {_short.repr(sk)}")


def _user(fields: _Fields, key: table.Key) -> DumpedUser:
    username = _username(fields.needed("username"))
    _check_key(key, table.user_key(username))
    name = fields.text("name") or ""
    try:
        display_name = player_rules.clean_display_name(name)
    except ValidationFailed as refused:
        fields.note(f"name {_short.repr(name)} is replaced by the username. {refused.detail}")
        display_name = username
    return DumpedUser(fields.line, username, display_name)


def _game(fields: _Fields, key: table.Key) -> DumpedGame:
    game_id = _game_id(fields.needed("game_id"))
    _check_key(key, table.game_key(game_id))
    title = fields.needed("map")
    if title not in _MAP_IDS:
        raise _Broken(f"unknown map {_short.repr(title)}")
    created = fields.time("create_time")
    if created is None:
        raise _Broken("no create_time")
    opened = fields.time("open_timestamp")
    started, ended = fields.time("start_time"), fields.time("end_time")
    if ended is None and started is None and opened is None:
        raise _Broken("neither open_timestamp, start_time nor end_time tells its state")
    status = FINISHED if ended else STARTED if started else OPEN
    if opened is not None and status != OPEN:
        fields.note(f"has open_timestamp, but is {status}")
    elif opened not in {None, created}:
        fields.note("open_timestamp differs from create_time, which stays")
    if ended is not None and started is None:
        fields.note("has end_time, but no start_time")
    times = {"create_time": created, "start_time": started, "end_time": ended}
    known = [(name, time) for name, time in times.items() if time is not None]
    for (earlier, first), (later, second) in pairwise(known):
        if second < first:
            fields.note(
                f"{later} {second:%FT%TZ} is before {earlier} {first:%FT%TZ}; both stay as they are"
            )
    return DumpedGame(
        fields.line,
        game_id,
        map=_MAP_IDS[title],
        status=status,
        creator=_creator(fields),
        people=_people(fields),
        created_at=created,
        started_at=started,
        ended_at=ended,
        placements=_placements(fields, status),
    )


def _seat(fields: _Fields, key: table.Key) -> DumpedSeat:
    game_id = _game_id(fields.needed("game_id"))
    username = _username(fields.needed("username"))
    _check_key(key, table.mapping_key(game_id, username))
    place = fields.text("place")
    if place is not None and place not in PLACEMENTS:
        fields.note(f"unknown place {_short.repr(place)}")
        place = None
    return DumpedSeat(fields.line, game_id, username, place)


def _placements(fields: _Fields, status: str) -> dict[str, int]:
    placements: dict[str, int] = {}
    for medal, placement in PLACEMENTS.items():
        username = fields.text(medal)
        if username is None:
            if status == FINISHED:
                fields.note(f"has ended, but nobody has {medal}")
        elif status != FINISHED:
            fields.note(f"{medal} goes to {_short.repr(username)}, but it has not ended")
        elif username in placements:
            fields.note(f"{medal} goes to {_short.repr(username)}, who has a better place")
        else:
            placements[username] = placement
    return placements


def _creator(fields: _Fields) -> str | None:
    creator = fields.text("creator") or ""
    return creator if player_rules.USERNAME.fullmatch(creator) else None


def _people(fields: _Fields) -> int | None:
    people = fields.any("people")
    if isinstance(people, int) and not isinstance(people, bool):
        return people
    fields.note("no people" if people is None else f"people is no number: {_short.repr(people)}")
    return None


def _username(username: str) -> str:
    try:
        canonical = player_rules.canonical_username(username)
        player_rules.check_new_username(canonical)
    except ValidationFailed as refused:
        raise _Broken(f"username {_short.repr(username)}: {refused.detail}") from refused
    if canonical != username:
        raise _Broken(
            f"username {_short.repr(username)}: here it would be another, {_short.repr(canonical)}"
        )
    return username


def _game_id(game_id: str) -> str:
    if not GAME_ID.fullmatch(game_id):
        raise _Broken(f"game_id {_short.repr(game_id)} is none of ours: {GAME_ID.pattern}")
    return game_id


def _check_key(key: table.Key, expected: table.Key) -> None:
    if key != expected:
        raise _Broken(
            f"its keys are {_short.repr(key[0])} / {_short.repr(key[1])}, its fields say otherwise"
        )
