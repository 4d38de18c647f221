"""`manage.py flags`: see, change and bring back the global settings."""

import getpass
import sys
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from gameserver.commands import TableCommand
from gameserver.errors import GameServerError
from gameserver.feeds.courier import carried_hints
from settings_singleton import services
from settings_singleton.models import AuditRow
from settings_singleton.registry import SETTINGS, Value, setting
from settings_singleton.shapes import Snapshot

# How far back `flags list` looks for who last changed a setting.
LIST_HISTORY = 200
YES = "do not ask, though it opens or costs something, or takes something from players"


class Command(TableCommand):
    help = "List the global settings, change one, show their history, or roll back."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        actions = parser.add_subparsers(dest="action", metavar="list|set|history|rollback")
        actions.add_parser("list", help="all settings (this is what no action does, too)")

        change = actions.add_parser("set", help="change one setting")
        change.add_argument("name", help="one of: " + ", ".join(SETTINGS))
        change.add_argument("value", help="on or off for a switch")
        _add_reason(change)

        past = actions.add_parser("history", help="the newest changes")
        past.add_argument("--limit", type=int, default=20)

        back = actions.add_parser("rollback", help="bring back all values of a revision")
        back.add_argument("revision", type=int)
        _add_reason(back)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with carried_hints():
                match options["action"]:
                    case "set":
                        self._set(options)
                    case "history":
                        self._history(options["limit"])
                    case "rollback":
                        self._rollback(options)
                    case _:
                        self._list()
        except GameServerError as error:
            raise CommandError(error.detail) from error

    def _list(self) -> None:
        now = timezone.now()
        stored = services.read_now()
        rows = services.history(LIST_HISTORY) if stored else []
        if stored is None:
            self.stdout.write("No settings item: safe defaults hold. Run `manage.py create_table`.")
        elif rows:
            newest = rows[0]
            self.stdout.write(
                f"Revision {stored.revision}, changed {_age(newest.at_time, now)} ago "
                f"by {newest.who}: {newest.why}"
            )
        shown = stored or Snapshot()
        width = max(len(name) for name in SETTINGS)
        for name, each in SETTINGS.items():
            value = each.show(shown.values[name]) or "(empty)"
            last = next((row for row in rows if name in row.after), None)
            trace = f"{_age(last.at_time, now)} ago, {last.who}: {last.why}" if last else ""
            if name in shown.defects:
                trace = "UNUSABLE in the table, the safe default holds"
            self.stdout.write(f"{name:{width}}  {value:8}  {trace}".rstrip())

    def _set(self, options: dict[str, Any]) -> None:
        each = setting(options["name"])
        value = each.parse(options["value"])
        stored = services.read_now() or Snapshot()
        before = stored.values[each.name]
        self._confirm({each.name: before}, {each.name: value}, is_confirmed=options["yes"])
        change = services.change(
            {each.name: value},
            who=options["who"],
            why=options["why"],
            now=timezone.now(),
            seen={each.name: before},
        )
        self._report(change)

    def _rollback(self, options: dict[str, Any]) -> None:
        stored = services.read_now() or Snapshot()
        wanted = services.values_of(options["revision"])
        before = {name: stored.values[name] for name in wanted}
        self._confirm(before, wanted, is_confirmed=options["yes"])
        change = services.rollback(
            options["revision"], who=options["who"], why=options["why"], now=timezone.now()
        )
        self._report(change)

    def _history(self, limit: int) -> None:
        for row in services.history(limit):
            self.stdout.write(f"{row.revision:>6}  {_utc(row.at_time)}  {row.who}: {row.why}")
            for line in _lines(row):
                self.stdout.write(f"        {line}")

    def _confirm(
        self, before: dict[str, Value], after: dict[str, Value], *, is_confirmed: bool
    ) -> None:
        """Have the name of every setting typed that goes in its dangerous direction."""
        for name, value in after.items():
            each = SETTINGS[name]
            if is_confirmed or not each.is_dangerous(before[name], value):
                continue
            question = f"{name}: {each.show(before[name])} -> {each.show(value) or '(empty)'}. "
            if not sys.stdin.isatty():
                raise CommandError(f"{question}This needs --yes where nobody can be asked.")
            if input(f"{question}Type its name to go on: ").strip() != name:
                raise CommandError("Nothing was changed.")

    def _report(self, change: services.Change) -> None:
        if not change.after:
            self.stdout.write(f"Nothing to change (revision {change.revision}).")
        for name, value in change.after.items():
            each = SETTINGS[name]
            self.stdout.write(
                f"{name}: {each.show(change.before[name])} -> {each.show(value)} "
                f"(revision {change.revision})"
            )


def _add_reason(parser: CommandParser) -> None:
    parser.add_argument("--why", required=True, help="the reason, kept in the history")
    parser.add_argument("--who", default=getpass.getuser(), help="who does it (your login)")
    parser.add_argument("--yes", action="store_true", help=YES)


def _lines(row: AuditRow) -> list[str]:
    lines = []
    for name, after in row.after.items():
        if name in SETTINGS:
            each = SETTINGS[name]
            before = each.show(row.before[name]) if name in row.before else "(none)"
            lines.append(f"{name}: {before} -> {each.show(after)}")
    return lines


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _age(time: datetime, now: datetime) -> str:
    seconds = max(0, int((now - time).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
