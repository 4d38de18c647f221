"""The base of every item, the connection they share, and the ways to read and write them.

One table holds every kind of item. `Item` maps its keys and its discriminator; the apps' models add
their attributes, their indexes and one named classmethod per access pattern.
"""

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import structlog
from django.conf import settings
from prometheus_client import Counter
from pynamodb.attributes import DiscriminatorAttribute, TTLAttribute, UnicodeAttribute
from pynamodb.connection.table import TableConnection
from pynamodb.exceptions import TransactWriteError, VerboseClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.models import Model

from gameserver import retries, table
from gameserver.capacity import access_pattern
from gameserver.table import Key

RawItem = dict[str, dict[str, Any]]
# Source: BatchWriteItem API reference.
BATCH = 25
ItemT = TypeVar("ItemT", bound="Item")

SKIPPED = Counter("table_items_skipped_total", "Items this code cannot read", ["reason"])

_log = structlog.get_logger(__name__)
_connecting = threading.Lock()


class ConditionFailed(Exception):
    """A write's condition did not hold, so nothing was written.

    `failed` maps the name of each refused write to the item as it stands (None: there is none).
    """

    def __init__(self, failed: dict[str, "Item | None"]) -> None:
        super().__init__(", ".join(failed))
        self.failed = failed

    def __contains__(self, name: str) -> bool:
        return name in self.failed


@dataclass(frozen=True)
class Write:
    """One part of a transaction; `kind` is delete, put or update."""

    kind: str
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Page(Generic[ItemT]):
    """One page of a query; `last_key` is None on the last one."""

    items: list[ItemT] = field(default_factory=list)
    last_key: RawItem | None = None


@dataclass(frozen=True)
class Found:
    """What lies under a key: an item, or why this code cannot read it."""

    key: Key
    item: "Item | None"
    error: str = ""


class Item(Model):
    """Any item of the table: `PK`, `SK`, its `kind`, and when it expires (TTL), if it does."""

    class Meta:
        table_name = settings.DYNAMODB_TABLE
        billing_mode = "PAY_PER_REQUEST"

    PK = UnicodeAttribute(hash_key=True)
    SK = UnicodeAttribute(range_key=True)
    kind = DiscriminatorAttribute()
    expires_at = TTLAttribute(null=True)

    _shared: ClassVar[TableConnection | None] = None

    @classmethod
    def at(cls, key: Key) -> Self:
        """Return an unread item that stands for `key`, to address a write."""
        return cls(*key)

    @classmethod
    def read(cls, key: Key, *, consistent: bool = False) -> Self | None:
        """Read one item (0.5 RCU per 4 KB, twice that if consistent), or None."""
        raw = cls._get_connection().get_item(key[0], range_key=key[1], consistent_read=consistent)
        return cls.decode(raw["Item"]) if raw.get("Item") else None

    @classmethod
    def read_many(cls, keys: Sequence[Key], *, consistent: bool = False) -> list["Item"]:
        """Read items of any kind in one BatchGetItem per 100 different keys; order is not kept.

        Raises: TryAgain (`try_again`) if DynamoDB keeps leaving a part unanswered.
        """
        return [
            item
            for start in range(0, len(keys), 100)
            for item in _readable(Item, cls._read_batch(keys[start : start + 100], consistent))
        ]

    @classmethod
    def _read_batch(cls, keys: Sequence[Key], consistent: bool) -> list[RawItem]:
        table_name = cls.Meta.table_name
        found: list[RawItem] = []
        pending = [{"PK": pk, "SK": sk} for pk, sk in keys]
        for _ in retries.leftovers():
            response = cls._get_connection().batch_get_item(
                cast(list[str], pending),  # pynamodb's own type is too narrow
                consistent_read=consistent,
            )
            found += response["Responses"].get(table_name, [])
            unprocessed = response.get("UnprocessedKeys", {}).get(table_name, {}).get("Keys", [])
            if not unprocessed:
                return found
            pending = [{name: value["S"] for name, value in key.items()} for key in unprocessed]
        raise AssertionError("leftovers() ends by raising")

    @classmethod
    def read_page(
        cls,
        hash_value: str,
        range_condition: Condition | None = None,
        *,
        index: str | None = None,
        limit: int | None = None,
        start_key: RawItem | None = None,
        forward: bool = True,
        consistent: bool = False,
    ) -> Page[Self]:
        """Run one Query and decode what this code can read of it.

        No filter is sent: DynamoDB bills filtered items all the same, and items of an unknown kind
        or shape are to be counted, not to break the list.
        """
        response = cls._get_connection().query(
            hash_value,
            range_key_condition=range_condition,
            index_name=index,
            limit=limit,
            exclusive_start_key=start_key,
            scan_index_forward=forward,
            consistent_read=consistent,
        )
        items = _readable(cls, response["Items"], partial=index is not None)
        return Page(items, response.get("LastEvaluatedKey"))

    @classmethod
    def read_all(
        cls,
        hash_value: str,
        range_condition: Condition | None = None,
        *,
        consistent: bool = False,
    ) -> list[Self]:
        """Read a whole range of one partition: one Query per 1 MB."""
        items: list[Self] = []
        start_key: RawItem | None = None
        while True:
            page = cls.read_page(
                hash_value, range_condition, start_key=start_key, consistent=consistent
            )
            items += page.items
            start_key = page.last_key
            if start_key is None:
                return items

    @classmethod
    @access_pattern("look by key")
    def raw_page(
        cls, hash_value: str, *, limit: int, start_key: RawItem | None = None
    ) -> tuple[list[RawItem], RawItem | None]:
        """Read a part of one partition as it lies there: one consistent Query, 1 RCU per 4 KB.

        Returns raw items, unreadable ones too, and where the next part begins.
        """
        response = cls._get_connection().query(
            hash_value, limit=limit, exclusive_start_key=start_key, consistent_read=True
        )
        return response["Items"], response.get("LastEvaluatedKey")

    @classmethod
    def scan_pages(cls) -> Iterator[list[Found]]:
        """Walk the WHOLE table, one Scan per 1 MB: 0.5 RCU per 4 KB of all that is stored.

        For `check_table` alone: no request of a client or an operator may cost that. Nothing is
        left out, so that what cannot be read is seen, too; a page may be old by the time it comes.
        """
        start_key: Any = None
        while True:
            response = cls._get_connection().scan(exclusive_start_key=start_key)
            yield [_found(raw) for raw in response["Items"]]
            start_key = response.get("LastEvaluatedKey")
            if start_key is None:
                return

    @classmethod
    def scan_partition(cls, hash_value: str, range_condition: Condition) -> list[Found]:
        """Read a range of one partition strongly, with what cannot be read of it."""
        found: list[Found] = []
        start_key: RawItem | None = None
        while True:
            response = cls._get_connection().query(
                hash_value,
                range_key_condition=range_condition,
                exclusive_start_key=start_key,
                consistent_read=True,
            )
            found += [_found(raw) for raw in response["Items"]]
            start_key = response.get("LastEvaluatedKey")
            if start_key is None:
                return found

    @classmethod
    def parse(cls, raw: RawItem, *, partial: bool = False) -> "Item":
        """Turn a raw item into the model of its kind.

        `partial` allows absent attributes, as an index projects only some.

        Raises: TypeError, ValueError or KeyError for what this code cannot read.
        """
        try:
            item = Item.from_raw_data(raw)
        except (OverflowError, OSError) as error:
            # A time beyond what this platform can tell.
            raise ValueError(str(error)) from error
        missing = [
            name
            for name, attribute in item.get_attributes().items()
            if not attribute.null
            and getattr(item, name) is None
            and not (partial and attribute.attr_name not in raw)
        ]
        if missing:
            raise ValueError(f"no {', '.join(missing)}")
        return item

    @classmethod
    def decode(cls, raw: RawItem, *, partial: bool = False) -> Self | None:
        """Turn a raw item into its model; None (logged, counted) if this code cannot read it."""
        try:
            item = Item.parse(raw, partial=partial)
        except (TypeError, ValueError, KeyError) as error:
            SKIPPED.labels("unreadable").inc()
            _log.warning("item_unreadable", pk=raw.get("PK"), sk=raw.get("SK"), error=str(error))
            return None
        if not isinstance(item, cls):
            SKIPPED.labels("other_kind").inc()
            _log.warning("item_of_other_kind", pk=raw.get("PK"), sk=raw.get("SK"))
            return None
        return item

    def put(self, condition: Condition | None = None) -> Write:
        """Write the whole item; by default only where there is none."""
        condition = type(self).PK.does_not_exist() if condition is None else condition
        return Write("put", self.get_save_kwargs_from_instance(condition, "ALL_OLD"))

    def change(self, actions: Sequence[Action], condition: Condition | None = None) -> Write:
        """Update attributes of an existing item: never creates one, keeps unknown attributes."""
        exists = type(self).PK.exists()
        condition = exists if condition is None else exists & condition
        return Write(
            "update", self.get_update_kwargs_from_instance([*actions], condition, "ALL_OLD")
        )

    def remove(self, condition: Condition | None = None) -> Write:
        """Delete the item; by default only if it is there."""
        condition = type(self).PK.exists() if condition is None else condition
        return Write("delete", self.get_delete_kwargs_from_instance(condition, "ALL_OLD"))

    def remove_if_there(self) -> Write:
        """Delete the item, or nothing."""
        return Write("delete", self.get_delete_kwargs_from_instance())

    @classmethod
    def update_one(cls, write: Write) -> Self:
        """Send one `change` as a plain UpdateItem (half a transaction's price).

        Returns the item as it is afterwards.

        Raises: ConditionFailed, with the item under the name "item".
        """
        kwargs = {
            **write.kwargs,
            "ReturnValues": "ALL_NEW",
            "ReturnItemCollectionMetrics": "NONE",
        }
        try:
            response = cls._get_connection().connection.dispatch("UpdateItem", kwargs)
        except VerboseClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raw = getattr(error.__cause__, "response", {}).get("Item")
            raise ConditionFailed({"item": Item.decode(raw) if raw else None}) from error
        item = cls.decode(response["Attributes"])
        if item is None:
            raise ValueError(f"the updated item cannot be read: {write.kwargs.get('Key')}")
        return item

    @classmethod
    def delete_one(cls, key: Key) -> None:
        """Delete one item; deleting what is not there is fine (so a repeat is safe)."""
        cls._get_connection().delete_item(key[0], range_key=key[1])

    @classmethod
    def write_many(cls, puts: Sequence["Item"], deletes: Sequence[Key] = ()) -> None:
        """Write and delete items without conditions: one BatchWriteItem per 25, 1 WCU per KB.

        Raises: TryAgain (`try_again`) if DynamoDB keeps leaving a part undone; a repeat is safe.
        """
        work: list[tuple[str, dict[str, Any]]] = [("put", item.serialize()) for item in puts]
        work += [("delete", {"PK": {"S": pk}, "SK": {"S": sk}}) for pk, sk in deletes]
        requests = [
            {"PutRequest": {"Item": raw}} if kind == "put" else {"DeleteRequest": {"Key": raw}}
            for kind, raw in work
        ]
        for start in range(0, len(requests), BATCH):
            cls._write_batch(requests[start : start + BATCH])

    @classmethod
    def _write_batch(cls, requests: list[dict[str, Any]]) -> None:
        table_name = cls.Meta.table_name
        for _ in retries.leftovers():
            response = cls._get_connection().connection.dispatch(
                "BatchWriteItem",
                {"RequestItems": {table_name: requests}, "ReturnConsumedCapacity": "TOTAL"},
            )
            requests = response.get("UnprocessedItems", {}).get(table_name, [])
            if not requests:
                return

    @classmethod
    def _get_connection(cls) -> TableConnection:
        # One connection, and so one boto session (0.2 s to make), for all kinds of item.
        if Item._shared is None:
            with _connecting:
                if Item._shared is None:
                    Item._shared = table.connect(Item._get_schema())
        return Item._shared


def transact(**writes: Write) -> None:
    """Do all the named writes or none (2 WCU per KB and item, one round trip).

    Raises: ConditionFailed, naming the refused writes and carrying their items as they stand.
    """
    # DynamoDB gives its reasons in the order sent, and pynamodb sends deletes, puts, updates.
    order = {"delete": 0, "put": 1, "update": 2}
    names = sorted(writes, key=lambda name: order[writes[name].kind])
    of_kind = {
        kind: [writes[name].kwargs for name in names if writes[name].kind == kind] for kind in order
    }
    try:
        Item._get_connection().connection.transact_write_items(
            condition_check_items=[],
            delete_items=of_kind["delete"],
            put_items=of_kind["put"],
            update_items=of_kind["update"],
            client_request_token=str(uuid.uuid4()),
        )
    except TransactWriteError as error:
        failed = {
            name: Item.decode(reason.raw_item) if reason.raw_item else None
            for name, reason in zip(names, error.cancellation_reasons, strict=False)
            if reason is not None and reason.code == "ConditionalCheckFailed"
        }
        if not failed:
            raise
        raise ConditionFailed(failed) from error


def _readable(
    cls: type[ItemT], raw_items: Iterable[RawItem], *, partial: bool = False
) -> list[ItemT]:
    decoded = (cls.decode(raw, partial=partial) for raw in raw_items)
    return [item for item in decoded if item is not None]


def _found(raw: RawItem) -> Found:
    key = str(raw["PK"]["S"]), str(raw["SK"]["S"])
    try:
        return Found(key, Item.parse(raw))
    except (TypeError, ValueError, KeyError) as error:
        return Found(key, None, str(error))
