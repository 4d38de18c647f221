"""What code may ask and operators may do with the settings: check a switch, change, look back."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gameserver import hints
from gameserver.errors import FeatureDisabled, TryAgain
from gameserver.models import ConditionFailed
from settings_singleton import cache
from settings_singleton.cache import flags
from settings_singleton.errors import (
    NoSuchRevision,
    SettingChangedMeanwhile,
    SettingsItemMissing,
    WhyNeeded,
)
from settings_singleton.models import AuditRow, FlagsItem, read_flags
from settings_singleton.registry import FIRST, SETTINGS, Flags, Value, check_all
from settings_singleton.shapes import SHAPES, Snapshot, choose

FEATURE_RETRY_SECONDS = 60
MAX_ATTEMPTS = 5
PAUSE_SECONDS = 0.05
WHY_LIMIT = 500


@dataclass(frozen=True)
class Change:
    """A written change; `revision` is the old one if there was nothing to change."""

    revision: int
    before: Mapping[str, Value]
    after: Mapping[str, Value]


def require_flag(name: str) -> None:
    """Let pass if a switch is on.

    Raises: FeatureDisabled (`feature_disabled`, with `flag`).
    """
    if not getattr(flags, name):
        raise FeatureDisabled(flag=name, retry_after=FEATURE_RETRY_SECONDS)


def create_first_item(now: datetime) -> bool:
    """Write the item with its first values, unless there is one; True if it was written.

    Where an item was deleted, the new one continues its revisions, so that running servers take it.
    """
    if read_now() is not None:
        return False
    rows = AuditRow.latest(1)
    revision = int(rows[0].revision) + 1 if rows else 1
    values = _values(FIRST)
    row = AuditRow.new(
        revision,
        before={},
        after=values,
        values=values,
        who="create_table",
        why="First values",
        now=now,
    )
    try:
        FlagsItem.create(revision, values, row)
    except ConditionFailed:
        # Somebody else created it at the same moment.
        return False
    return True


def read_now() -> Snapshot | None:
    """Read the item strongly, past the cache; None if there is none."""
    return choose(read_flags(), SHAPES)


def change(
    changes: Mapping[str, object],
    *,
    who: str,
    why: str,
    now: datetime,
    seen: Mapping[str, Value] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Change:
    """Change settings in one new revision, and tell every process.

    `seen` holds the values that the operator decided on; without it, those at the first read count.
    Changes to other settings that come in between are kept; the write is then tried again.

    Raises: ValidationFailed, WhyNeeded, SettingsItemMissing, SettingChangedMeanwhile (the same
    setting was changed by somebody else), TryAgain (5 lost races).
    """
    wanted = check_all(changes)
    why = _check_why(why)
    for attempt in range(MAX_ATTEMPTS):
        current = _read_existing()
        before = {name: current.values[name] for name in wanted}
        seen = seen or before
        _check_unchanged(seen, before, wanted)
        pending = {
            name: value
            for name, value in wanted.items()
            if value != before[name] or name in current.defects
        }
        if not pending:
            return Change(current.revision, before={}, after={})
        revision = _write(current, pending, who=who, why=why, now=now)
        if revision is not None:
            cache.refresh_now()
            hints.settings_changed(revision)
            return Change(revision, before={name: before[name] for name in pending}, after=pending)
        pause(random.uniform(0, PAUSE_SECONDS * 2**attempt))  # noqa: S311 (jitter)
    raise TryAgain(cause="settings_contention")


def rollback(
    revision: int,
    *,
    who: str,
    why: str,
    now: datetime,
    seen: Mapping[str, Value] | None = None,
) -> Change:
    """Bring back all values of an earlier revision, as a new one; `seen` as in `change`.

    Settings that this revision did not know keep their values.

    Raises: NoSuchRevision, and what `change` raises.
    """
    values = values_of(revision)
    why = f"Rollback to {revision}: {_check_why(why)}"
    return change(values, who=who, why=why, now=now, seen=seen)


def values_of(revision: int) -> dict[str, Value]:
    """Return what held as of a revision, for the settings that are still known.

    Raises: NoSuchRevision.
    """
    row = AuditRow.by_revision(revision)
    if row is None:
        raise NoSuchRevision(f"The history has no revision {revision}.")
    return {name: value for name, value in row.values.items() if name in SETTINGS}


def history(limit: int = 20) -> list[AuditRow]:
    """Return the newest changes first."""
    return AuditRow.latest(limit)


def _write(
    current: Snapshot, pending: Mapping[str, Value], *, who: str, why: str, now: datetime
) -> int | None:
    """Return the new revision, or None if another writer came first."""
    revision = current.revision + 1
    for _ in range(2):
        row = AuditRow.new(
            revision,
            before={name: current.values[name] for name in pending},
            after=pending,
            values={**current.values, **pending},
            who=who,
            why=why,
            now=now,
        )
        try:
            FlagsItem.replace(current.revision, pending, row)
        except ConditionFailed as lost:
            if set(lost.failed) != {"row"}:
                return None
            # The item was set back by hand, its history was not: go on after the newest row.
            revision = int(AuditRow.latest(1)[0].revision) + 1
        else:
            return revision
    return None


def _read_existing() -> Snapshot:
    current = read_now()
    if current is None:
        raise SettingsItemMissing
    return current


def _check_unchanged(
    seen: Mapping[str, Value], before: Mapping[str, Value], wanted: Mapping[str, Value]
) -> None:
    for name, value in wanted.items():
        # Who wants what is there already has nothing to fear from another writer.
        if name in seen and before[name] not in (seen[name], value):
            shown = SETTINGS[name].show(before[name])
            raise SettingChangedMeanwhile(
                f"Somebody else set {name} to {shown!r} meanwhile.", setting=name, current=shown
            )


def _check_why(why: str) -> str:
    why = why.strip()
    if not 1 <= len(why) <= WHY_LIMIT:
        raise WhyNeeded
    return why


def _values(values: Flags) -> dict[str, Value]:
    return {name: getattr(values, name) for name in SETTINGS}
