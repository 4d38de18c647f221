import asyncio

from tests.builders import (
    GAME_FIELDS,
    MAP,
    Api,
    a_game,
    a_player,
    ok,
    players,
    refusal,
    stored,
)


async def test_it_takes_a_seat_in_the_fullest_open_game(api: Api) -> None:
    alice, bob, cat, dan = players("alice", "bob", "cat", "dan")
    a_game(alice)
    fuller = a_game(bob, cat)

    game = ok(await api.post("/games/quick-join", dan))

    assert game.keys() == GAME_FIELDS
    assert (game["game_id"], game["player_count"]) == (fuller.game_id, 3)


async def test_it_creates_a_game_where_there_is_none(api: Api) -> None:
    alice, bob = players("alice", "bob")
    a_game(alice, game_map="open-ocean")

    created = ok(await api.post("/games/quick-join", bob, map=MAP), 201)
    joined = ok(await api.post("/games/quick-join", a_player("cat"), map=MAP))

    assert (created["map"], created["host"], created["player_count"]) == (MAP, "bob", 1)
    assert (joined["game_id"], joined["player_count"]) == (created["game_id"], 2)


async def test_who_sits_in_a_lobby_that_fits_gets_it_again(api: Api) -> None:
    alice = a_player()
    first = ok(await api.post("/games/quick-join", alice, map=MAP), 201)

    assert ok(await api.post("/games/quick-join", alice, map=MAP)) == first
    assert ok(await api.post("/games/quick-join", alice)) == first
    elsewhere = await api.post("/games/quick-join", alice, map="open-ocean")
    assert refusal(elsewhere, 409, "already_in_game")["game_id"] == first["game_id"]


async def test_who_plays_already_is_told_where(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status="STARTED")

    answer = await api.post("/games/quick-join", alice)

    assert refusal(answer, 409, "already_in_game")["game_id"] == game.game_id


async def test_an_unknown_map_is_refused(api: Api) -> None:
    alice = a_player()

    answer = await api.post("/games/quick-join", alice, map="nowhere")

    refusal(answer, 422, "validation_error")
    assert alice.user.current_game is None


async def test_two_at_once_meet_in_one_game(api: Api) -> None:
    for n in range(10):
        pair = players(f"ann{n}", f"bob{n}")

        answers = await asyncio.gather(
            *(api.post("/games/quick-join", player, map=MAP) for player in pair)
        )

        assert len({answer.json()["game_id"] for answer in answers}) == 1
        game = stored(answers[0].json()["game_id"])
        assert game.player_count == 2 * (n + 1)


async def test_twelve_at_once_without_a_map_fill_one_game(api: Api) -> None:
    crowd = players(*(f"p{n:02d}" for n in range(12)))

    answers = await asyncio.gather(*(api.post("/games/quick-join", player) for player in crowd))

    assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]
    assert stored(answers[0].json()["game_id"]).player_count == 12


async def test_when_the_last_lobby_is_full_the_next_one_is_made(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    first = ok(await api.post("/games/quick-join", alice, map=MAP), 201)
    ok(await api.post("/games/quick-join", bob, map=MAP))
    ok(await api.post(f"/games/{first['game_id']}/start", alice))

    second = ok(await api.post("/games/quick-join", cat, map=MAP), 201)

    assert second["game_id"] != first["game_id"]
