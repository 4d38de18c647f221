"""An import, and what the table holds after it."""

from pathlib import Path
from typing import Any

from gameserver.models import Item
from matches.services import check
from matches.services.imports import Imported, import_dump, read_dump
from players.models import User
from tests.builders import NOW


def import_file(path: Path) -> Imported:
    return import_dump(read_dump(path), now=NOW, advance=lambda done: None)


def everything() -> dict[tuple[str, str], Any]:
    """The whole table, raw, but for the counters: they are written in the background."""
    response = Item._get_connection().scan()
    assert "LastEvaluatedKey" not in response
    items = [raw for raw in response["Items"] if raw["kind"]["S"] != "COUNTER"]
    return {(raw["PK"]["S"], raw["SK"]["S"]): raw for raw in items}


def broken() -> list[str]:
    return check.check_table(pause=lambda seconds: None).broken


def user(username: str) -> User:
    found = User.by_username(username, consistent=True)
    assert found is not None
    return found


def stats(username: str) -> tuple[float, ...]:
    one = user(username)
    return (one.games_played, one.wins, one.kills, one.deaths, one.coins, one.score)
