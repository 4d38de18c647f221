"""`manage.py import_battle_royale FILE`: load the dump of AWS's game workshop."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from gameserver.commands import TableCommand
from matches.services.imports import DumpFile, Imported, import_dump, read_dump

MAPPED = """\
Mapped: map titles to ids, people to seats of 50, gold, silver and bronze to placements 1 to 3.
Unknown, so left unknown: kills (once started), the other placements, who is out in running games.
Unknown, so assumed: a membership begins with its game, a user with this import.
Nobody can log in as an imported user: none has a password, and their names are taken.
"""
KINDS = ("users", "open games", "started games", "finished games", "games", "memberships")


class Command(TableCommand):
    help = "Load a JSON-lines dump of the AWS workshop on modeling game player data. Resumable."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=Path, help="one JSON item a line")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            file = read_dump(options["file"])
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}.") from error
        with tqdm(total=file.dump.size, unit="item", disable=options["verbosity"] == 0) as bar:
            imported = import_dump(file, now=timezone.now(), advance=bar.update)
        self._report(file, imported)

    def _report(self, file: DumpFile, imported: Imported) -> None:
        self.stdout.write(f"Imported: {_counts(imported.written)}.")
        if any(imported.kept.values()):
            self.stdout.write(f"Already there, left as they are: {_counts(imported.kept)}.")
        self.stdout.write(MAPPED, ending="")
        self.stdout.write(f"Dropped: {_counts(file.dump.dropped, sorted(file.dump.dropped))}.")
        self.stdout.write(f"Taken as UTC: {file.dump.zoneless} times without a zone.")
        games = Counter(seat.username for game in file.games for seat in game.seats)
        several = sum(count > 1 for count in games.values())
        self.stdout.write(f"In several games, so without a current one: {several} users.")
        left_out = sum(finding.is_left_out for finding in imported.findings)
        others = len(imported.findings) - left_out
        self.stdout.write(f"Lines left out: {left_out}. Inconsistencies: {others}.")
        for finding in imported.findings:
            self.stdout.write(str(finding))


def _counts(counts: dict[str, int], names: Iterable[str] = KINDS) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in names if counts.get(name)) or "nothing"
