"""Pagination cursors: signed, and bound to the query they continue."""

from typing import Any

from django.core import signing

from gameserver.errors import InvalidCursor

# Longer than any key this project makes; what is longer was not made here.
MAX_LENGTH = 1024


def dump(query: str, position: Any) -> str:
    """Return an opaque, URL-safe cursor for a JSON position in `query`."""
    return signing.dumps(position, salt=f"cursor:{query}")


def load(query: str, cursor: str) -> Any:
    """Return the position a cursor holds.

    Raises: InvalidCursor (`invalid_cursor`) if it was altered or belongs to another query.
    """
    if len(cursor) > MAX_LENGTH:
        raise InvalidCursor
    try:
        return signing.loads(cursor, salt=f"cursor:{query}")
    except (signing.BadSignature, ValueError, UnicodeError) as error:
        raise InvalidCursor from error
