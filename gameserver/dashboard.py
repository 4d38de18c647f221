"""The figures behind the charts on the admin's first page."""

import threading
from datetime import UTC, datetime
from typing import Any

from cachetools import TTLCache
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_GET

from gameserver.errors import GameServerError
from matches import rules
from matches.services import operators
from settings_singleton import cache, counters
from settings_singleton.processes.load import FIELDS
from settings_singleton.processes.models import ProcessReport

# However many operators watch, each process reads once in this time.
FRESH_SECONDS = 10

_figures: TTLCache[str, dict[str, Any]] = TTLCache(1, FRESH_SECONDS)
_reading = threading.Lock()


@require_GET
def figures(request: HttpRequest) -> HttpResponse:
    """Answer the figures as JSON; staff with `gameserver.view_dashboard` only."""
    if not request.user.has_perm("gameserver.view_dashboard"):
        raise PermissionDenied
    try:
        with _reading:
            if "all" not in _figures:
                _figures["all"] = read_figures(datetime.now(UTC))
            return JsonResponse(_figures["all"])
    except GameServerError as error:
        return JsonResponse({"error": error.detail}, status=error.status)


def forget() -> None:
    """Read anew the next time."""
    _figures.clear()


def read_figures(now: datetime) -> dict[str, Any]:
    """Read counts, totals and the processes' reports.

    10 Queries per listing shard (at most 100 games each), 1 Query and 1 BatchGetItem.
    """
    counted = operators.count_current()
    return {
        "maps": rules.MAPS,
        "games": {
            state: {
                game_map: f"{count}+" if has_more else str(count)
                for game_map, (count, has_more) in of_map.items()
            }
            for state, of_map in counted.items()
        },
        "totals": counters.totals(),
        "revision": cache.current().revision,
        "fields": FIELDS,
        "processes": [
            {
                "name": f"{report.host} · {int(report.pid)}",
                "revision": int(report.revision),
                "silent_seconds": max(0, round((now - report.seen_at).total_seconds())),
                "minutes": report.minutes,
            }
            for report in ProcessReport.latest(now)
        ],
    }


page = admin.site.admin_view(figures)
