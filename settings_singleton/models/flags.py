"""The settings item and its history: written here, read here only where an operator asks."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pynamodb.attributes import (
    Attribute,
    BooleanAttribute,
    JSONAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item, Write, transact
from settings_singleton.registry import SETTINGS, Value
from settings_singleton.shapes import REVISION, SHAPES, Shape

_ATTRIBUTE_OF: dict[type, type[Attribute[Any]]] = {
    bool: BooleanAttribute,
    int: NumberAttribute,
    str: UnicodeAttribute,
}


class FlagsItem(Item, discriminator="FLAGS"):
    """SETTINGS#APP / FLAGS#V1: one attribute per line of the registry, and the revision.

    Every write adds 1 to `schema_version`, the revision that readers and writers compare. The
    version of the item's shape is in its sort key.
    """

    revision = NumberAttribute(attr_name=REVISION)
    vars().update({name: _ATTRIBUTE_OF[each.type](null=True) for name, each in SETTINGS.items()})

    @classmethod
    @access_pattern("create settings")
    def create(
        cls,
        revision: int,
        values: Mapping[str, Value],
        row: "AuditRow",
        shapes: Sequence[Shape] = SHAPES,
    ) -> None:
        """Write the item, in every shape in use, where there is none: one TransactWrite, 4 WCU.

        Raises: ConditionFailed ("flags0", ...) if it is there already.
        """
        writes = {"row": row.put()}
        for number, shape in enumerate(shapes):
            actions = cls._setting(shape, revision, values)
            writes[f"flags{number}"] = cls._write(shape, actions, cls.PK.does_not_exist())
        transact(**writes)

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

        While two shapes are in use, both are written, each whole (6 WCU): either may be behind.

        Raises: ConditionFailed ("flags0", ...) if the revision is no longer the one `seen`, and
        ("row") if the history has that row already.
        """
        writes = {"row": row.put()}
        is_moving = len(shapes) > 1
        for number, shape in enumerate(shapes):
            actions = cls._setting(shape, int(row.revision), row.values if is_moving else changes)
            condition = cls.revision == seen
            if is_moving:
                condition = cls.PK.does_not_exist() | (cls.revision <= seen)
            writes[f"flags{number}"] = cls._write(shape, actions, condition)
        transact(**writes)

    @classmethod
    def _setting(cls, shape: Shape, revision: int, values: Mapping[str, Value]) -> list[Action]:
        attributes = shape.encode(values).items()
        return [
            cls.kind.set(cls),
            cls.revision.set(revision),
            *(Path([name]).set(value) for name, value in attributes),
        ]

    @classmethod
    def _write(cls, shape: Shape, actions: list[Action], condition: Condition) -> Write:
        item = cls.at(table.flags_key(shape.sk))
        kwargs = item.get_update_kwargs_from_instance(actions, condition, "ALL_OLD")
        return Write("update", kwargs)


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
