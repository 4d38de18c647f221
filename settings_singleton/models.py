"""The settings item, its history, and the sharded counters, as they lie in the table."""

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

import botocore.session
from botocore.config import Config
from botocore.exceptions import ConnectionError as NoConnection
from botocore.exceptions import HTTPClientError
from django.conf import settings
from pynamodb.attributes import (
    Attribute,
    BooleanAttribute,
    JSONAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from gameserver import capacity, engine, table
from gameserver.capacity import access_pattern
from gameserver.models import Item, Write, transact
from settings_singleton.registry import SETTINGS, RawItem, Value
from settings_singleton.shapes import REVISION, SHAPES, Shape

CONNECT_TIMEOUT_SECONDS = 0.5
READ_TIMEOUT_SECONDS = 1.0
COUNTER_SHARDS = 10

_ATTRIBUTE_OF: dict[type, type[Attribute[Any]]] = {
    bool: BooleanAttribute,
    int: NumberAttribute,
    str: UnicodeAttribute,
}
_client: Any = None
_connecting = threading.Lock()


class FlagsItem(Item, discriminator="FLAGS"):
    """SETTINGS#APP / FLAGS#V1: one attribute per line of the registry, and the revision.

    Every write adds 1 to `schema_version`, the revision that readers and writers compare. The
    version of the item's shape is in its sort key.
    """

    revision = NumberAttribute(attr_name=REVISION)
    vars().update({name: _ATTRIBUTE_OF[each.type](null=True) for name, each in SETTINGS.items()})

    @classmethod
    @access_pattern("create settings")
    def create(cls, revision: int, values: Mapping[str, Value], row: "AuditRow") -> None:
        """Write the item where there is none: one TransactWrite, 4 WCU.

        Raises: ConditionFailed ("flags" if it is there already).
        """
        item = cls(*table.flags_key(SHAPES[0].sk), revision=revision, **SHAPES[0].encode(values))
        transact(flags=item.put(), row=row.put())

    @classmethod
    @access_pattern("change settings")
    def replace(
        cls,
        seen: int,
        changes: Mapping[str, Value],
        row: "AuditRow",
        shapes: Sequence[Shape] = SHAPES,
    ) -> None:
        """Set the changed attributes and the row's revision: one TransactWrite, 4 WCU.

        While two shapes are in use, both are written (6 WCU), the newer one whole.

        Raises: ConditionFailed ("flags0", ...) if the revision is no longer the one `seen`, and
        ("row") if the history has that row already.
        """
        writes = {"row": row.put()}
        for number, shape in enumerate(shapes):
            # The oldest shape is there for sure; a newer one may still have to be created.
            is_oldest = shape is shapes[-1]
            attributes = shape.encode(changes if is_oldest else row.values)
            actions: list[Action] = [
                cls.kind.set(cls),
                cls.revision.set(int(row.revision)),
                *(Path([name]).set(value) for name, value in attributes.items()),
            ]
            condition = cls.revision == seen
            if not is_oldest:
                condition = cls.PK.does_not_exist() | (cls.revision <= seen)
            item = cls.at(table.flags_key(shape.sk))
            kwargs = item.get_update_kwargs_from_instance(actions, condition, "ALL_OLD")
            writes[f"flags{number}"] = Write("update", kwargs)
        transact(**writes)


class AuditRow(Item, discriminator="FLAGS_AUDIT"):
    """SETTINGS#APP / AUDIT#FLAGS#{revision}: who changed what, when and why.

    `before` and `after` hold the changed settings only; `values` is everything after the change,
    so that a rollback needs one read.
    """

    revision = NumberAttribute()
    before = JSONAttribute()
    after = JSONAttribute()
    values = JSONAttribute()
    who = UnicodeAttribute()
    why = UnicodeAttribute()
    at_time = UTCDateTimeAttribute(attr_name="at")

    @classmethod
    @access_pattern("read settings history")
    def latest(cls, limit: int) -> list[Self]:
        """Read the newest rows first: one consistent Query, 1 RCU per 4 KB."""
        pk = table.SETTINGS_PK
        written = cls.SK.startswith(table.AUDIT_PREFIX)
        return cls.read_page(pk, written, limit=limit, forward=False, consistent=True).items

    @classmethod
    @access_pattern("read settings revision")
    def by_revision(cls, revision: int) -> Self | None:
        """Read one row: one consistent GetItem, 1 RCU."""
        return cls.read(table.audit_key(revision), consistent=True)

    @classmethod
    def new(
        cls,
        revision: int,
        *,
        before: Mapping[str, Value],
        after: Mapping[str, Value],
        values: Mapping[str, Value],
        who: str,
        why: str,
        now: datetime,
    ) -> Self:
        """Return an unsaved row."""
        return cls(
            *table.audit_key(revision),
            revision=revision,
            before=dict(before),
            after=dict(after),
            values=dict(values),
            who=who,
            why=why,
            at_time=now,
        )


@access_pattern("read settings")
def read_flags() -> Mapping[str, RawItem]:
    """Read the item raw: one strong GetItem per shape in use, 1 RCU.

    It has a client of its own (0.5 s to connect, 1 s to answer, no retries): a hanging table must
    not hold the settings up, and a bad attribute must not make the whole item unreadable.
    """
    return _read_raw(SHAPES)


def _read_raw(shapes: Sequence[Shape]) -> dict[str, RawItem]:
    found: dict[str, RawItem] = {}
    for shape in shapes:
        pk, sk = table.flags_key(shape.sk)
        response: dict[str, Any] | None = None
        try:
            response = _own_client().get_item(
                TableName=settings.DYNAMODB_TABLE,
                Key={"PK": {"S": pk}, "SK": {"S": sk}},
                ConsistentRead=True,
                ReturnConsumedCapacity="INDEXES",
            )
        except (NoConnection, HTTPClientError):
            # An embedded engine that was started again listens elsewhere.
            if (broken := _forget_client()) is not None:
                broken.close()
            raise
        finally:
            capacity.record("GetItem", response)
        if response.get("Item"):
            found[sk] = response["Item"]
    return found


def _own_client() -> Any:
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


def _forget_client() -> Any:
    global _client
    client, _client = _client, None
    return client


def _after_fork() -> None:
    """Leave the parent's sockets and locks alone: neither used nor closed."""
    global _connecting  # noqa: PLW0603 (one per process)
    _connecting = threading.Lock()
    _forget_client()


os.register_at_fork(after_in_child=_after_fork)


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
