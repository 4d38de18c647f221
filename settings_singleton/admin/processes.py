"""The board of processes: which there are, and which revision each is on."""

from datetime import datetime
from typing import Any

from gameserver.table_admin import show
from settings_singleton.processes.models import ProcessReport
from settings_singleton.processes.reporter import LOST_SECONDS


def process_lines(revision: int, now: datetime) -> list[dict[str, Any]]:
    """Describe every process that reported in the last half hour; `revision` is the table's."""
    return [_line(report, revision, now) for report in ProcessReport.latest(now)]


def _line(report: ProcessReport, revision: int, now: datetime) -> dict[str, Any]:
    silent_seconds = max(0, round((now - report.seen_at).total_seconds()))
    if silent_seconds > LOST_SECONDS:
        state = "lost"
    elif report.revision < revision:
        state = "behind"
    elif report.is_stale:
        state = "stale"
    elif report.defects:
        state = "defects"
    else:
        state = "current"
    return {
        "report": report,
        "state": state,
        "started_at": show(report.started_at),
        "silent_seconds": silent_seconds,
        "online": int(report.minutes[-1][1]) if report.minutes else 0,
    }
