"""`manage.py make_referee NAME`: let an account report everybody's eliminations."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from gameserver.commands import TableCommand
from gameserver.errors import GameServerError
from players.rules import canonical_username
from players.services import accounts


class Command(TableCommand):
    help = "Give an account the referee role (a trusted game server)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = accounts.make_referee(canonical_username(options["username"]))
        except GameServerError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"{user.username} is a referee now.")
