"""The lines of a dump held against each other, and the games that come of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from matches.importing.lines import PLACEMENTS
from matches.importing.records import (
    DumpedGame,
    DumpedSeat,
    DumpedUser,
    Finding,
    ReadLine,
    Record,
)
from matches.models import FINISHED, OPEN
from matches.rules import MAX_PLAYERS


@dataclass
class Dump:
    """A whole file: its usable items, each once, in the order of their lines, and its findings."""

    users: dict[str, DumpedUser] = field(default_factory=dict)
    games: dict[str, DumpedGame] = field(default_factory=dict)
    seats: dict[str, list[DumpedSeat]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    zoneless: int = 0

    @property
    def size(self) -> int:
        """Number of items to import."""
        return len(self.users) + len(self.games) + sum(map(len, self.seats.values()))


@dataclass(frozen=True)
class PlannedSeat:
    """A membership as it will be stored. `kills` is 0 in a lobby, else unknown (None).

    `has_result`: it counts in its player's stats.
    """

    username: str
    display_name: str
    placement: int | None
    is_alive: bool
    kills: int | None
    has_result: bool


@dataclass(frozen=True)
class PlannedGame:
    """A game as it will be stored; `winner` is who has placement 1."""

    game: DumpedGame
    host: str
    winner: str | None
    seats: tuple[PlannedSeat, ...]

    @property
    def alive_count(self) -> int | None:
        """Everybody in a running game: the dump knows of no elimination. Null otherwise."""
        return None if self.game.status in {OPEN, FINISHED} else len(self.seats)


def gather(lines: Iterable[ReadLine]) -> Dump:
    """Collect lines; of two with the same key, the first counts."""
    dump = Dump()
    first: dict[tuple[str, ...], Record] = {}
    seats: list[DumpedSeat] = []
    for line in lines:
        dump.findings += line.findings
        dump.zoneless += line.zoneless
        for name in line.dropped:
            dump.dropped[name] = dump.dropped.get(name, 0) + 1
        record = line.record
        if record is None:
            continue
        same = first.setdefault(_identity(record), record)
        if same is not record:
            dump.findings.append(
                Finding(record.line, f"the same item as line {same.line}", is_left_out=True)
            )
        elif isinstance(record, DumpedUser):
            dump.users[record.username] = record
        elif isinstance(record, DumpedGame):
            dump.games[record.game_id] = record
        else:
            seats.append(record)
    for seat in seats:
        _take_seat(dump, seat)
    return dump


def plan_games(dump: Dump) -> tuple[list[PlannedGame], list[Finding]]:
    """Plan every game of a dump; the findings tell of games left out, and what does not fit."""
    planned: list[PlannedGame] = []
    findings: list[Finding] = []
    for game in dump.games.values():
        found = _findings(game, dump.seats.get(game.game_id, []))
        findings += found
        if not any(finding.is_left_out for finding in found):
            planned.append(plan_game(dump, game, dump.seats[game.game_id]))
    return planned, findings


def plan_game(dump: Dump, game: DumpedGame, seats: Sequence[DumpedSeat]) -> PlannedGame:
    """Plan one game with these members (at least one)."""
    members = sorted(seat.username for seat in seats)
    placements = {name: place for name, place in game.placements.items() if name in members}
    winner = next((name for name, placement in placements.items() if placement == 1), None)
    # As next_host does it: the longest-seated, here all at once, then by name.
    host = game.creator if game.creator in members or game.status != OPEN else members[0]
    return PlannedGame(
        game=game,
        host=host or members[0],
        winner=winner,
        seats=tuple(
            _plan_seat(dump.users[name], game.status, placements.get(name), winner)
            for name in members
        ),
    )


def _plan_seat(
    user: DumpedUser, status: str, placement: int | None, winner: str | None
) -> PlannedSeat:
    """Plan a seat. In a finished game with a known winner, everybody else was eliminated.

    Without one nobody knows who was left, as in a game that timed out.
    """
    is_winner = user.username == winner
    has_result = status == FINISHED and (winner is not None or placement is not None)
    return PlannedSeat(
        username=user.username,
        display_name=user.display_name,
        placement=placement,
        is_alive=is_winner or not has_result,
        kills=0 if status == OPEN else None,
        has_result=has_result,
    )


def _identity(record: Record) -> tuple[str, ...]:
    if isinstance(record, DumpedUser):
        return ("user", record.username)
    if isinstance(record, DumpedGame):
        return ("game", record.game_id)
    return ("seat", record.game_id, record.username)


def _take_seat(dump: Dump, seat: DumpedSeat) -> None:
    missing = []
    if seat.game_id not in dump.games:
        missing.append(f"game {seat.game_id}")
    if seat.username not in dump.users:
        missing.append(f"user {seat.username}")
    if missing:
        text = f"membership of an unknown {' and '.join(missing)}"
        dump.findings.append(Finding(seat.line, text, is_left_out=True))
    else:
        dump.seats.setdefault(seat.game_id, []).append(seat)


def _findings(game: DumpedGame, seats: Sequence[DumpedSeat]) -> list[Finding]:
    found: list[Finding] = []
    if game.people is not None and game.people != len(seats):
        text = f"people is {game.people}, but {len(seats)} memberships could be taken"
        found.append(Finding(game.line, text))
    if not seats or len(seats) > MAX_PLAYERS:
        text = f"has {len(seats)} memberships, a game here has 1 to {MAX_PLAYERS}"
        found.append(Finding(game.line, text, is_left_out=True))
        text = f"membership of the game left out on line {game.line}"
        return found + [Finding(seat.line, text, is_left_out=True) for seat in seats]
    if game.creator is None:
        text = "no creator who could host it; its first member by name does"
        found.append(Finding(game.line, text))
    elif game.creator not in {seat.username for seat in seats}:
        text = "; its first member by name hosts it" if game.status == OPEN else ""
        found.append(Finding(game.line, f"creator {game.creator} is no member{text}"))
    return found + _place_findings(game, seats)


def _place_findings(game: DumpedGame, seats: Sequence[DumpedSeat]) -> list[Finding]:
    """Compare the placements that a game's line gives with what its members' lines say."""
    members = {seat.username for seat in seats}
    found = [
        Finding(game.line, f"placement {placement} of {username!r}, who is no member, is dropped")
        for username, placement in game.placements.items()
        if username not in members
    ]
    for seat in seats:
        counts = game.placements.get(seat.username)
        claimed = PLACEMENTS[seat.place] if seat.place else None
        if claimed != counts:
            text = (
                f"place is {seat.place or 'absent'}, but line {game.line}, which counts, gives"
                f" {seat.username} {f'placement {counts}' if counts else 'no placement'}"
            )
            found.append(Finding(seat.line, text))
    return found
