"""Write a dump into the table: whole after any crash once it is run again, and never twice.

Users come first, in the transactions that move the import's progress. Then each game appears with
its whole roster at once, and only then its results are counted. What is there already has lived on
since: it stays as it is.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from gameserver import hints, table
from gameserver.models import ConditionFailed
from matches.importing.lines import read_line
from matches.importing.plan import Dump, PlannedGame, gather, plan_game, plan_games
from matches.importing.records import DumpedSeat, DumpedUser, Finding, ReadLine
from matches.models import OPEN, STARTED, Game, ImportProgress, UserGameMapping
from matches.models.imports import RESULTS_AT_ONCE, USERS_AT_ONCE
from matches.rules import MAX_PLAYERS, MIN_PLAYERS
from players.models import User

Advance = Callable[[int], object]


@dataclass(frozen=True)
class DumpFile:
    """A dump that was read, what comes of its games, and the digest by which it is known."""

    digest: str
    dump: Dump
    games: list[PlannedGame]


@dataclass
class Imported:
    """What one run wrote (by kind), what was there before, and every line's finding."""

    written: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


def read_dump(path: Path) -> DumpFile:
    """Read a whole dump into memory.

    Raises: OSError.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        dump = gather(_lines(file, digest.update))
    games, findings = plan_games(dump)
    dump.findings += findings
    return DumpFile(digest.hexdigest(), dump, games)


def import_dump(file: DumpFile, *, now: datetime, advance: Advance) -> Imported:
    """Write what is not there yet; `advance` is told how many items are done.

    A username that belongs to an account of this server's own is not given to the dump's user.
    """
    imported = Imported(findings=list(file.dump.findings))
    _import_users(file, imported, now=now, advance=advance)
    missing = _missing_users(file.dump, imported)
    for planned in file.games:
        _import_game(file.dump, planned, missing, imported)
        advance(1 + len(planned.seats))
    imported.findings.sort(key=lambda finding: finding.line)
    return imported


def _lines(file: BinaryIO, digest: Callable[[bytes], None]) -> Iterator[ReadLine]:
    for number, raw in enumerate(file, 1):
        digest(raw)
        if raw.strip():
            yield read_line(number, raw)


def _import_users(file: DumpFile, imported: Imported, *, now: datetime, advance: Advance) -> None:
    through = ImportProgress.through(file.digest)
    waiting = iter(file.dump.users.values())
    while batch := [*islice(waiting, USERS_AT_ONCE)]:
        fresh = [user for user in batch if through is None or user.line > through]
        last = batch[-1].line
        exists: set[str] = set()
        while fresh and (through is None or through < last):
            users = [_user(user, now) for user in fresh if user.username not in exists]
            try:
                ImportProgress.add_users(file.digest, users, seen=through, through=last)
            except ConditionFailed as refused:
                exists |= ImportProgress.refused(refused.failed)
                if "progress" in refused:
                    # Another run of the same import was faster.
                    through = ImportProgress.through(file.digest)
            else:
                through = last
                imported.written.update({"users": len(users)} if users else {})
        advance(len(batch))
    imported.kept["users"] = len(file.dump.users) - imported.written["users"]


def _missing_users(dump: Dump, imported: Imported) -> dict[str, str]:
    """Return why a user of the dump has no account here that his memberships could go to."""
    there = ImportProgress.users_there(dump.users)
    missing: dict[str, str] = {}
    for user in dump.users.values():
        found = there.get(user.username)
        if found is not None and found.is_imported:
            continue
        imported.kept["users"] -= 1
        if found is None:
            missing[user.username] = "whose account was deleted since the import began"
        else:
            missing[user.username] = "whose name another account has here"
            text = f"the username {user.username} belongs to another account here"
            imported.findings.append(Finding(user.line, text, is_left_out=True))
    return missing


def _import_game(
    dump: Dump, planned: PlannedGame, missing: dict[str, str], imported: Imported
) -> None:
    game_id = planned.game.game_id
    game, roster = Game.with_roster(game_id, consistent=True)
    if game is None:
        members = _with_account(dump.seats[game_id], missing, imported)
        if not members:
            text = "has no member with an account here"
            imported.findings.append(Finding(planned.game.line, text, is_left_out=True))
            return
        planned = plan_game(dump, planned.game, members)
        game, roster = _game(planned), _roster(planned)
        try:
            ImportProgress.add_game(game, roster)
        except ConditionFailed as refused:
            if "game" not in refused:
                text = f"a membership of {game_id} is there already, but no game"
                imported.findings.append(Finding(planned.game.line, text, is_left_out=True))
                return
            game, roster = Game.with_roster(game_id, consistent=True)
        else:
            imported.written["memberships"] += len(roster)
            imported.written[f"{planned.game.status.lower()} games"] += 1
            hints.game_changed(game_id, planned.game.map)
            _settle(planned, roster)
            return
    imported.kept["games"] += 1
    imported.kept["memberships"] += len(roster)
    if game is not None and game.is_imported and game.status not in {OPEN, STARTED}:
        # The run that wrote it may have died before it counted all results.
        _settle(planned, roster)


def _with_account(
    seats: list[DumpedSeat], missing: dict[str, str], imported: Imported
) -> list[DumpedSeat]:
    imported.findings += [
        Finding(seat.line, f"membership of {seat.username}, {missing[seat.username]}", True)
        for seat in seats
        if seat.username in missing
    ]
    return [seat for seat in seats if seat.username not in missing]


def _settle(planned: PlannedGame, roster: list[UserGameMapping]) -> None:
    settled = {seat.username for seat in roster if seat.is_settled or seat.is_deleted}
    there = {seat.username for seat in roster}
    waiting = {
        seat.username: seat.username == planned.winner
        for seat in planned.seats
        if seat.has_result and seat.username in there - settled
    }
    while waiting:
        batch = dict(islice(waiting.items(), RESULTS_AT_ONCE))
        try:
            ImportProgress.settle(planned.game.game_id, batch)
        except ConditionFailed as refused:
            # Counted by another run, or the account is gone.
            for username in ImportProgress.refused(refused.failed):
                waiting.pop(username, None)
        else:
            waiting = {name: won for name, won in waiting.items() if name not in batch}


def _user(dumped: DumpedUser, now: datetime) -> User:
    """Return an account without a password; when it began is not known, so it begins now."""
    user = User.new(dumped.username, dumped.display_name, now=now)
    user.is_imported = True
    return user


def _game(planned: PlannedGame) -> Game:
    dumped = planned.game
    game = Game.new(
        dumped.game_id,
        dumped.map,
        planned.host,
        now=dumped.created_at,
        max_players=MAX_PLAYERS,
        min_players=MIN_PLAYERS,
    )
    game.is_imported = True
    game.player_count = len(planned.seats)
    game.alive_count = planned.alive_count
    game.status = dumped.status
    game.started_at = dumped.started_at
    game.ended_at = dumped.ended_at
    game.winner = planned.winner
    if dumped.status in {OPEN, STARTED}:
        game.listing = game.listing_for(dumped.status, len(planned.seats))
        game.listed_at = table.listed_at(dumped.created_at, dumped.game_id)
    else:
        game.listing = game.listed_at = None
    return game


def _roster(planned: PlannedGame) -> list[UserGameMapping]:
    """Return the seats, taken when the game was created: the dump does not know when."""
    roster = []
    for seat in planned.seats:
        mapping = UserGameMapping.new(
            planned.game.game_id, seat.username, seat.display_name, now=planned.game.created_at
        )
        mapping.kills = seat.kills
        mapping.placement = seat.placement
        mapping.is_alive = seat.is_alive
        roster.append(mapping)
    return roster
