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

from gameserver import engine, letterbox

_REFUSED_CREDENTIALS = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "UnrecognizedClientException",
}


class TableCommand(BaseCommand):
    """A command that works on the table.

    It uses the embedded engine of the server that runs on the same `DATA_DIR`, or starts one there
    for its own duration; hints reach that server. Meanwhile, nothing below a warning is logged.
    Subclasses implement `handle`, and extend `add_arguments`.
    """

    # Whether it may begin a database where there is none; others look or change what is there.
    may_create_data = False

    # The checks import every URL and admin page, which no command here needs.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_data_dir(parser)

    def execute(self, *args: Any, **options: Any) -> str | None:
        with quiet_logs(), clear_errors():
            if self.may_create_data:
                make_data_dir()
            own_engine = engine_on_data(may_create=self.may_create_data)
            with own_engine, letterbox.posted_hints(settings.DATA_DIR):
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


def make_data_dir() -> None:
    """Create `DATA_DIR` if anything is kept there, and the secret of a development server.

    Raises: CommandError.
    """
    staff = settings.DATABASES["default"]["ENGINE"]
    is_embedded = settings.DYNAMODB_ENDPOINT_URL == engine.EMBEDDED
    if settings.IS_PRODUCTION and not is_embedded and not staff.endswith("sqlite3"):
        return
    try:
        settings.DATA_DIR.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Made by being looked at.
        bool(settings.SECRET_KEY)
    except OSError as error:
        reason = error.strerror
        raise CommandError(f"DATA_DIR={settings.DATA_DIR} can't be used: {reason}.") from error


@contextmanager
def engine_on_data(*, may_create: bool) -> Iterator[None]:
    """Where the table is embedded, use the running server's engine, or start one on its data.

    Raises: EngineError, also if `DATA_DIR` holds no data, unless that may be created.
    """
    if settings.DYNAMODB_ENDPOINT_URL != engine.EMBEDDED:
        yield
        return
    own: AbstractContextManager[object] = nullcontext()
    try:
        engine.running_url(settings.DATA_DIR)
    except engine.EngineNotRunning:
        if not may_create and not engine.has_data(settings.DATA_DIR):
            raise engine.EngineNotRunning(
                f"DATA_DIR={settings.DATA_DIR} holds no data: name the server's folder by "
                "--data-dir or DATA_DIR, or begin one with `manage.py create_table`."
            ) from None
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
