"""What load balancers and Prometheus ask: alive, ready, and how it goes."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from gameserver.blocking import run_blocking
from gameserver.models import Item
from gameserver.table import flags_key
from settings_singleton import cache


async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while the process can answer at all."""
    return JsonResponse({"status": "ok"})


async def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 if the table answers and the settings were read, else 503 with the reason."""
    settings_status = cache.status()
    table_answers = await run_blocking(_table_answers)
    is_ready = table_answers and settings_status.is_ready
    body = {
        "status": "ready" if is_ready else "not ready",
        "table": "ok" if table_answers else "no answer",
        "settings": {
            "revision": settings_status.revision,
            "age_seconds": settings_status.age_seconds,
            "is_stale": settings_status.is_stale,
        },
    }
    return JsonResponse(body, status=200 if is_ready else 503)


async def metrics(request: HttpRequest) -> HttpResponse:
    """Give this process's Prometheus metrics."""
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


def _table_answers() -> bool:
    try:
        Item.read(flags_key())
    except Exception:  # noqa: BLE001 (whatever is wrong, the answer is "not ready")
        return False
    return True
