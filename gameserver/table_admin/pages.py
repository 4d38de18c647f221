"""The pages of one kind of item."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html

from gameserver import retries
from gameserver.errors import GameServerError
from gameserver.table_admin.shapes import (
    Description,
    Download,
    Filter,
    ItemAction,
    Listing,
    show,
)

PAGE_SIZE = 50
PAGE_SECONDS = 5.0
READING, ACTING = ("GET", "HEAD"), ("GET", "HEAD", "POST")


class TableAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Pages for one kind of item; see the package."""

    columns: ClassVar[Sequence[str]] = ()
    filters: ClassVar[Sequence[Filter]] = ()
    # What the search takes: an exact id, since the table finds nothing else. Empty: no search.
    search_label: ClassVar[str] = ""
    list_note: ClassVar[str] = ""
    item_actions: Sequence[ItemAction] = ()

    def is_id(self, text: str) -> bool:
        """Tell whether this can be an item's id; nothing else becomes part of a key."""
        raise NotImplementedError

    def list_page(self, chosen: Mapping[str, str], cursor: str | None, limit: int) -> Listing:
        """Read one page of the list. Raises: GameServerError."""
        raise NotImplementedError

    def find(self, text: str) -> str | None:
        """Return the id of the item an operator looks for, or None."""
        raise NotImplementedError

    def describe(self, request: HttpRequest, object_id: str) -> Description:
        """Read one item. Raises: GameServerError, with status 404 if there is none."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        item = "<path:object_id>/"
        return [
            self.route("", self.changelist_view, "changelist"),
            self.route(f"{item}history/", self.history_view, "history"),
            self.route(f"{item}action/<slug:name>/", self.action_view, "action", ACTING),
            self.route(f"{item}change/", self.change_view, "change"),
        ]

    def route(
        self,
        pattern: str,
        view: Callable[..., HttpResponse],
        name: str,
        methods: Sequence[str] = READING,
    ) -> URLPattern:
        """Return a path to a page, behind staff login, view permission and its verbs."""

        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if not self.has_view_permission(request):
                raise PermissionDenied
            if request.method not in methods:
                return HttpResponseNotAllowed(methods)
            # A page gives up when the table is slow; a change, once begun, is seen through.
            patience = nullcontext() if request.method == "POST" else retries.budget(PAGE_SECONDS)
            try:
                with patience:
                    return view(request, *args, **kwargs)
            except GameServerError as error:
                return self.page(
                    request, "error", {"title": error.title, "error": error}, status=error.status
                )

        return path(
            pattern,
            self.admin_site.admin_view(guarded),
            name=f"{self.opts.app_label}_{self.opts.model_name}_{name}",
        )

    def url(self, name: str, *args: str) -> str:
        """Return the address of one of this admin's pages."""
        prefix = f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}"
        return reverse(prefix, args=[quote(args[0]), *args[1:]] if args else [])

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def checked_id(self, quoted: str) -> str:
        """Return the id that an address holds. Raises: Http404 if it cannot be one."""
        object_id = unquote(quoted)
        if not self.is_id(object_id):
            raise Http404
        return object_id

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        """Stand in for the item in Django's own history page, which only wants its name."""
        return self.model(pk=object_id)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show one page of the list, or go to the item that was searched for."""
        looked_for = request.GET.get("q", "").strip()
        if looked_for and self.search_label:
            if found := self.find(looked_for):
                return redirect(self.url("change", found))
            messages.warning(request, f"There is no {self.opts.verbose_name} “{looked_for}”.")
        chosen = {
            each.name: value
            if (value := request.GET.get(each.name, "")) in each.choices
            else next(iter(each.choices))
            for each in self.filters
        }
        listing = self.list_page(chosen, request.GET.get("after"), PAGE_SIZE)
        rows = [
            (format_html('<a href="{}">{}</a>', self.url("change", object_id), object_id), cells)
            for object_id, cells in listing.rows
        ]
        context = {
            "title": str(self.opts.verbose_name_plural).capitalize(),
            "columns": self.columns,
            "filters": [(each, chosen[each.name]) for each in self.filters],
            "rows": [(link, [show(cell) for cell in cells]) for link, cells in rows],
            "next_cursor": listing.next_cursor,
            "chosen": chosen,
            "is_first": "after" not in request.GET,
            "search_label": self.search_label,
            "list_note": self.list_note,
        }
        return self.page(request, "list", context)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Show one item; with `?live`, only the part that changes."""
        object_id = self.checked_id(object_id)
        described = self.describe(request, object_id)
        context = {
            "title": described.title,
            "object_id": object_id,
            "facts": [(label, show(value)) for label, value in described.facts],
            "panels": [
                (panel, [[show(cell) for cell in row] for row in panel.rows])
                for panel in described.panels
            ],
            "actions": [
                (action, self.url("action", object_id, action.name))
                for action in self.item_actions
                if action.name in described.actions and self.may(request, action)
            ],
            "links": described.links,
            "history_url": self.url("history", object_id),
            "is_live": described.is_live,
        }
        return self.page(request, "content" if "live" in request.GET else "item", context)

    def action_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """Ask for an action's reason, do it, and write it to the admin log."""
        object_id = self.checked_id(object_id)
        action = next((each for each in self.item_actions if each.name == name), None)
        if action is None:
            raise Http404
        if not self.may(request, action):
            raise PermissionDenied
        form = action.form(request.POST or None, initial=request.GET.dict())
        if action.asks_for_id:
            form.fields["typed_id"] = forms.RegexField(
                rf"\A{re.escape(object_id)}\Z", label=f"Type {object_id} to confirm"
            )
        status = 200
        if request.method == "POST":
            status = 422
            if form.is_valid():
                try:
                    done = action.run(object_id, form.cleaned_data, timezone.now())
                except GameServerError as error:
                    form.add_error(None, error.detail)
                    status = error.status
                else:
                    reason = form.cleaned_data["reason"]
                    return self.finish(request, object_id, action, done, reason)
        context = {
            "title": f"{action.label}: {object_id}",
            "object_id": object_id,
            "action": action,
            "form": form,
            "back_url": self.url("change", object_id),
        }
        return self.page(request, "action", context, status=status)

    def finish(
        self,
        request: HttpRequest,
        object_id: str,
        action: ItemAction,
        done: str | Download,
        reason: str,
    ) -> HttpResponse:
        """Log what was done, and go back to where the operator can see it."""
        line = done.done if isinstance(done, Download) else done
        self.log(request, object_id, f"{line} Reason: {reason}", is_deletion=action.deletes)
        if isinstance(done, Download):
            headers = {"Content-Disposition": f'attachment; filename="{done.name}"'}
            return HttpResponse(done.content, content_type="application/json", headers=headers)
        messages.success(request, done)
        return redirect(self.url("changelist") if action.deletes else self.url("change", object_id))

    def log(
        self, request: HttpRequest, object_id: str, message: str, *, is_deletion: bool = False
    ) -> None:
        """Write one line of the admin log: who, when, which item, what and why."""
        stub: models.Model = self.model(pk=object_id)
        LogEntry.objects.log_actions(
            user_id=cast(int, request.user.pk),
            queryset=[stub],
            action_flag=DELETION if is_deletion else CHANGE,
            change_message=message,
            single_object=True,
        )

    def may(self, request: HttpRequest, action: ItemAction) -> bool:
        """Tell whether the operator has an action's permission."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.{action.permission}"))

    def page(
        self, request: HttpRequest, template: str, context: Mapping[str, Any], status: int = 200
    ) -> HttpResponse:
        """Render one of the templates under `admin/table`, or a path of one's own."""
        request.current_app = self.admin_site.name
        name = template if "/" in template else f"admin/table/{template}.html"
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, name, whole, status=status)
