from typing import Any

import pytest

from matches.models import CANCELLED, STARTED
from settings_singleton.testing import override_flags
from tests.builders import (
    GAME_FIELDS,
    MAP,
    SEAT_FIELDS,
    Api,
    a_game,
    a_player,
    ok,
    players,
    refusal,
    stored,
)


async def test_a_new_game_is_a_lobby_with_its_host_seated(api: Api) -> None:
    alice = a_player("alice")

    game = ok(await api.post("/games", alice, map=MAP), 201)

    assert game.keys() == GAME_FIELDS
    assert game | {"game_id": "", "created_at": ""} == {
        "game_id": "",
        "map": MAP,
        "status": "OPEN",
        "host": "alice",
        "player_count": 1,
        "max_players": 50,
        "min_players": 2,
        "alive_count": None,
        "is_private": False,
        "version": 1,
        "created_at": "",
        "started_at": None,
        "ended_at": None,
        "winner": None,
    }
    assert game["created_at"].endswith("Z")
    detail = ok(await api.get(f"/games/{game['game_id']}", alice))
    assert detail == {**game, "players": detail["players"]}
    (seat,) = detail["players"]
    assert seat.keys() == SEAT_FIELDS
    assert seat | {"joined_at": ""} == {
        "username": "alice",
        "display_name": "Alice",
        "joined_at": "",
        "is_alive": True,
        "kills": 0,
        "placement": None,
        "eliminated_by": None,
    }
    assert ok(await api.get("/players/me", alice))["current_game"] == game["game_id"]


@pytest.mark.parametrize(
    "body",
    [
        *({"map": ""}, {"map": " "}, {"map": "nowhere"}, {"map": None}, {"map": "x" * 5000}),
        {"map": "dirty-desert OR attribute_exists(PK)"},
        *({"max_players": n} for n in (1, 0, -1, 51, 10**9, 2**63, "x", None, 2.5)),
        *({"min_players": n} for n in (1, 0, -1, 51)),
        {"max_players": 3, "min_players": 4},
        *({"is_private": "perhaps"}, {"auto_start": 7}),
    ],
)
async def test_a_game_that_breaks_the_rules_is_refused(api: Api, body: dict[str, Any]) -> None:
    alice = a_player()

    answer = await api.post("/games", alice, **{"map": MAP, **body})

    refusal(answer, 422, "validation_error")
    assert alice.user.current_game is None


async def test_fields_outside_the_contract_are_not_stored(api: Api) -> None:
    extra: dict[str, Any] = {
        "host": "bob",
        "status": "STARTED",
        "version": 9,
        "player_count": 40,
        "alive_count": 3,
        "winner": "alice",
        "PK": "USER#bob",
        "SK": "x",
        "kind": "USER",
        "listing": "OPEN#open-ocean#0",
        "is_imported": True,
    }

    game = stored(ok(await api.post("/games", a_player(), map=MAP, **extra), 201)["game_id"])

    assert (f"GAME#{game.game_id}", f"#METADATA#{game.game_id}") == (game.PK, game.SK)
    assert (game.host, game.status, game.version, game.player_count) == ("alice", "OPEN", 1, 1)
    assert not any((game.alive_count, game.winner, game.is_imported))
    assert game.listing == f"OPEN#{MAP}#0"


async def test_a_player_takes_a_seat_and_takes_it_once(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice)

    first = ok(await api.post(f"/games/{game.game_id}/join", bob))
    again = ok(await api.post(f"/games/{game.game_id}/join", bob))

    assert first.keys() == GAME_FIELDS
    assert (first["player_count"], first["version"]) == (2, 2)
    assert again == first
    detail = ok(await api.get(f"/games/{game.game_id}", bob))
    assert [seat["username"] for seat in detail["players"]] == ["alice", "bob"]


@pytest.mark.parametrize(
    ("status", "code"), [(STARTED, "game_not_open"), (CANCELLED, "game_not_open")]
)
async def test_nobody_joins_after_the_lobby(api: Api, status: str, code: str) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, status=status)

    refusal(await api.post(f"/games/{game.game_id}/join", cat), 409, code)

    assert stored(game).player_count == 2
    assert cat.user.current_game is None


async def test_a_full_game_refuses_another_player(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, max_players=2)

    refusal(await api.post(f"/games/{game.game_id}/join", cat), 409, "game_full")

    assert ok(await api.post(f"/games/{game.game_id}/join", bob))["player_count"] == 2


async def test_one_account_sits_in_one_game(api: Api) -> None:
    alice, bob = players("alice", "bob")
    first = a_game(alice)

    second = ok(await api.post("/games", bob, map=MAP), 201)

    for answer in (
        await api.post("/games", alice, map=MAP),
        await api.post(f"/games/{second['game_id']}/join", alice),
    ):
        assert refusal(answer, 409, "already_in_game")["game_id"] == first.game_id
    assert stored(first).version == 1
    assert stored(second["game_id"]).player_count == 1


@pytest.mark.parametrize("ending", ["cancel", "leave", "kick"])
async def test_who_is_out_of_a_game_can_enter_another(api: Api, ending: str) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)
    path = f"/games/{game.game_id}/{ending}"
    if ending == "leave":
        ok(await api.post(path, bob))
    else:
        ok(await api.post(path, alice, **({"username": "bob"} if ending == "kick" else {})))

    assert ok(await api.get("/players/me", bob))["current_game"] is None
    ok(await api.post("/games", bob, map=MAP), 201)


async def test_leaving_frees_one_seat_however_often(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, cat)
    path = f"/games/{game.game_id}/leave"

    assert ok(await api.post(path, bob))["player_count"] == 2
    refusal(await api.post(path, bob), 409, "not_in_game")

    assert stored(game).player_count == 2
    ok(await api.post(f"/games/{game.game_id}/join", bob))
    assert stored(game).player_count == 3


async def test_the_last_one_out_cancels_the_game(api: Api) -> None:
    alice = a_player()
    game = a_game(alice)

    left = ok(await api.post(f"/games/{game.game_id}/leave", alice))

    assert (left["status"], left["player_count"]) == ("CANCELLED", 0)
    assert left["ended_at"] is not None
    refusal(await api.post(f"/games/{game.game_id}/leave", alice), 409, "not_in_game")


@pytest.mark.parametrize("game_id", ["nothing", "a%23b", "%00", "x" * 65, "x" * 3000, "%C3%A4"])
@pytest.mark.parametrize("action", ["", "/join", "/leave", "/start", "/cancel", "/kick"])
async def test_a_game_that_does_not_exist_is_not_found(api: Api, game_id: str, action: str) -> None:
    method = "POST" if action else "GET"
    body = {"json": {"username": "bob"}} if action == "/kick" else {}

    answer = await api.send(method, f"/games/{game_id}{action}", a_player(), **body)

    refusal(answer, 404, "game_not_found")


@pytest.mark.parametrize(
    ("flag", "path", "body"),
    [
        ("game_creation_enabled", "/games", {"map": MAP}),
        ("game_creation_enabled", "/games/quick-join", {"map": "open-ocean"}),
        ("joining_enabled", "/games/quick-join", {"map": MAP}),
        ("joining_enabled", "/games/quick-join", {"map": "open-ocean"}),
        ("joining_enabled", "/games/{game_id}/join", {}),
    ],
)
async def test_a_switch_refuses_every_way_around_it(
    api: Api, flag: str, path: str, body: dict[str, str]
) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice)

    with override_flags(**{flag: False}):
        answer = await api.post(path.format(game_id=game.game_id), bob, **body)

    assert refusal(answer, 503, "feature_disabled")["flag"] == flag
    assert bob.user.current_game is None


async def test_no_switch_keeps_players_inside(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game_id = a_game(alice, bob, cat).game_id

    with override_flags(
        joining_enabled=False,
        game_creation_enabled=False,
        signup_enabled=False,
        chat_enabled=False,
        maintenance_mode=True,
    ):
        ok(await api.post(f"/games/{game_id}/leave", cat))
