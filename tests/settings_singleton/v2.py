"""A made-up next shape of the item: all switches in one map, every number and text as before."""

from collections.abc import Mapping
from typing import Any

from gameserver.table import FLAGS_V2_SK
from settings_singleton.registry import SETTINGS, RawItem, Value
from settings_singleton.shapes import V1, Shape, Snapshot, decode_v1
from tests.settings_singleton.items import an_item

__all__ = ["SHAPES", "V1", "V2", "a_v2_item"]


def decode_v2(raw: RawItem) -> Snapshot:
    return decode_v1({**raw, **raw.get("switches", {}).get("M", {})})


def encode_v2(values: Mapping[str, Value]) -> dict[str, Any]:
    switches = {name: value for name, value in values.items() if SETTINGS[name].is_switch}
    others = {name: value for name, value in values.items() if name not in switches}
    return {**others, "switches": switches}


V2 = Shape(FLAGS_V2_SK, decode_v2, encode_v2)
SHAPES = (V2, V1)


def a_v2_item(revision: int = 1, **changes: Value) -> RawItem:
    """The first item in the new shape, with some values changed."""
    item = an_item(revision, **changes)
    switches = {name: item.pop(name) for name, each in SETTINGS.items() if each.is_switch}
    return item | {"switches": {"M": switches}}
