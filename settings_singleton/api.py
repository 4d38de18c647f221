"""What anybody may read: the public settings, and the totals."""

import hashlib
import json
from functools import lru_cache

from cachetools import TTLCache
from django.http import HttpRequest, HttpResponse
from ninja import Router, Schema

from gameserver.blocking import run_blocking
from settings_singleton import counters
from settings_singleton.cache import current
from settings_singleton.shapes import Snapshot

# Anybody may ask, and each answer costs 15 RCU.
STATS_CACHE_SECONDS = 0.2

router = Router()
_totals: TTLCache[str, dict[str, int]] = TTLCache(1, STATS_CACHE_SECONDS)


class SettingsOut(Schema):
    """The public settings of one revision (0: safe defaults, the table was not read)."""

    revision: int
    flags: dict[str, bool | int | str]


class StatsOut(Schema):
    """Totals since the table was made."""

    players_signed_up: int
    games_finished: int
    eliminations: int


@router.get(
    "/settings",
    response=SettingsOut,
    auth=None,
    openapi_extra={
        "responses": {304: {"description": "Unchanged since the ETag in If-None-Match"}}
    },
)
async def get_settings(request: HttpRequest) -> HttpResponse:
    """Public switches and tunables as this process knows them; costs no read of the table."""
    body, etag = _shown(current())
    known = request.headers.get("If-None-Match", "")
    if etag in known or known.strip() == "*":
        response = HttpResponse(status=304)
        # Django's default, of a body that is not there.
        del response["Content-Type"]
    else:
        response = HttpResponse(body, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "no-cache"
    return response


@router.get("/stats", response=StatsOut, auth=None)
async def get_stats(request: HttpRequest) -> dict[str, int]:
    """Players signed up, games finished, eliminations."""
    if (totals := _totals.get("all")) is None:
        totals = _totals["all"] = await run_blocking(counters.totals)
    return totals


@lru_cache(maxsize=4)
def _shown(snapshot: Snapshot) -> tuple[bytes, str]:
    """Return body and ETag; by content, because two servers can differ in one revision."""
    body = json.dumps({"revision": snapshot.revision, "flags": snapshot.public}).encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'
