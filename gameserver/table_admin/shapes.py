"""What admins say about their items, and how pages show values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html

REASON_LENGTH = 200


class ReasonForm(forms.Form):
    """What every change asks for; actions add their own fields."""

    reason = forms.CharField(
        max_length=REASON_LENGTH, help_text="Kept in the admin log, with your name."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields([name for name in self.fields if name != "reason"])

    def clean_reason(self) -> str:
        """Keep the reason on one line of the log."""
        return " ".join(self.cleaned_data["reason"].split())


@dataclass(frozen=True)
class Filter:
    """A choice above the list; `choices` maps values to labels, the first is the default."""

    name: str
    title: str
    choices: Mapping[str, str]


@dataclass(frozen=True)
class Listing:
    """One page of a list: an id and its cells per row; `next_cursor` is None on the last page."""

    rows: Sequence[tuple[str, Sequence[object]]]
    next_cursor: str | None


@dataclass(frozen=True)
class Panel:
    """A table on an item's page."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""


@dataclass(frozen=True)
class Description:
    """What an item's page shows. `actions` names those that make sense in its state.

    `links` are labels and addresses beside them; a live page follows what changes.
    """

    title: str
    facts: Sequence[tuple[str, object]]
    panels: Sequence[Panel] = ()
    actions: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    is_live: bool = False


@dataclass(frozen=True)
class Download:
    """A file that an action gives, and the line about it for the log."""

    name: str
    content: str
    done: str


@dataclass(frozen=True)
class ItemAction:
    """Something an operator does to one item, with a reason.

    `run(object_id, cleaned data, now)` does it and says what was done. An action that cannot be
    taken back sets `asks_for_id`: the operator types the item's id.
    """

    name: str
    label: str
    permission: str
    run: Callable[[str, Mapping[str, Any], datetime], str | Download]
    explanation: str
    form: type[ReasonForm] = ReasonForm
    asks_for_id: bool = False
    deletes: bool = False


def show(value: object) -> object:
    """Return a value the way pages show it; times in UTC."""
    match value:
        case None | "":
            return "\N{EN DASH}"
        case True:
            return "yes"
        case False:
            return "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return value


def link(admin_name: str, object_id: str) -> str:
    """Return a link to an item's page; `admin_name` is like `players_player`."""
    return format_html(
        '<a href="{}">{}</a>',
        reverse(f"admin:{admin_name}_change", args=[quote(object_id)]),
        object_id,
    )
