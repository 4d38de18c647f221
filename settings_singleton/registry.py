"""Every global setting, one line each, and how its values look in the table and on a command line.

The value that a line gives first is the safe one: it holds for a setting whose stored value is
missing or unreadable, and for all of them when there is no item. `first` is what `create_table`
writes. To add a setting, add a line; nothing else lists them.
"""

# ruff: noqa: E501 (a setting is one line)

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, cast

from gameserver.errors import ValidationFailed

Value = bool | int | str
RawItem = dict[str, dict[str, Any]]
ValueT = TypeVar("ValueT", bool, int, str)
# The direction of a number or a text that costs something, or takes something from players. A
# switch needs none: away from its safe value it opens something, and a kill is never slowed.
Danger = Literal["down", "up", "any", "none"]

DAY = 86_400
ON_WORDS, OFF_WORDS = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


@dataclass(frozen=True)
class Setting:
    """What code and operators need to know of one setting.

    Numbers lie in `low..high`; texts have at most `high` characters and match `pattern`.
    """

    name: str
    type: type[bool] | type[int] | type[str]
    safe: Value
    first: Value
    is_public: bool
    danger: Danger
    description: str
    low: int = 0
    high: int = 0
    pattern: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off, rather than a number or a text."""
        return self.type is bool

    def accepts(self, value: object) -> bool:
        """Tell whether `value` has the right type, range and form."""
        if type(value) is not self.type:
            return False
        if isinstance(value, str):
            return len(value) <= self.high and re.fullmatch(self.pattern, value) is not None
        return self.is_switch or self.low <= value <= self.high

    def check(self, value: object) -> Value:
        """Return `value` if it is allowed.

        Raises: ValidationFailed (`validation_error`).
        """
        if not self.accepts(value):
            raise ValidationFailed(f"{self.name} must be {self.expectation}.", setting=self.name)
        return cast(Value, value)

    def parse(self, text: str) -> Value:
        """Turn what an operator typed into a value.

        Raises: ValidationFailed (`validation_error`).
        """
        value: Value = text
        if self.is_switch and text.lower() in (*ON_WORDS, *OFF_WORDS):
            value = text.lower() in ON_WORDS
        elif self.type is int and re.fullmatch(r"-?[0-9]{1,12}", text):
            value = int(text)
        return self.check(value)

    @property
    def expectation(self) -> str:
        """Say in a few words which values are allowed."""
        if self.is_switch:
            return "on or off"
        if self.type is int:
            return f"a whole number from {self.low} to {self.high}"
        form = " like 1.4.2, or empty" if self.pattern != ANY_TEXT else ""
        return f"a text of at most {self.high} characters{form}"

    def show(self, value: Value) -> str:
        """Return a value the way an operator types it."""
        if self.is_switch:
            return "on" if value else "off"
        return str(value)

    def is_dangerous(self, before: Value, after: Value) -> bool:
        """Tell whether this change goes in the direction that an operator has to confirm."""
        if before == after:
            return False
        if self.is_switch:
            return after != self.safe
        if self.danger in ("down", "up"):
            return (int(after) > int(before)) is (self.danger == "up")
        return self.danger == "any"


ANY_TEXT = r"[^\x00-\x1f\x7f]*"
VERSION = r"([0-9]{1,6}(\.[0-9]{1,6}){0,3})?"


def _line(
    safe: ValueT, first: ValueT, description: str, *, danger: Danger = "none", **more: Any
) -> ValueT:
    """Declare one setting; private unless `public=True`."""
    is_public = more.pop("public", False)
    facts = {"first": first, "danger": danger, "description": description, "is_public": is_public}
    default: ValueT = field(default=safe, metadata={**facts, **more})
    return default


@dataclass(frozen=True)
class Flags:
    """The value of every setting; `Flags()` holds the safe ones."""

    # fmt: off
    signup_enabled: bool = _line(False, True, "New accounts and guests", public=True)
    maintenance_mode: bool = _line(True, False, "Close the API, except for leaving", public=True)
    ai_search_enabled: bool = _line(False, False, "Search games by a sentence (paid service)", public=True)
    game_creation_enabled: bool = _line(False, True, "New games", public=True)
    joining_enabled: bool = _line(False, True, "Joining games", public=True)
    chat_enabled: bool = _line(False, True, "Chat inside a game", public=True)
    requests_per_minute: int = _line(600, 6_000, "HTTP requests per account, and per address", danger="down", low=10, high=1_000_000)
    messages_per_minute: int = _line(600, 3_000, "WebSocket messages per connection", danger="down", low=10, high=1_000_000)
    lobby_timeout_seconds: int = _line(1_800, 1_800, "Cancel a lobby that did not start in this time", danger="down", low=60, high=7 * DAY)
    match_timeout_seconds: int = _line(7_200, 7_200, "End a started game after this time", danger="down", low=60, high=7 * DAY)
    reconnect_grace_seconds: int = _line(30, 30, "Keep the seat of a dropped player", danger="down", low=0, high=3_600, public=True)
    win_reward_coins: int = _line(100, 100, "Coins for the winner of a game", danger="up", low=0, high=1_000_000, public=True)
    min_client_version: str = _line("", "", "Oldest client that may play; empty for any", danger="any", high=32, pattern=VERSION, public=True)
    message_of_the_day: str = _line("", "", "Shown to players; empty for none", high=280, pattern=ANY_TEXT, public=True)
    # fmt: on


SAFE = Flags()
SETTINGS: dict[str, Setting] = {
    each.name: Setting(
        each.name, cast(type[bool], type(each.default)), cast(Value, each.default), **each.metadata
    )
    for each in fields(Flags)
}
FIRST = Flags(**cast(dict[str, Any], {name: each.first for name, each in SETTINGS.items()}))


def setting(name: str) -> Setting:
    """Look a setting up.

    Raises: ValidationFailed (`validation_error`) for an unknown name.
    """
    try:
        return SETTINGS[name]
    except KeyError:
        known = ", ".join(SETTINGS)
        raise ValidationFailed(f"There is no setting {name!r}. Settings: {known}.") from None


def check_all(changes: Mapping[str, object]) -> dict[str, Value]:
    """Check several values at once.

    Raises: ValidationFailed (`validation_error`).
    """
    return {name: setting(name).check(value) for name, value in changes.items()}
