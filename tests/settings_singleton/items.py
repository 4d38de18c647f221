"""Raw settings items, as DynamoDB gives them."""

from typing import Any

from settings_singleton.registry import FIRST, SETTINGS, RawItem, Value

TYPES = {bool: "BOOL", int: "N", str: "S"}


def an_item(revision: int = 1, **changes: Value) -> RawItem:
    """The first item, with some values changed."""
    values: dict[str, Value] = {name: getattr(FIRST, name) for name in SETTINGS} | changes
    item: RawItem = {name: attribute(value) for name, value in values.items()}
    return item | {"schema_version": {"N": str(revision)}}


def attribute(value: Value) -> dict[str, Any]:
    """Encode one value the way it lies in the table."""
    return {TYPES[type(value)]: str(value) if type(value) is int else value}
