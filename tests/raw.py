"""Items as they lie in the table, past every model: to break them, and to look at them."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from gameserver.models import ConditionFailed, Item, RawItem
from gameserver.table import Key


def get_raw(key: Key) -> RawItem:
    """Read an item strongly; it must be there."""
    answer = _call("GetItem", Key=_key(key), ConsistentRead=True)
    item: RawItem = answer["Item"]
    return item


def put_raw(**attributes: dict[str, Any]) -> None:
    """Write an item as it is given, keys included."""
    _call("PutItem", Item=attributes)


def set_raw(key: Key, **attributes: dict[str, Any]) -> None:
    """Set attributes of an item, as another release might have."""
    put_raw(**{**get_raw(key), **attributes})


def delete_raw(key: Key) -> None:
    """Delete an item."""
    _call("DeleteItem", Key=_key(key))


def scan_raw() -> list[RawItem]:
    """Read the whole table (of a test: one page)."""
    items: list[RawItem] = _call("Scan", ConsistentRead=True)["Items"]
    return items


def _key(key: Key) -> RawItem:
    return {"PK": {"S": key[0]}, "SK": {"S": key[1]}}


def _call(operation: str, **kwargs: Any) -> dict[str, Any]:
    client: Any = Item._get_connection().connection.client
    answer: dict[str, Any] = client._make_api_call(
        operation, {"TableName": settings.DYNAMODB_TABLE, **kwargs}
    )
    return answer


def refusals(call: Callable[[], object]) -> dict[str, Item | None]:
    """Run a call that must fail on its conditions and write nothing; return what was refused."""
    before = _sorted(scan_raw())
    try:
        call()
    except ConditionFailed as refused:
        assert _sorted(scan_raw()) == before, "a refused write changed the table"
        return refused.failed
    raise AssertionError("nothing was refused")


def _sorted(items: list[RawItem]) -> list[RawItem]:
    return sorted(items, key=lambda item: (item["PK"]["S"], item["SK"]["S"]))
