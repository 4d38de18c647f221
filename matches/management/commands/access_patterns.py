"""`manage.py access_patterns`: measure every access pattern and print the table of their costs."""

import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.test import override_settings

from gameserver import engine
from gameserver.commands import clear_errors
from gameserver.schema import create_table
from matches import access_patterns

BEGIN = "<!-- access patterns: begin -->"
END = "<!-- access patterns: end -->"


class Command(BaseCommand):
    help = "Measure every access pattern on a fresh engine; print what each costs."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write",
            type=Path,
            metavar="FILE",
            help=f"replace what stands in FILE between {BEGIN} and {END}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        measured = measure()
        path: Path | None = options["write"]
        if path is None:
            self.stdout.write(measured)
        else:
            path.write_text(replace_block(path.read_text(), measured))
            self.stdout.write(f"{path} holds {len(access_patterns.SCENARIOS)} access patterns.")


def measure() -> str:
    """Return the table of costs, from an engine that holds nothing else."""
    # An engine of its own whatever is configured: nobody's table is touched, figures never vary.
    with (
        tempfile.TemporaryDirectory() as folder,
        override_settings(
            DYNAMODB_ENDPOINT_URL=engine.EMBEDDED, DATA_DIR=Path(folder), LISTING_SHARDS=1
        ),
        clear_errors(),
        engine.EmbeddedEngine(Path(folder)),
    ):
        create_table()
        return access_patterns.markdown(access_patterns.measure_all())


def replace_block(text: str, block: str) -> str:
    """Return `text` with `block` between the two markers.

    Raises: CommandError if the markers are not there.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CommandError(f"The file has no block between {BEGIN} and {END}.")
    return f"{before}{begin}\n\n{block}\n\n{end}{after}"
