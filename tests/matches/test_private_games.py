from matches.models import OPEN
from tests.builders import GAME_FIELDS, MAP, Api, a_game, a_player, ok, players, refusal, stored


async def test_a_private_game_is_entered_by_its_code(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = ok(await api.post("/games", alice, map=MAP, is_private=True), 201)
    path = f"/games/{game['game_id']}/join"

    assert game.keys() == GAME_FIELDS | {"join_code"}
    assert game["is_private"] is True
    for body in ({}, {"join_code": "wrong"}, {"join_code": ""}, {"join_code": None}):
        answer = await api.send("POST", path, bob, json=body)
        refusal(answer, 403, "wrong_join_code")
    assert stored(game["game_id"]).player_count == 1

    ok(await api.post(path, bob, join_code=game["join_code"]))
    assert ok(await api.post(path, bob))["player_count"] == 2


async def test_only_who_sits_in_a_private_game_sees_its_code(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, is_private=True)
    path = f"/games/{game.game_id}"

    for member in (alice, bob):
        assert ok(await api.get(path, member))["join_code"] == game.join_code
    assert ok(await api.get(path, cat)).keys() == GAME_FIELDS | {"players"}

    kicked = ok(await api.post(f"{path}/kick", alice, username="bob"))
    assert "join_code" not in kicked
    assert "join_code" not in ok(await api.get(path, bob))


async def test_a_private_game_is_in_no_list_and_no_quick_join(api: Api) -> None:
    alice, bob = players("alice", "bob")
    private = a_game(alice, is_private=True)

    assert ok(await api.get("/games", bob))["items"] == []
    quick = ok(await api.post("/games/quick-join", bob, map=MAP), 201)

    assert quick["game_id"] != private.game_id


async def test_the_last_seat_of_a_private_game_needs_the_code_too(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, is_private=True, max_players=2)
    path = f"/games/{game.game_id}/join"

    refusal(await api.post(path, bob, join_code="wrong"), 403, "wrong_join_code")
    ok(await api.post(path, bob, join_code=game.join_code))

    third = await api.post(path, a_player("cat"), join_code=game.join_code)
    refusal(third, 409, "game_full")


async def test_a_join_code_does_no_harm_at_a_public_game(api: Api) -> None:
    alice, bob = players("alice", "bob")

    ok(await api.post(f"/games/{a_game(alice).game_id}/join", bob, join_code="anything"))


async def test_a_game_that_starts_by_itself_starts_when_it_is_full(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, max_players=3, auto_start=True)
    assert stored(game).status == OPEN

    full = ok(await api.post(f"/games/{game.game_id}/join", cat))

    assert (full["status"], full["alive_count"], full["version"]) == ("STARTED", 3, 3)
    assert full["started_at"] is not None
    late = await api.post(f"/games/{game.game_id}/join", a_player("dan"))
    refusal(late, 409, "game_not_open")


async def test_a_game_that_starts_by_itself_can_be_started_before(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, max_players=3, auto_start=True)

    started = ok(await api.post(f"/games/{game.game_id}/start", alice))

    assert (started["status"], started["alive_count"]) == ("STARTED", 2)
