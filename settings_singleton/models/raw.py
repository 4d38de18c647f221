"""Reading the settings item as it is, with a client of its own."""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError
from django.conf import settings

from gameserver import capacity, engine, table
from gameserver.capacity import access_pattern
from settings_singleton.registry import RawItem
from settings_singleton.shapes import SHAPES, Shape

CONNECT_TIMEOUT_SECONDS = 0.5
READ_TIMEOUT_SECONDS = 1.0

_client: Any = None
_connecting = threading.Lock()


@access_pattern("read settings")
def read_flags() -> Mapping[str, RawItem]:
    """Read the item raw: one strong GetItem per shape in use, 1 RCU.

    It has a client of its own (0.5 s to connect, 1 s to answer, no retries): a hanging table must
    not hold the settings up, and a bad attribute must not make the whole item unreadable.
    """
    return read_raw(SHAPES)


def read_raw(shapes: Sequence[Shape]) -> dict[str, RawItem]:
    """Read the items of some shapes, by sort key; those that are not there are left out."""
    found: dict[str, RawItem] = {}
    for shape in shapes:
        pk, sk = table.flags_key(shape.sk)
        response: dict[str, Any] | None = None
        try:
            response = own_client().get_item(
                TableName=settings.DYNAMODB_TABLE,
                Key={"PK": {"S": pk}, "SK": {"S": sk}},
                ConsistentRead=True,
                ReturnConsumedCapacity="INDEXES",
            )
        except (NoConnection, HTTPClientError):
            # An embedded engine that was started again listens elsewhere.
            if (broken := forget_client()) is not None:
                broken.close()
            raise
        finally:
            capacity.record("GetItem", response)
        if response.get("Item"):
            found[sk] = response["Item"]
    return found


def own_client() -> Any:
    """Return this module's client, made if there is none."""
    global _client  # noqa: PLW0603 (one per process)
    if _client is None:
        with _connecting:
            if _client is None:
                _client = _connect()
    return _client


def _connect() -> Any:
    credentials = "local" if settings.DYNAMODB_ENDPOINT_URL == engine.EMBEDDED else None
    return botocore.session.get_session().create_client(
        "dynamodb",
        settings.AWS_REGION,
        endpoint_url=engine.resolve_endpoint(settings.DYNAMODB_ENDPOINT_URL),
        aws_access_key_id=credentials,
        aws_secret_access_key=credentials,
        config=Config(
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
            retries={"total_max_attempts": 1},
            max_pool_connections=10,
            parameter_validation=False,
        ),
    )


def forget_client() -> Any:
    """Let the client go, and return it for whoever wants to close it."""
    global _client
    client, _client = _client, None
    return client


def _after_fork() -> None:
    """Leave the parent's sockets and locks alone: neither used nor closed."""
    global _connecting  # noqa: PLW0603 (one per process)
    _connecting = threading.Lock()
    forget_client()


os.register_at_fork(after_in_child=_after_fork)
