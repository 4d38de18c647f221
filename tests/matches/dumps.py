"""Small dumps in the AWS workshop's layout."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gameserver import table as keys

MADE = "2019-04-14T12:00:00"
LATER = "2019-04-14T12:10:00"
LATEST = "2019-04-14T12:40:00"

Line = Mapping[str, Any] | str | bytes


def item(key: tuple[str, str], /, **fields: Any) -> dict[str, Any]:
    """One item; fields that are None are left away."""
    known = {name: value for name, value in fields.items() if value is not None}
    return {"PK": key[0], "SK": key[1], **known}


def user_line(username: str, /, **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "username": username,
        "name": f"{username.title()} Smith",
        "email": f"{username}@example.org",
        "birthdate": "1970-01-01",
        "address": f"1 {username} Street",
    }
    return item(keys.user_key(username), **{**fields, **changes})


def game_line(game_id: str, people: int = 2, /, **changes: Any) -> dict[str, Any]:
    """A lobby on Green Grasslands, hosted by ada."""
    fields: dict[str, Any] = {
        "game_id": game_id,
        "map": "Green Grasslands",
        "create_time": MADE,
        "people": people,
        "creator": "ada",
    }
    if not changes.keys() & {"start_time", "end_time"}:
        fields["open_timestamp"] = MADE
    return item(keys.game_key(game_id), **{**fields, **changes})


def seat_line(game_id: str, username: str, /, **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"game_id": game_id, "username": username}
    return item(keys.mapping_key(game_id, username), **{**fields, **changes})


def finished_game_line(game_id: str, people: int = 2, /, **changes: Any) -> dict[str, Any]:
    times = {"start_time": LATER, "end_time": LATEST}
    return game_line(game_id, people, **{**times, **changes})


def encoded(line: Line) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def write_dump(folder: Path, *lines: Line) -> Path:
    path = folder / "dump.jsonl"
    path.write_bytes(b"".join(encoded(line) + b"\n" for line in lines))
    return path


def a_whole_dump(folder: Path) -> Path:
    """Four users; a lobby (o), a running game (r), a finished one (f); most are in several."""
    names = ("ada", "ben", "cleo", "dora")
    return write_dump(
        folder,
        *(user_line(name) for name in names),
        game_line("o"),
        game_line("r", 4, map="Dirty Desert", start_time=LATER),
        finished_game_line("f", 4, map="Open Ocean", gold="ben", silver="ada", bronze="dora"),
        *(seat_line("o", name) for name in ("ada", "ben")),
        *(seat_line("r", name) for name in names),
        seat_line("f", "ben", place="gold"),
        seat_line("f", "ada", place="silver"),
        seat_line("f", "dora", place="bronze"),
        seat_line("f", "cleo"),
    )
