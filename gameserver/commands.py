"""What management commands need to reach the table, and to fail with one clear line."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
    ReadTimeoutError,
)
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.utils import OperationalError

from gameserver import engine

_REFUSED_CREDENTIALS = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "UnrecognizedClientException",
}


class TableCommand(BaseCommand):
    """A command that works on the table.

    It uses the embedded engine of the server that runs on the same `DATA_DIR`, or starts one there
    for its own duration. Meanwhile, nothing below a warning is logged. Subclasses implement
    `handle`, and extend `add_arguments`.
    """

    # The checks import every URL and admin page, which no command here needs.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_data_dir(parser)

    def execute(self, *args: Any, **options: Any) -> str | None:
        with quiet_logs(), clear_errors(), reachable_engine():
            return super().execute(*args, **options)


def add_data_dir(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir`; manage.py has acted on it before the settings were read."""
    parser.add_argument("--data-dir", help="where the server keeps its data (DATA_DIR)")


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Log only warnings and errors inside the block: its reader is a person at a terminal."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.INFO))
    try:
        yield
    finally:
        # `serve` runs commands, too, and goes on logging.
        logging.disable(before)


@contextmanager
def reachable_engine() -> Iterator[None]:
    """See that `DYNAMODB_ENDPOINT_URL=embedded` finds an engine inside the block.

    Raises: EngineError.
    """
    if settings.DYNAMODB_ENDPOINT_URL != engine.EMBEDDED:
        yield
        return
    own: AbstractContextManager[object] = nullcontext()
    try:
        engine.running_url(settings.DATA_DIR)
    except engine.EngineNotRunning:
        own = engine.EmbeddedEngine(settings.DATA_DIR)
    # Not inside `except`: a failure of the command would be taken for one of the engine.
    with own:
        yield


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what an operator can mend into a CommandError of one line; let all else through."""
    try:
        yield
    except Exception as error:
        if line := explain(error):
            raise CommandError(line) from error
        raise


def explain(error: BaseException) -> str | None:
    """Say in one line what is wrong with the surroundings, or None if this is no such error."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if line := _explain_one(cause):
            return line
        # pynamodb keeps the original error in an attribute of its own.
        inner = getattr(cause, "cause", None)
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    return None


def _explain_one(error: BaseException) -> str | None:
    where = f"DYNAMODB_ENDPOINT_URL={settings.DYNAMODB_ENDPOINT_URL}"
    line = None
    match error:
        case engine.EngineError():
            line = str(error)
        case NoCredentialsError() | PartialCredentialsError():
            line = (
                f"{where} needs AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "a profile or a role."
            )
        case EndpointConnectionError() | ConnectTimeoutError() | ReadTimeoutError():
            line = f"No DynamoDB answers at {where}."
        case ClientError():
            code = error.response.get("Error", {}).get("Code", "")
            if code in _REFUSED_CREDENTIALS:
                line = f"The DynamoDB at {where} refused the credentials ({code})."
            elif code == "ResourceNotFoundException":
                line = f"There is no table {settings.DYNAMODB_TABLE}: run `manage.py create_table`."
        case OperationalError():
            line = f"The staff database (DATABASE_URL) can't be used: {str(error).splitlines()[0]}"
    return line
