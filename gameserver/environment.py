"""Values from the environment, each checked by itself: a wrong one is one line for an operator.

All functions raise ImproperlyConfigured, "NAME=value must be ...", which manage.py prints.
"""

import math
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

# Source: "Naming rules" in the DynamoDB developer guide.
TABLE_NAME = r"[A-Za-z0-9_.-]{3,255}"
# A label of a host name: AWS makes one of it.
REGION = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST = r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]"
ORIGIN = r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9*_.-]+)(:[0-9]{1,5})?"
SWITCH = {"1": True, "on": True, "true": True, "yes": True}
SWITCH |= {"0": False, "off": False, "false": False, "no": False, "": False}


def load_file(path: Path) -> None:
    """Add what a `.env` file says to the environment, which wins."""
    environ.Env.read_env(path)


def text(name: str, default: str = "", pattern: str = "(?s:.*)", rule: str = "a text") -> str:
    """Return a text that matches `pattern` as a whole; `rule` says what that means."""
    value = os.environ.get(name, default)
    if not re.fullmatch(pattern, value):
        refuse(name, value, rule)
    return value


def choice(name: str, default: str, choices: Collection[str]) -> str:
    """Return one of `choices`."""
    value = os.environ.get(name, default)
    if value not in choices:
        *others, last = choices
        refuse(name, value, f"{', '.join(others)} or {last}")
    return value


def switch(name: str) -> bool:
    """Return whether something is on; off is the default."""
    value = os.environ.get(name, "")
    if value.lower() not in SWITCH:
        refuse(name, value, "on or off")
    return SWITCH[value.lower()]


def integer(name: str, default: int, low: int, high: int) -> int:
    """Return a whole number from `low` to `high`."""
    value = os.environ.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,10}", value) or not low <= int(value) <= high:
        refuse(name, value, f"a whole number from {low} to {high}")
    return int(value)


def number(name: str, default: float, low: float, high: float) -> float:
    """Return a number from `low` to `high`, with or without a fraction."""
    value = os.environ.get(name, str(default))
    try:
        parsed = float(value)
    except ValueError:
        parsed = math.nan
    # False for NaN, too.
    if not low <= parsed <= high:
        refuse(name, value, f"a number from {low:g} to {high:g}")
    return parsed


def url(name: str, schemes: Collection[str], *others: str) -> str:
    """Return a URL with a host, or one of the words `others`, or nothing."""
    value = os.environ.get(name, "")
    if value not in {"", *others} and not _is_url(value, schemes):
        starts = " or ".join(f"{scheme}://" for scheme in schemes)
        words = f"{', '.join(others)} or " if others else ""
        refuse(name, value, f"{words}a URL that starts with {starts}")
    return value


def listed(name: str, pattern: str, rule: str) -> list[str]:
    """Return texts that were separated by commas, each of which matches `pattern`."""
    value = os.environ.get(name, "")
    items = [item.strip() for item in value.split(",") if item.strip()]
    if not all(re.fullmatch(pattern, item) for item in items):
        refuse(name, value, f"{rule}, separated by commas")
    return items


def origins(name: str) -> list[str]:
    """Return origins: a scheme and a host, perhaps a port, and no path."""
    return listed(name, ORIGIN, "origins such as https://game.example")


def database(name: str, default: str) -> dict[str, Any]:
    """Return Django's settings of a database whose URL is given; an empty one is the default."""
    value = os.environ.get(name, "") or default
    rule = "postgres://user:password@host/name or sqlite:////path/of/a/file"
    if not re.fullmatch(r"sqlite://(/.+|:memory:)|postgres(ql)?://.+", value):
        refuse(name, value, rule)
    try:
        return dict(environ.Env.db_url_config(value))
    except ValueError:
        # Such as a port that is no number.
        refuse(name, value, rule)


def refuse(name: str, value: str, rule: str) -> NoReturn:
    """Raise the one line; what may be a password in it is hidden."""
    shown = value if value.isprintable() else repr(value)
    if "@" in shown:
        scheme, mark, _ = shown.partition("://")
        shown = (scheme + mark if mark else "") + "***@" + shown.rpartition("@")[2]
    raise ImproperlyConfigured(f"{name}={shown} must be {rule}.")


def _is_url(value: str, schemes: Collection[str]) -> bool:
    try:
        parts = urlsplit(value)
        # Reading the port checks it.
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
