"""What the lines of a dump say, in our terms."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Finding:
    """What is wrong with a line; `is_left_out` if nothing of it could be taken."""

    line: int
    text: str
    is_left_out: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {'left out: ' if self.is_left_out else ''}{self.text}"


@dataclass(frozen=True)
class DumpedUser:
    """A user's line; of the person, only the name is taken."""

    line: int
    username: str
    display_name: str


@dataclass(frozen=True)
class DumpedGame:
    """A game's line; `people` is what it claims, `placements` maps usernames to 1, 2, 3.

    `creator` is None unless he is named as a user can be.
    """

    line: int
    game_id: str
    map: str
    status: str
    creator: str | None
    people: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    placements: dict[str, int]


@dataclass(frozen=True)
class DumpedSeat:
    """A membership's line; `place` is gold, silver, bronze or None."""

    line: int
    game_id: str
    username: str
    place: str | None


Record = DumpedUser | DumpedGame | DumpedSeat


@dataclass(frozen=True)
class ReadLine:
    """The result of one line.

    `dropped` names the fields that were not taken; `zoneless` counts the times taken as UTC.
    """

    record: Record | None
    findings: tuple[Finding, ...] = ()
    dropped: tuple[str, ...] = ()
    zoneless: int = 0
