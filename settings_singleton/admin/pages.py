"""The pages: all settings, one setting, the revisions, and back to one of them."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone

from gameserver.errors import ValidationFailed
from gameserver.table_admin import ACTING, TableAdmin, show
from settings_singleton import services
from settings_singleton.admin.differences import ConfirmForm, differences, differences_of
from settings_singleton.admin.processes import process_lines
from settings_singleton.errors import NoSuchRevision, SettingChangedMeanwhile, SettingsItemMissing
from settings_singleton.models import AuditRow
from settings_singleton.registry import SETTINGS, Setting, Value
from settings_singleton.services import Change
from settings_singleton.shapes import Snapshot

# How far back the pages look for who changed what.
HISTORY = 50
KILLED = "Killed by one click"
TEMPLATES = "admin/settings_singleton"

# Given the reason and what the operator saw, write.
Writer = Callable[[str, Mapping[str, Value]], Change]


class SettingAdmin(TableAdmin):
    """The one item of settings; each setting has a page of its own."""

    def get_urls(self) -> list[URLPattern]:
        return [
            self.route("revisions/", self.revisions_view, "revisions"),
            self.route("revisions/<int:revision>/", self.rollback_view, "rollback", ACTING),
            self.route("<str:object_id>/kill/", self.kill_view, "kill", ("POST",)),
            self.route("<str:object_id>/history/", self.history_view, "history"),
            self.route("<str:object_id>/change/", self.change_view, "change", ACTING),
            self.route("", self.changelist_view, "changelist"),
        ]

    def is_id(self, text: str) -> bool:
        return text in SETTINGS

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show every setting, who last changed it and why, and which process is on what."""
        current = _current()
        last: dict[str, AuditRow] = {}
        for row in services.history(HISTORY):
            for name in row.after:
                last.setdefault(name, row)

        def line(setting: Setting) -> dict[str, Any]:
            value = current.values[setting.name]
            row = last.get(setting.name)
            return {
                "setting": setting,
                "value": setting.show(value) or "(empty)",
                "safe": setting.show(setting.safe) or "(empty)",
                "is_safe": value == setting.safe,
                "is_defect": setting.name in current.defects,
                "opposite": setting.show(not value) if setting.is_switch else "",
                "last": row,
                "last_at": show(row.at_time) if row else None,
                "change_url": self.url("change", setting.name),
                "kill_url": self.url("kill", setting.name),
            }

        context = {
            "title": "Switches and settings",
            "revision": current.revision,
            "switches": [line(each) for each in SETTINGS.values() if each.is_switch],
            "tunables": [line(each) for each in SETTINGS.values() if not each.is_switch],
            "processes": process_lines(current.revision, timezone.now()),
            "may_change": self.has_change_permission(request),
            "revisions_url": self.url("revisions"),
        }
        return self.page(request, f"{TEMPLATES}/settings.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Ask for a value; with `?to=`, show the difference and ask why; then write."""
        setting = SETTINGS[self.checked_id(object_id)]
        to = request.GET.get("to")
        context = {
            "title": setting.name,
            "setting": setting,
            "value": setting.show(_current().values[setting.name]),
            "to": to,
            "may_change": self.has_change_permission(request),
            "history_url": self.url("history", setting.name),
        }
        template = f"{TEMPLATES}/setting.html"
        if to is None and request.method != "POST":
            return self.page(request, template, context)
        try:
            wanted = {setting.name: setting.parse(to or "")}
        except ValidationFailed as error:
            return self.page(request, template, context | {"error": error.detail}, error.status)

        def write(why: str, seen: Mapping[str, Value]) -> Change:
            who = request.user.get_username()
            return services.change(wanted, who=who, why=why, now=timezone.now(), seen=seen)

        return self._confirm(request, wanted, template, context, write)

    def kill_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Set a switch to its safe value at once; no question asked."""
        self._check_may_change(request)
        setting = SETTINGS[self.checked_id(object_id)]
        if not setting.is_switch:
            raise Http404
        change = services.change(
            {setting.name: setting.safe},
            who=request.user.get_username(),
            why=KILLED,
            now=timezone.now(),
        )
        return self._done(request, change, KILLED)

    def revisions_view(self, request: HttpRequest) -> HttpResponse:
        """Show the latest changes, newest first."""
        rows = [
            (row, show(row.at_time), differences_of(row), self._revision_url(int(row.revision)))
            for row in services.history(HISTORY)
        ]
        context = {
            "title": "Revisions",
            "rows": rows,
            "limit": HISTORY,
            "may_change": self.has_change_permission(request),
        }
        return self.page(request, f"{TEMPLATES}/revisions.html", context)

    def rollback_view(self, request: HttpRequest, revision: int) -> HttpResponse:
        """Show what going back to a revision would change, and do it for a reason."""
        wanted = services.values_of(revision)
        context = {
            "title": f"Back to revision {revision}",
            "may_change": self.has_change_permission(request),
            "to": revision,
        }

        def write(why: str, seen: Mapping[str, Value]) -> Change:
            who = request.user.get_username()
            return services.rollback(revision, who=who, why=why, now=timezone.now(), seen=seen)

        return self._confirm(request, wanted, f"{TEMPLATES}/rollback.html", context, write)

    def _confirm(
        self,
        request: HttpRequest,
        wanted: Mapping[str, Value],
        template: str,
        context: Mapping[str, Any],
        write: Writer,
    ) -> HttpResponse:
        """Show the difference and ask for the reason, or write what was confirmed."""
        self._check_may_change(request)
        current, more, status = _current(), {}, 200
        changes = differences(current.values, wanted)
        form = ConfirmForm(request.POST or None, changes, revision=current.revision)
        if request.method == "POST":
            seen_revision = _whole_number(request.POST.get("seen"))
            seen = _values_seen(seen_revision, current)
            status = 422
            try:
                if any(seen.get(each.setting.name) != each.before for each in changes):
                    raise SettingChangedMeanwhile
                if form.is_valid():
                    reason = form.cleaned_data["reason"]
                    return self._done(request, write(reason, seen), reason)
            except SettingChangedMeanwhile as error:
                status, current = error.status, _current()
                changes = differences(current.values, wanted)
                # He now decides anew, about what he now sees.
                form = ConfirmForm(None, changes, revision=current.revision)
                more = {"error": error.title, "meanwhile": _rows_since(seen_revision)}
        whole = {**context, **more, "form": form, "differences": changes}
        return self.page(request, template, whole, status)

    def _done(self, request: HttpRequest, change: Change, reason: str) -> HttpResponse:
        changes = differences(change.before, change.after)
        for each in changes:
            self.log(
                request,
                each.setting.name,
                f"{each} (revision {change.revision}). Reason: {reason}",
            )
            messages.success(request, f"Changed {each} (revision {change.revision})")
        if not changes:
            messages.info(request, f"Nothing to change (revision {change.revision}).")
        return redirect(self.url("changelist"))

    def _check_may_change(self, request: HttpRequest) -> None:
        if not self.has_change_permission(request):
            raise PermissionDenied

    def _revision_url(self, revision: int) -> str:
        return f"{self.url('revisions')}{revision}/"


def _current() -> Snapshot:
    current = services.read_now()
    if current is None:
        raise SettingsItemMissing
    return current


def _values_seen(revision: int, current: Snapshot) -> Mapping[str, Value]:
    """Return the values that the operator's page showed."""
    if revision == current.revision:
        return current.values
    try:
        return services.values_of(revision)
    except NoSuchRevision:
        return {}


def _rows_since(revision: int) -> list[tuple[AuditRow, list[Any]]]:
    return [
        (row, list(differences_of(row)))
        for row in services.history(HISTORY)
        if row.revision > revision
    ]


def _whole_number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 12 else 0
