"""How the settings lie in an item: raw attributes to values and back, one attribute at a time.

A shape is the part after `FLAGS#` in the sort key. `SHAPES` lists those in use, newest first: one
now, two while a deploy moves from one to the next (docs/operations.md, "Change the item's shape").
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from gameserver import table
from settings_singleton.registry import SETTINGS, Flags, RawItem, Value

REVISION = "schema_version"


class UnreadableRevision(Exception):
    """The item is there, but its revision is no positive whole number, so it cannot be ordered."""


@dataclass(frozen=True)
class Snapshot(Flags):
    """All settings as of one revision; revision 0 means that there is no item.

    `defects` names the settings whose stored value is missing or unusable, hence safe.
    """

    revision: int = 0
    defects: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, Value]:
        """Map every setting's name to its value."""
        return {name: getattr(self, name) for name in SETTINGS}

    @property
    def public(self) -> dict[str, Value]:
        """Map the names that clients may see to their values."""
        return {name: getattr(self, name) for name, each in SETTINGS.items() if each.is_public}


def decode_v1(raw: RawItem) -> Snapshot:
    """Read the item's attributes each for itself: a bad one costs only its own setting.

    Raises: UnreadableRevision.
    """
    values: dict[str, Any] = {}
    defects: list[str] = []
    for name, setting in SETTINGS.items():
        value = _plain(raw.get(name))
        if setting.accepts(value):
            values[name] = value
        else:
            defects.append(name)
    return Snapshot(**values, revision=_revision(raw), defects=tuple(defects))


def encode_v1(values: Mapping[str, Value]) -> dict[str, Value]:
    """Name the attributes that hold `values`."""
    return dict(values)


@dataclass(frozen=True)
class Shape:
    """One form of the item: its sort key, its reader, and the attributes that hold given values."""

    sk: str
    decode: Callable[[RawItem], Snapshot]
    encode: Callable[[Mapping[str, Value]], dict[str, Any]]


V1 = Shape(table.FLAGS_V1_SK, decode_v1, encode_v1)
SHAPES: tuple[Shape, ...] = (V1,)


def choose(found: Mapping[str, RawItem], shapes: tuple[Shape, ...]) -> Snapshot | None:
    """Take the highest revision of the items found, the newest shape of it; None if there is none.

    Servers that only know the older shape may still write during a deploy, so newest is not enough.
    Raises: UnreadableRevision if an item was found, and none can be ordered.
    """
    snapshots: list[Snapshot] = []
    broken: UnreadableRevision | None = None
    for shape in shapes:
        if shape.sk not in found:
            continue
        try:
            snapshots.append(shape.decode(found[shape.sk]))
        except UnreadableRevision as error:
            broken = error
    if snapshots:
        # max() keeps the first of equals: the newest shape.
        return max(snapshots, key=lambda snapshot: snapshot.revision)
    if broken is not None:
        raise broken
    return None


def with_values(snapshot: Snapshot, changes: Mapping[str, Value]) -> Snapshot:
    """Return a copy of `snapshot` with some settings changed."""
    old = {each.name: getattr(snapshot, each.name) for each in fields(snapshot)}
    return Snapshot(**cast(dict[str, Any], {**old, **changes}))


def _revision(raw: RawItem) -> int:
    revision = _plain(raw.get(REVISION))
    if type(revision) is not int or revision < 1:
        raise UnreadableRevision(f"{REVISION} is {raw.get(REVISION)}")
    return revision


def _plain(attribute: object) -> object:
    """Return an attribute's boolean, text or whole number, and None for anything else."""
    match attribute:
        case {"BOOL": bool() as flag}:
            return flag
        case {"S": str() as text}:
            return text
        case {"N": str() as number}:
            try:
                return int(number)
            except ValueError:
                return None
    return None
