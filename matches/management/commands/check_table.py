"""`manage.py check_table [GAME_ID]`: report every broken invariant of the stored games."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from gameserver.commands import TableCommand
from gameserver.errors import GameServerError
from matches.services import check


class Command(TableCommand):
    help = "Report every broken invariant in one game or all, beside running servers."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("game_id", nargs="?", help="check this game and its players only")

    def handle(self, *args: Any, **options: Any) -> None:
        game_id = options["game_id"]
        try:
            report = check.check_table() if game_id is None else check.check_game(game_id)
        except GameServerError as error:
            raise CommandError(error.detail) from error
        checked = f"{report.games} games, {report.players} players"
        for line in report.broken:
            self.stdout.write(line)
        if report.broken:
            raise CommandError(f"{checked}: {len(report.broken)} broken.")
        self.stdout.write(f"{checked}: nothing broken.")
