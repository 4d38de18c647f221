"""Answers of the table that get lost on their way: the write is done, the client does not know."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from gameserver.table import _RetryingConnection


@dataclass
class Lost:
    """Which calls were done and not answered."""

    operations: list[str] = field(default_factory=list)


@contextmanager
def losing_answers(*operations: str) -> Iterator[Lost]:
    """Lose the first answer to each call of `operations`; its repeats are answered."""
    lost = Lost()
    send = _RetryingConnection._send_once
    seen: set[int] = set()

    def send_and_lose(self: _RetryingConnection, operation: str, kwargs: dict[str, Any]) -> Any:
        response = send(self, operation, kwargs)
        if operation in operations and id(kwargs) not in seen:
            # The arguments of one call are the same object in all its attempts.
            seen.add(id(kwargs))
            kept.append(kwargs)
            lost.operations.append(operation)
            raise ReadTimeoutError(endpoint_url="the table")
        return response

    kept: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_RetryingConnection, "_send_once", send_and_lose)
        yield lost
