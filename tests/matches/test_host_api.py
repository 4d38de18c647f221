from tests.builders import Api, a_game, ok, players, refusal


async def test_a_new_host_has_the_power_and_the_old_one_has_not(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game_id = a_game(alice, bob, cat).game_id

    assert ok(await api.post(f"/games/{game_id}/leave", alice))["host"] == "bob"
    ok(await api.post(f"/games/{game_id}/join", alice))

    for action in ("start", "cancel"):
        refusal(await api.post(f"/games/{game_id}/{action}", alice), 403, "not_host")
    kick = await api.post(f"/games/{game_id}/kick", alice, username="cat")
    refusal(kick, 403, "not_host")
    ok(await api.post(f"/games/{game_id}/kick", bob, username="cat"))
    started = ok(await api.post(f"/games/{game_id}/start", bob))
    assert (started["status"], started["alive_count"], started["host"]) == ("STARTED", 2, "bob")


async def test_only_the_host_starts_and_only_with_enough_players(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, min_players=3)
    path = f"/games/{game.game_id}/start"

    refusal(await api.post(path, bob), 403, "not_host")
    refusal(await api.post(path, alice), 409, "not_enough_players")
    ok(await api.post(f"/games/{game.game_id}/join", cat))
    started = ok(await api.post(path, alice))

    assert (started["status"], started["alive_count"]) == ("STARTED", 3)


async def test_starting_twice_is_starting_once(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)

    first = ok(await api.post(f"/games/{game.game_id}/start", alice))
    again = ok(await api.post(f"/games/{game.game_id}/start", alice))

    assert again == first
    refusal(await api.post(f"/games/{game.game_id}/cancel", alice), 409, "game_not_open")


async def test_cancelling_twice_is_cancelling_once(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)
    path = f"/games/{game.game_id}"

    refusal(await api.post(f"{path}/cancel", bob), 403, "not_host")
    first = ok(await api.post(f"{path}/cancel", alice))
    again = ok(await api.post(f"{path}/cancel", alice))

    assert first["status"] == "CANCELLED"
    assert again == first
    refusal(await api.post(f"{path}/start", alice), 409, "game_not_open")
    refusal(await api.post(f"{path}/leave", bob), 409, "game_not_open")


async def test_a_kicked_player_is_out_and_may_come_back(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game_id = a_game(alice, bob).game_id

    out = ok(await api.post(f"/games/{game_id}/kick", alice, username="BOB"))

    assert out["player_count"] == 1
    again = await api.post(f"/games/{game_id}/kick", alice, username="bob")
    refusal(again, 409, "not_in_game")
    ok(await api.post(f"/games/{game_id}/join", bob))


async def test_a_kick_is_refused_with_the_reason(api: Api) -> None:
    alice, bob, _ = players("alice", "bob", "cat")
    game_id = a_game(alice, bob).game_id
    path = f"/games/{game_id}/kick"

    refusal(await api.post(path, alice, username="alice"), 422, "validation_error")
    refusal(await api.post(path, alice, username="a#b"), 422, "validation_error")
    refusal(await api.post(path, alice, username="cat"), 409, "not_in_game")
    refusal(await api.post(path, bob, username="bob"), 403, "not_host")
    ok(await api.post(f"/games/{game_id}/start", alice))
    refusal(await api.post(path, alice, username="bob"), 409, "game_not_open")
