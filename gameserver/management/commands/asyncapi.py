"""`manage.py asyncapi`: print the WebSocket's document, or bring docs/protocol.md up to date."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from gameserver.asyncapi import document
from gameserver.protocol_tables import fill


class Command(BaseCommand):
    help = "Print the WebSocket's AsyncAPI document; or write the tables of docs/protocol.md."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--write-tables", action="store_true", help="into docs/protocol.md")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["write_tables"]:
            self.stdout.write(json.dumps(document(), indent=2))
            return
        page = settings.BASE_DIR / "docs" / "protocol.md"
        page.write_text(fill(page.read_text()))
