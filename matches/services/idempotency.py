"""Requests that carry an Idempotency-Key: what a key stands for, and for how long."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gameserver.errors import IdempotencyKeyReused
from gameserver.models import ConditionFailed, Write
from matches.models import RequestRecord

# How long a repeated Idempotency-Key finds its first answer.
IDEMPOTENCY_HOURS = 24


@dataclass(frozen=True)
class KeyedRequest:
    """What a player asks for under a key of his; without a key nothing is kept or compared."""

    username: str
    key: str | None
    body: dict[str, Any]

    def claim(self, game_id: str, *, now: datetime) -> dict[str, Write]:
        """Return the write (named "request") to do along with what is asked, if there is a key."""
        if self.key is None:
            return {}
        expires_at = now + timedelta(hours=IDEMPOTENCY_HOURS)
        record = RequestRecord.new(
            self.username, self.key, self._hash, game_id, expires_at=expires_at
        )
        return {"request": record.claim(now=now)}

    def first_in(self, refused: ConditionFailed) -> RequestRecord | None:
        """Return the record of the same request if that is why `claim` was refused.

        Raises: IdempotencyKeyReused if the key was used for another request.
        """
        record = refused.failed.get("request")
        return self._same(record) if isinstance(record, RequestRecord) else None

    def first(self, *, now: datetime) -> RequestRecord | None:
        """Read the record of the same request, if it was done before.

        Raises: IdempotencyKeyReused if the key was used for another request.
        """
        if self.key is None:
            return None
        record = RequestRecord.of(self.username, self.key, now=now)
        return self._same(record) if record else None

    def _same(self, record: RequestRecord) -> RequestRecord:
        if record.body_hash != self._hash:
            raise IdempotencyKeyReused
        return record

    @property
    def _hash(self) -> str:
        return hashlib.sha256(json.dumps(self.body).encode()).hexdigest()
