"""`manage.py sweep`: end lobbies and games that nobody tends."""

from typing import Any

from django.utils import timezone

from gameserver.commands import TableCommand
from matches.services.sweep import sweep
from settings_singleton import cache


class Command(TableCommand):
    help = "Cancel lobbies and end games that are past their time-outs."

    def handle(self, *args: Any, **options: Any) -> None:
        cache.refresh_now()
        swept = sweep(now=timezone.now())
        self.stdout.write(f"{swept.cancelled} lobbies cancelled, {swept.ended} games ended.")
