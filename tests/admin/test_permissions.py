"""Every page and action, as every kind of visitor: X-04."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from matches.models import STARTED
from tests.admin.operators import (
    DASHBOARD,
    GAMES,
    PARTITIONS,
    PLAYERS,
    REASON,
    SWITCHES,
    Operator,
    admin_log,
    an_operator,
)
from tests.builders import a_game, a_player, stored

pytestmark = pytest.mark.usefixtures("stored_flags")

PAGES = [
    PLAYERS,
    f"{PLAYERS}alice/change/",
    f"{PLAYERS}alice/history/",
    GAMES,
    f"{GAMES}{{game}}/change/",
    f"{GAMES}{{game}}/change/?live=1",
    f"{GAMES}{{game}}/change/?check=1",
    f"{GAMES}{{game}}/history/",
    SWITCHES,
    f"{SWITCHES}revisions/",
    f"{SWITCHES}joining_enabled/change/",
    f"{SWITCHES}joining_enabled/history/",
    PARTITIONS,
    f"{PARTITIONS}?pk=USER%23alice",
    DASHBOARD,
]
# Every change, the permission it needs beside the one to view, and its form.
CHANGES = [
    (f"{PLAYERS}alice/action/ban/", "players.ban_player", {"hours": "24"}),
    (f"{PLAYERS}alice/action/unban/", "players.ban_player", {}),
    (f"{PLAYERS}alice/action/sign-out/", "players.ban_player", {}),
    (f"{PLAYERS}alice/action/rename/", "players.change_player", {"display_name": "Al"}),
    (f"{PLAYERS}alice/action/reset-stats/", "players.change_player", {"typed_id": "alice"}),
    (f"{PLAYERS}alice/action/make-referee/", "players.appoint_referee", {"typed_id": "alice"}),
    (f"{PLAYERS}alice/action/dismiss-referee/", "players.appoint_referee", {}),
    (f"{PLAYERS}alice/action/export/", "players.export_player", {}),
    (f"{PLAYERS}alice/action/delete/", "players.delete_player", {"typed_id": "alice"}),
    (f"{GAMES}{{game}}/action/cancel/", "matches.end_game", {}),
    (f"{GAMES}{{started}}/action/end/", "matches.end_game", {"typed_id": "{started}"}),
    (f"{GAMES}{{game}}/action/kick/", "matches.kick_from_game", {"username": "bob"}),
    (f"{GAMES}{{game}}/action/relist/", "matches.change_game", {}),
    (
        f"{SWITCHES}ai_search_enabled/change/?to=on",
        "settings_singleton.change_setting",
        {"seen": "1", "names": "ai_search_enabled"},
    ),
    (f"{SWITCHES}joining_enabled/kill/", "settings_singleton.change_setting", {}),
    (f"{SWITCHES}revisions/1/", "settings_singleton.change_setting", {"seen": "1"}),
]
VIEW_OF = {
    "players": "players.view_player",
    "matches": "matches.view_game",
    "settings_singleton": "settings_singleton.view_setting",
}


@pytest.fixture
def ids() -> dict[str, str]:
    """A lobby of alice and bob, and a running game."""
    alice, bob = a_player("alice"), a_player("bob")
    carol, dan = a_player("carol"), a_player("dan")
    return {
        "game": a_game(alice, bob).game_id,
        "started": a_game(carol, dan, status=STARTED).game_id,
    }


def form_of(fields: dict[str, str], ids: dict[str, str]) -> dict[str, str]:
    return {**REASON, **{name: value.format(**ids) for name, value in fields.items()}}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_for_a_superuser_and_for_staff_who_may_view(
    page: str, ids: dict[str, str], boss: Operator, viewer: Operator
) -> None:
    for operator in (boss, viewer):
        assert operator.get(page.format(**ids)).status_code == 200


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_closed_to_staff_without_permission_and_to_strangers(
    page: str, ids: dict[str, str], nobody: Operator, anonymous: Operator
) -> None:
    assert nobody.get(page.format(**ids)).status_code == 403
    response = anonymous.get(page.format(**ids))
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


@pytest.mark.parametrize(("path", "permission", "fields"), CHANGES)
def test_a_change_needs_its_own_permission(
    path: str,
    permission: str,
    fields: dict[str, str],
    ids: dict[str, str],
    viewer: Operator,
    nobody: Operator,
    anonymous: Operator,
) -> None:
    path, form = path.format(**ids), form_of(fields, ids)
    for operator, status in ((viewer, 403), (nobody, 403), (anonymous, 302)):
        assert operator.post(path, **form).status_code == status
        if "/kill/" not in path and "/revisions/" not in path:
            assert operator.get(path).status_code == status
    assert admin_log() == []
    allowed = an_operator("allowed", permission, VIEW_OF[permission.partition(".")[0]])
    assert allowed.post(path, **form).status_code in {200, 302}


def test_the_permission_to_change_does_not_open_what_another_permission_guards(
    ids: dict[str, str],
) -> None:
    operator = an_operator("half", "players.view_player", "players.change_player")
    for action in ("ban", "make-referee", "export", "delete"):
        assert operator.act(PLAYERS, "alice", action).status_code == 403


def test_view_only_staff_are_offered_no_action(ids: dict[str, str], viewer: Operator) -> None:
    for page in (f"{PLAYERS}alice/change/", f"{GAMES}{ids['game']}/change/"):
        assert "/action/" not in viewer.page(page)
    switches = viewer.page(SWITCHES)
    assert "/kill/" not in switches
    assert "?to=" not in switches


def admin_paths() -> list[str]:
    """Return every address under /admin/, with stand-ins for ids."""
    found: list[str] = []

    def walk(resolver: URLResolver, prefix: str) -> None:
        for entry in resolver.url_patterns:
            route = prefix + str(entry.pattern).lstrip("^").rstrip("$")
            if isinstance(entry, URLResolver):
                walk(entry, route)
            elif isinstance(entry, URLPattern) and "(?P" not in route:
                for name in ("path:object_id", "str:object_id", "slug:name", "int:revision"):
                    route = route.replace(f"<{name}>", "1" if "revision" in name else "alice")
                found.append(f"/{route}")

    walk(get_resolver(), "")
    open_to_all = ("/admin/login/", "/admin/logout/")
    return [path for path in found if path.startswith("/admin/") and path not in open_to_all]


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete", "options"])
def test_every_address_of_the_admin_is_closed_to_players_and_strangers(method: str) -> None:
    alice = a_player("alice")
    headers = {**alice.headers, "X-HTTP-Method-Override": "GET", "X-Original-URL": "/admin/login/"}
    paths = admin_paths()
    assert len(paths) > 30
    for browser in (Client(), Client(headers=headers)):
        for path in paths:
            response = getattr(browser, method)(path)
            assert response.status_code in {302, 403, 404, 405}, (method, path)
            if response.status_code == 302:
                assert response["Location"].startswith("/admin/login/")


def test_other_verbs_are_refused_to_a_superuser_too(ids: dict[str, str], boss: Operator) -> None:
    for path in (PLAYERS, f"{GAMES}{ids['game']}/change/", SWITCHES, PARTITIONS, DASHBOARD):
        for verb in ("put", "patch", "delete", "options"):
            assert getattr(boss.browser, verb)(path).status_code == 405
        assert boss.post(path).status_code in {405, 422}
    assert boss.get(f"{SWITCHES}joining_enabled/kill/").status_code == 405


def test_a_change_needs_the_csrf_token(ids: dict[str, str], boss: Operator) -> None:
    careless = Operator(checks_csrf=True)
    careless.browser.cookies = boss.browser.cookies
    for path, _, fields in CHANGES:
        response = careless.post(path.format(**ids), **form_of(fields, ids))
        assert response.status_code == 403
    assert admin_log() == []
    assert stored(ids["game"]).status == "OPEN"
