"""What a process did, minute by minute, read from its own Prometheus metrics."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime

from prometheus_client import REGISTRY, CollectorRegistry

MINUTES_KEPT = 30
# How a minute is stored: when it began (epoch minutes), how many sockets were open at its end, and
# what happened in it.
FIELDS = ("minute", "online", "joins", "eliminations", "read_units", "write_units", "errors")
COUNTED = FIELDS[2:]

ONLINE = "socket_connections"
# Metric and labels that tell each figure; None stands for a metric's every label.
_SOURCES: Mapping[tuple[str, tuple[str, str] | None], str] = {
    ("players_joined_total", None): "joins",
    ("players_eliminated_total", None): "eliminations",
    ("dynamodb_consumed_units_total", ("unit", "read")): "read_units",
    ("dynamodb_consumed_units_total", ("unit", "write")): "write_units",
    ("logged_errors_total", None): "errors",
}


def read_totals(registry: CollectorRegistry = REGISTRY) -> dict[str, float]:
    """Return the figures since the process began, and how many sockets are open now."""
    totals = dict.fromkeys((*COUNTED, "online"), 0.0)
    for metric in registry.collect():
        for sample in metric.samples:
            if sample.name == ONLINE:
                totals["online"] += sample.value
            for (name, label), figure in _SOURCES.items():
                if sample.name == name and (label is None or label in sample.labels.items()):
                    totals[figure] += sample.value
    return totals


class Minutes:
    """The last 30 minutes of a process."""

    def __init__(self, totals: Mapping[str, float]) -> None:
        self._seen = dict(totals)
        self._minutes: deque[dict[str, float]] = deque(maxlen=MINUTES_KEPT)

    def add(self, totals: Mapping[str, float], now: datetime) -> list[list[float]]:
        """Credit what happened since the last call to this minute; return all, oldest first."""
        minute = now.timestamp() // 60
        if not self._minutes or self._minutes[-1]["minute"] != minute:
            self._minutes.append({**dict.fromkeys(FIELDS, 0.0), "minute": minute})
        current = self._minutes[-1]
        for name in COUNTED:
            current[name] += totals[name] - self._seen[name]
        current["online"] = totals["online"]
        self._seen = dict(totals)
        return [[round(each[name], 1) for name in FIELDS] for each in self._minutes]
