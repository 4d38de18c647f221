"""Look by key: one partition of the table as it lies there, read-only, with secrets masked.

And the staff accounts, which are closed rather than deleted.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

from gameserver import cursors
from gameserver.admin_models import Partition
from gameserver.models import Item, RawItem
from gameserver.table import KEY_EXAMPLES
from gameserver.table_admin import TableAdmin

PAGE_SIZE = 25
KEY_LENGTH = 200
# By name, so that a new attribute is masked from its first day.
SECRET = re.compile(r"hash|digest|token|secret|password|join_code", re.IGNORECASE)
MASK = "(masked)"


class PartitionAdmin(TableAdmin):
    """One page: a partition key, and the items under it."""

    def get_urls(self) -> list[URLPattern]:
        return [self.route("", self.changelist_view, "changelist")]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show a part of the partition that `?pk=` names."""
        pk = request.GET.get("pk", "").strip()[:KEY_LENGTH]
        items: list[RawItem] = []
        next_cursor = None
        if pk:
            query = f"partition:{pk}"
            cursor = request.GET.get("after")
            start_key = cursors.load(query, cursor) if cursor else None
            items, last_key = Item.raw_page(pk, limit=PAGE_SIZE, start_key=start_key)
            next_cursor = cursors.dump(query, last_key) if last_key else None
        context = {
            "title": "Look by key",
            "pk": pk,
            "examples": KEY_EXAMPLES,
            "items": [
                {"sk": item["SK"].get("S"), "attributes": list(attributes(item))} for item in items
            ],
            "next_cursor": next_cursor,
            "is_first": "after" not in request.GET,
        }
        return self.page(request, "admin/gameserver/partition.html", context)


def attributes(item: RawItem) -> Iterator[tuple[str, str, str]]:
    """Give name, type and value of each attribute, keys first, secrets masked."""
    for name in sorted(item, key=lambda name: (name not in {"PK", "SK", "kind"}, name)):
        ((kind, value),) = item[name].items()
        yield name, kind, MASK if SECRET.search(name) else _shown(kind, value)


def _shown(kind: str, value: Any) -> str:
    match kind:
        case "S" | "N":
            return str(value)
        case "BOOL":
            return "true" if value else "false"
        case "NULL":
            return "null"
    return json.dumps(_masked(value), ensure_ascii=False, default=_text)


def _masked(value: Any) -> Any:
    """Mask secrets inside maps and lists, too."""
    if isinstance(value, Mapping):
        return {
            name: MASK if SECRET.search(name) else _masked(inner) for name, inner in value.items()
        }
    return [_masked(inner) for inner in value] if isinstance(value, list) else value


def _text(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


class StaffAdmin(UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Staff accounts. None is deleted: its lines of the admin log would go with it."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


admin.site.register(Partition, PartitionAdmin)
admin.site.unregister(User)
admin.site.register(User, StaffAdmin)
