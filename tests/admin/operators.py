"""Operators at their browsers: sign in, open pages, fill in forms, read the admin log."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

PLAYERS = "/admin/players/player/"
GAMES = "/admin/matches/game/"
SWITCHES = "/admin/settings_singleton/setting/"
PARTITIONS = "/admin/gameserver/partition/"
DASHBOARD = "/admin/dashboard.json"
REASON = {"reason": "Because of a test"}


class Operator:
    """One browser."""

    def __init__(self, *, checks_csrf: bool = False) -> None:
        self.browser = Client(enforce_csrf_checks=checks_csrf)

    def get(self, path: str, **params: str) -> Any:
        return self.browser.get(path, params)

    def post(self, path: str, **fields: Any) -> Any:
        return self.browser.post(path, fields)

    def page(self, path: str, **params: str) -> str:
        """Open a page that must be there; return its text."""
        response = self.get(path, **params)
        assert response.status_code == 200, (path, response.status_code)
        return str(response.content.decode())

    def act(self, page: str, object_id: str, action: str, **fields: Any) -> Any:
        """Fill in and send an action's form."""
        return self.post(f"{page}{object_id}/action/{action}/", **{**REASON, **fields})


def an_operator(name: str, *permissions: str, is_superuser: bool = False) -> Operator:
    """Create a staff account with permissions like `players.view_player`, and sign in."""
    account = get_user_model().objects.create_user(
        name, password=f"password of {name}", is_staff=True, is_superuser=is_superuser
    )
    for permission in permissions:
        app, codename = permission.split(".")
        account.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    operator = Operator()
    operator.browser.force_login(account, "django.contrib.auth.backends.ModelBackend")
    return operator


def admin_log() -> list[tuple[str, str, str]]:
    """Return who did what to which item, newest first."""
    return [
        (entry.user.get_username(), entry.object_repr, entry.change_message)
        for entry in LogEntry.objects.select_related("user").order_by("-pk")
    ]
