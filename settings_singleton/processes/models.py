"""The report of one process, as it lies in the table."""

from datetime import datetime, timedelta
from typing import Self

from pynamodb.attributes import (
    BooleanAttribute,
    JSONAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item

KEEP = timedelta(minutes=30)


class ProcessReport(Item, discriminator="PROCESS"):
    """PROCESSES / PROCESS#{id}: what one process last said of itself; gone after half an hour.

    `minutes` are its last 30, oldest first, each a list as `load.FIELDS` names it.
    """

    process_id = UnicodeAttribute()
    host = UnicodeAttribute()
    pid = NumberAttribute()
    started_at = UTCDateTimeAttribute()
    seen_at = UTCDateTimeAttribute()
    revision = NumberAttribute()
    is_stale = BooleanAttribute()
    defects = JSONAttribute()
    minutes = JSONAttribute()

    @classmethod
    @access_pattern("report process")
    def put_report(cls, report: Self) -> None:
        """Replace a process's report: one PutItem, 1 WCU per KB (2 after half an hour)."""
        report.save()

    @classmethod
    @access_pattern("retire process")
    def retire(cls, process_id: str) -> None:
        """Delete the report of a process that ends: one DeleteItem, 2 WCU."""
        cls.delete_one(table.process_key(process_id))

    @classmethod
    @access_pattern("list processes")
    def latest(cls, now: datetime) -> list[Self]:
        """Read all reports, oldest process first: one Query, 0.5 RCU per 4 KB."""
        reports = cls.read_all(table.PROCESSES_PK)
        # TTL deletes up to two days late.
        current = [report for report in reports if now - report.seen_at < KEEP]
        return sorted(current, key=lambda report: (report.started_at, report.process_id))

    @classmethod
    def new(
        cls,
        process_id: str,
        *,
        host: str,
        pid: int,
        started_at: datetime,
        revision: int,
        is_stale: bool,
        defects: list[str],
        minutes: list[list[float]],
        now: datetime,
    ) -> Self:
        """Return an unsaved report."""
        return cls(
            *table.process_key(process_id),
            process_id=process_id,
            host=host,
            pid=pid,
            started_at=started_at,
            seen_at=now,
            revision=revision,
            is_stale=is_stale,
            defects=defects,
            minutes=minutes,
            expires_at=now + KEEP,
        )
