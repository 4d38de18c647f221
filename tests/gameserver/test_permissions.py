"""Who may do what: every operation, every role, every relation to the object (OWASP API1, API5)."""

from collections.abc import Iterator
from typing import Any

import pytest

from gameserver.api import api as wiring
from matches.models import STARTED
from players.services import accounts
from tests.builders import PASSWORD, Api, a_game, a_player, ok, players, refusal, stored

PUBLIC = {
    ("POST", "/players"),
    ("POST", "/players/guest"),
    ("POST", "/auth/token"),
    ("POST", "/auth/refresh"),
    ("GET", "/maps"),
    ("GET", "/settings"),
    ("GET", "/stats"),
}


def operations() -> Iterator[tuple[str, str]]:
    """Every method and path of the API, from the document itself."""
    for path, methods in wiring.get_openapi_schema()["paths"].items():
        for method in methods:
            yield method.upper(), path.removeprefix("/api")


def test_the_public_operations_are_the_contracts() -> None:
    document = wiring.get_openapi_schema()

    public = {
        (method.upper(), path.removeprefix("/api"))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if not operation.get("security")
    }

    assert public == PUBLIC


@pytest.mark.parametrize(("method", "path"), [each for each in operations() if each not in PUBLIC])
async def test_without_a_token_nothing_private_answers(api: Api, method: str, path: str) -> None:
    alice = a_player("alice")
    game = a_game(alice)
    path = path.format(game_id=game.game_id, username="alice")

    for headers in ({}, {"Cookie": f"sessionid={alice.tokens.access_token}"}):
        answer = await api.send(method, path, headers=headers, json={"username": "alice"})
        refusal(answer, 401, "not_authenticated")

    assert stored(game).version == game.version
    assert alice.user.display_name == "Alice"


# Rows: what is tried on A's game (a lobby, or running) by who is not allowed to.
# B sits in it, C in a game of his own, R is a referee, D sits nowhere, X was kicked.
LOBBY = {
    "start": ({}, {"B": 403, "C": 403, "R": 403, "D": 403, "X": 403}),
    "cancel": ({}, {"B": 403, "C": 403, "R": 403, "D": 403, "X": 403}),
    "kick": ({"username": "ann"}, {"B": 403, "C": 403, "R": 403, "D": 403, "X": 403}),
    "leave": ({}, {"C": 409, "R": 409, "D": 409, "X": 409}),
    "eliminations": ({"victim": "ann"}, {"B": 409, "C": 409, "R": 409, "D": 409, "X": 409}),
}
RUNNING = {
    "start": ({}, {"B": 403, "C": 403, "R": 403, "D": 403}),
    "cancel": ({}, {"A": 409, "B": 403, "C": 403, "R": 403, "D": 403}),
    "kick": ({"username": "bob"}, {"A": 409, "B": 403, "C": 403, "R": 403, "D": 403}),
    "leave": ({}, {"C": 409, "R": 409, "D": 409}),
    "join": ({}, {"C": 409, "R": 409, "D": 409}),
    # In another's name, or from outside.
    "eliminations": ({"victim": "bob", "killer": "ann"}, {"B": 403, "C": 403, "D": 403}),
}
TABLES: dict[str, dict[str, tuple[dict[str, str], dict[str, int]]]] = {
    "lobby": LOBBY,
    "running": RUNNING,
}
CELLS = [
    (status, action, who, expected)
    for status, rows in TABLES.items()
    for action, (_, cells) in rows.items()
    for who, expected in cells.items()
]


@pytest.mark.parametrize(("status", "action", "who", "expected"), CELLS)
async def test_nobody_acts_on_a_game_for_another(
    api: Api, status: str, action: str, who: str, expected: int
) -> None:
    ann, bob, cid, dan = players("ann", "bob", "cid", "dan")
    cast = {"A": ann, "B": bob, "C": cid, "D": dan, "R": a_player("ref", role="referee")}
    a_game(cid)
    game = a_game(ann, bob, a_player("eve"))
    if who == "X":
        cast["X"] = a_player("xia")
        await api.post(f"/games/{game.game_id}/join", cast["X"])
        await api.post(f"/games/{game.game_id}/kick", ann, username="xia")
    if status == "running":
        await api.post(f"/games/{game.game_id}/start", ann)
    before = stored(game)
    body, _ = TABLES[status][action]

    answer = await api.post(f"/games/{game.game_id}/{action}", cast[who], **body)

    refusal(answer, expected, answer.json()["code"])
    assert stored(game).serialize() == before.serialize()


async def test_what_one_changes_is_ones_own(api: Api) -> None:
    alice, bob = players("alice", "bob")
    before = bob.user.serialize()

    extra: dict[str, Any] = {"username": "bob", "PK": "USER#bob"}
    answers = [
        await api.send("PATCH", "/players/me", alice, json={"display_name": "X", **extra}),
        await api.send("PATCH", "/players/bob", alice, json={"display_name": "X"}),
        await api.send("DELETE", "/players/bob", alice),
        await api.send("PUT", "/players/bob/password", alice, json={"new_password": PASSWORD}),
        await api.post("/players/bob/upgrade", alice, password=PASSWORD),
        await api.post("/auth/logout", alice, everywhere=True, **extra),
    ]

    assert [answer.status_code for answer in answers] == [200, 405, 405, 404, 404, 204]
    assert bob.user.serialize() == before
    assert (await api.get("/players/me", bob)).status_code == 200


async def test_others_see_no_private_fields(api: Api) -> None:
    alice, bob = players("alice", "bob")
    a_game(alice, is_private=True)

    body = (await api.get("/players/alice", bob)).json()

    assert body.keys() == {"username", "display_name", "is_guest", "created_at", "stats"}


@pytest.mark.parametrize("path", ["/admin/", "/admin/auth/user/", "/admin/table/", "/admin/x"])
@pytest.mark.django_db
async def test_a_players_token_opens_no_page_of_the_operators(api: Api, path: str) -> None:
    alice = a_player(role="referee")
    token = alice.tokens.access_token

    for headers in (alice.headers, {"Cookie": f"sessionid={token}"}):
        answer = await api.client.get(path, headers=headers)

        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/admin/login/")


async def test_a_role_holds_from_the_next_request_on(api: Api) -> None:
    ann, bob, cat = players("ann", "bob", "cat")
    game = a_game(ann, bob, cat, status=STARTED)
    path = f"/games/{game.game_id}/eliminations"
    reporter = a_player("ref")
    refusal(await api.post(path, reporter, victim="bob", killer="ann"), 403, "not_referee")

    accounts.make_referee("ref")
    ok(await api.post(path, reporter, victim="bob", killer="ann"), 201)

    accounts.dismiss_referee("ref")
    refusal(await api.post(path, reporter, victim="cat", killer="ann"), 403, "not_referee")
