"""The rules that switches and limits stand for, as pure functions over their values."""

import re

from gameserver.errors import ClientTooOld, Maintenance

MAINTENANCE_RETRY_SECONDS = 60
# What stays open in maintenance and to old clients: to learn what is going on, and to get out.
ALWAYS_OPEN = re.compile(
    r"(?:GET|HEAD) /api/settings|POST /api/auth/logout|POST /api/games/[^/]+/leave"
)


def is_always_open(method: str, path: str) -> bool:
    """Tell whether a request is answered even in maintenance and for any client version."""
    return ALWAYS_OPEN.fullmatch(f"{method} {path}") is not None


def check_maintenance(is_in_maintenance: bool) -> None:
    """Raises: Maintenance (`maintenance`, with `retry_after`) while the switch is on."""
    if is_in_maintenance:
        raise Maintenance(retry_after=MAINTENANCE_RETRY_SECONDS)


def check_client_version(minimum: str, presented: str | None) -> None:
    """Compare versions like 1.10.2 by their numbers; anything after these (`-beta`) is ignored.

    A client that does not say its version (curl, a game's own server) may pass: the switch helps
    honest players to update and is no protection.

    Raises: ClientTooOld (`client_too_old`, with `min_client_version`), also for unreadable ones.
    """
    if not minimum or presented is None:
        return
    if _numbers(presented) < _numbers(minimum):
        raise ClientTooOld(min_client_version=minimum)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\s*v?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})", version)
    numbers = [int(part) for part in found[1].split(".")] if found else []
    # 1.4 and 1.4.0 are the same version; an unreadable one is older than any.
    return (*numbers, *[0] * (4 - len(numbers))) if numbers else (-1,)
