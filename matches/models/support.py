"""Small items that keep several processes, or several tries, from doing a thing twice."""

from datetime import datetime
from typing import Self

from pynamodb.attributes import UnicodeAttribute

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import ConditionFailed, Item, Write, transact

# Where the pointer lies that stands for all maps; no map has this id.
ANY_MAP = "any"


class QuickJoinPointer(Item, discriminator="QUICK_JOIN"):
    """QUICKJOIN#{map} / #METADATA: the lobby that quick-join last created on a map, or on any.

    Creating the next one swaps both, so two players at once cannot create two.
    """

    game_id = UnicodeAttribute()

    @classmethod
    @access_pattern("read quick-join pointer")
    def on_map(cls, game_map: str) -> Self | None:
        """Read a map's pointer: one consistent GetItem, 1 RCU."""
        return cls.read(table.quick_join_key(game_map), consistent=True)

    @classmethod
    def swap(cls, game_map: str, seen: str | None, game_id: str) -> Write:
        """Point to a new lobby, if the pointer is still what was seen."""
        condition = cls.PK.does_not_exist() if seen is None else cls.game_id == seen
        return cls(*table.quick_join_key(game_map), game_id=game_id).put(condition)


class RequestRecord(Item, discriminator="REQUEST"):
    """REQUEST#{username}#{digest of the key} / #METADATA: what an Idempotency-Key was used for."""

    body_hash = UnicodeAttribute()
    game_id = UnicodeAttribute()

    @classmethod
    def new(
        cls, username: str, key: str, body_hash: str, game_id: str, *, expires_at: datetime
    ) -> Self:
        """Return an unsaved record."""
        return cls(
            *table.request_key(username, key),
            body_hash=body_hash,
            game_id=game_id,
            expires_at=expires_at,
        )

    @classmethod
    @access_pattern("read request record")
    def of(cls, username: str, key: str, *, now: datetime) -> Self | None:
        """Read the record of a key, unless it has expired: one consistent GetItem, 1 RCU."""
        record = cls.read(table.request_key(username, key), consistent=True)
        if record is None or record.expires_at is None or record.expires_at < now:
            return None
        return record

    def claim(self, *, now: datetime) -> Write:
        """Write the record where none, or an expired one, stands (TTL deletes late)."""
        cls = type(self)
        return self.put(cls.PK.does_not_exist() | (cls.expires_at < now))


class Lease(Item, discriminator="LEASE"):
    """LEASE#{name} / #METADATA: which process does a task that only one should do."""

    owner = UnicodeAttribute()

    @classmethod
    @access_pattern("take lease")
    def take(cls, name: str, owner: str, *, now: datetime, until: datetime) -> bool:
        """Take or renew a lease, 2 WCU; False if another holds it."""
        free = cls.PK.does_not_exist() | (cls.owner == owner) | (cls.expires_at < now)
        lease = cls(*table.lease_key(name), owner=owner, expires_at=until)
        try:
            transact(lease=lease.put(free))
        except ConditionFailed:
            return False
        return True
