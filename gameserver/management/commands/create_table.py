"""`manage.py create_table`: the table and its first settings, if they are missing."""

from typing import Any

from django.utils import timezone

from gameserver.commands import TableCommand
from gameserver.models import Item
from gameserver.schema import create_table
from settings_singleton.services import create_first_item


class Command(TableCommand):
    help = "Create the table if it is missing; report how an existing one differs."
    may_create_data = True

    def handle(self, *args: Any, **options: Any) -> None:
        differences = create_table()
        create_first_item(now=timezone.now())
        if options["verbosity"] == 0:
            return
        name = Item.Meta.table_name
        for difference in differences:
            self.stdout.write(self.style.WARNING(f"Table {name}: {difference}."))
        if not differences:
            self.stdout.write(f"Table {name} is as designed.")
