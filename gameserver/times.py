"""The one form in which times leave the server, over HTTP and over the WebSocket."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema


def rfc3339(time: datetime) -> str:
    """Write a time in UTC, always with microseconds: `2026-11-30T23:51:44.000000Z`.

    All are equally long, so that texts sort as the times do.
    """
    text = time.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


# ninja's and pydantic's own JSON differ: milliseconds, and as many digits as there are.
Timestamp = Annotated[
    datetime,
    PlainSerializer(rfc3339, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
