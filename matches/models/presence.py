"""Which players are connected to which server process, so that a killed one leaves no ghosts."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Self

from pynamodb.attributes import BooleanAttribute, UnicodeAttribute, UTCDateTimeAttribute

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item

# Far longer than any seat can be held; what no sweep took away goes by TTL.
KEPT = timedelta(days=8)


class Heartbeat(Item, discriminator="HEARTBEAT"):
    """HEARTBEATS / PROCESS#{process_id}: a server process with sockets, and its last sign of life.

    Few and small, so all of them are one Query on one partition.
    """

    process_id = UnicodeAttribute()
    beat_at = UTCDateTimeAttribute()

    @classmethod
    @access_pattern("announce process")
    def announce(cls, process_id: str, *, now: datetime) -> None:
        """Make a process known: one BatchWriteItem of one, 1 WCU."""
        key = table.heartbeat_key(process_id)
        item = cls(*key, process_id=process_id, beat_at=now, expires_at=now + KEPT)
        cls.write_many([item])

    @classmethod
    @access_pattern("beat")
    def beat(cls, process_id: str, *, now: datetime) -> None:
        """Say that a known process still lives: one UpdateItem, 1 WCU.

        Raises: ConditionFailed if it is not known, or was forgotten.
        """
        actions = [cls.beat_at.set(now), cls.expires_at.set(now + KEPT)]
        cls.update_one(cls.at(table.heartbeat_key(process_id)).change(actions))

    @classmethod
    @access_pattern("list heartbeats")
    def all_known(cls) -> list[Self]:
        """Read all processes, living or not: one consistent Query, 1 RCU per 4 KB."""
        return cls.read_all(table.HEARTBEATS_PK, consistent=True)

    @classmethod
    @access_pattern("forget process")
    def forget(cls, process_id: str) -> None:
        """Delete a dead process's item, 1 WCU."""
        cls.delete_one(table.heartbeat_key(process_id))


class Presence(Item, discriminator="PRESENCE"):
    """PRESENCE#{process_id} / GAME#{game_id}#USER#{username}: a seat whose player is connected.

    One partition per process, so a dead one's seats are one Query. `is_away`: the player dropped,
    and the grace runs. `is_given_up`: it is over and the process is about to free the seat, so it
    is nobody's reason to keep it.
    """

    game_id = UnicodeAttribute()
    username = UnicodeAttribute()
    is_away = BooleanAttribute(default=False)
    is_given_up = BooleanAttribute(default=False)

    @classmethod
    def new(
        cls,
        process_id: str,
        game_id: str,
        username: str,
        *,
        now: datetime,
        is_away: bool = False,
        is_given_up: bool = False,
    ) -> Self:
        """Return an unsaved presence."""
        return cls(
            *table.presence_key(process_id, game_id, username),
            game_id=game_id,
            username=username,
            is_away=is_away,
            is_given_up=is_given_up,
            expires_at=now + KEPT,
        )

    @classmethod
    @access_pattern("record presence")
    def record(cls, present: Sequence[Self], gone: Iterable[Self] = ()) -> None:
        """Write and delete several: one BatchWriteItem per 25, 1 WCU each."""
        cls.write_many(present, [(item.PK, item.SK) for item in gone])

    @classmethod
    @access_pattern("list presences")
    def of_process(cls, process_id: str) -> list[Self]:
        """Read a process's presences: one consistent Query, 1 RCU per 4 KB."""
        return cls.read_all(table.presence_key(process_id, "", "")[0], consistent=True)

    @classmethod
    @access_pattern("find presences")
    def in_processes(
        cls, process_ids: Iterable[str], game_id: str, usernames: Iterable[str]
    ) -> list[Self]:
        """Read seats of a game in several processes: one consistent BatchGetItem per 100 of them.

        1 RCU each.
        """
        keys = [
            table.presence_key(process_id, game_id, username)
            for process_id, username in product(process_ids, usernames)
        ]
        found = cls.read_many(keys, consistent=True) if keys else []
        return [item for item in found if isinstance(item, cls)]
