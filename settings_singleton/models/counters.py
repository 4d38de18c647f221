"""Sharded counters."""

from collections.abc import Sequence

from pynamodb.attributes import NumberAttribute
from pynamodb.expressions.update import Action

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item

COUNTER_SHARDS = 10


class CounterShard(Item, discriminator="COUNTER"):
    """COUNTER#{name} / SHARD#{n}: a part of one global count; the parts add up to the total."""

    amount = NumberAttribute()

    @classmethod
    @access_pattern("count")
    def add(cls, name: str, shard: int, amount: int, token: str) -> None:
        """Add to one shard, creating it if need be: one TransactWrite of one item, 2 WCU.

        A plain ADD that is repeated after a lost answer counts twice; a transaction with the same
        ClientRequestToken does not.
        """
        item = cls.at(table.counter_key(name, shard))
        actions: list[Action] = [cls.kind.set(cls), cls.amount.add(amount)]
        cls._get_connection().connection.transact_write_items(
            condition_check_items=[],
            delete_items=[],
            put_items=[],
            update_items=[item.get_update_kwargs_from_instance(actions)],
            client_request_token=token,
        )

    @classmethod
    @access_pattern("read counters")
    def totals(cls, names: Sequence[str]) -> dict[str, int]:
        """Add up the shards of several counters: one BatchGetItem, 0.5 RCU a shard."""
        names_by_pk = {table.counter_key(name, 0)[0]: name for name in names}
        keys = [table.counter_key(name, shard) for name in names for shard in range(COUNTER_SHARDS)]
        totals = dict.fromkeys(names, 0)
        for item in cls.read_many(keys):
            if isinstance(item, cls):
                totals[names_by_pk[item.PK]] += int(item.amount)
        return totals
