"""The same wish from two devices at the same moment; tests/races does it with many processes."""

import asyncio

import pytest

from gameserver.models import Item
from gameserver.table import game_key, mapping_key
from matches.models import Game
from players.models import User
from tests.builders import Api, a_game, a_player, ok, players, refusal, stored

ROUNDS = 10


async def test_two_joins_of_one_player_take_one_seat(api: Api) -> None:
    alice = a_player("alice")
    game = a_game(alice)
    for n in range(ROUNDS):
        bob = a_player(f"bob{n}")

        answers = await asyncio.gather(
            *(api.post(f"/games/{game.game_id}/join", bob) for _ in range(3))
        )

        assert [answer.status_code for answer in answers] == [200] * 3
        _, roster = Game.with_roster(game.game_id, consistent=True)
        assert stored(game).player_count == len(roster) == n + 2


async def test_joins_of_two_games_seat_a_player_in_one(api: Api) -> None:
    alice, bob = players("alice", "bob")
    games = [a_game(alice), a_game(bob)]
    for n in range(ROUNDS):
        cat = a_player(f"cat{n}")

        answers = await asyncio.gather(
            *(api.post(f"/games/{game.game_id}/join", cat) for game in games)
        )

        (winner,) = [answer.json() for answer in answers if answer.status_code == 200]
        (loser,) = [answer for answer in answers if answer.status_code != 200]
        assert refusal(loser, 409, "already_in_game")["game_id"] == winner["game_id"]
        assert cat.user.current_game == winner["game_id"]


async def test_two_leaves_free_one_seat(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob)
    for _ in range(ROUNDS):
        ok(await api.post(f"/games/{game.game_id}/join", cat))

        answers = await asyncio.gather(
            *(api.post(f"/games/{game.game_id}/leave", cat) for _ in range(3))
        )

        # Who comes while the seat is being freed has his wish; who comes later is told.
        assert 200 in {answer.status_code for answer in answers}
        for answer in answers:
            if answer.status_code != 200:
                refusal(answer, 409, "not_in_game")
        _, roster = Game.with_roster(game.game_id, consistent=True)
        assert stored(game).player_count == len(roster) == 2


async def test_two_leaves_of_a_running_game_are_one_elimination(api: Api) -> None:
    everybody = players("ann", "bob", "cat", "dan")
    game = a_game(*everybody, status="STARTED")

    answers = await asyncio.gather(
        *(api.post(f"/games/{game.game_id}/leave", everybody[0]) for _ in range(5))
    )

    assert [answer.status_code for answer in answers] == [200] * 5
    assert (stored(game).alive_count, stored(game).version) == (3, game.version + 1)
    assert everybody[0].user.deaths == 1


async def test_two_starts_are_one_start(api: Api) -> None:
    for n in range(ROUNDS):
        host, guest = players(f"host{n}", f"guest{n}")
        game = a_game(host, guest)

        answers = await asyncio.gather(
            *(api.post(f"/games/{game.game_id}/start", host) for _ in range(3))
        )

        assert len({ok(answer)["started_at"] for answer in answers}) == 1
        assert {ok(answer)["version"] for answer in answers} == {game.version + 1}


async def test_a_join_at_the_start_is_in_the_game_or_refused(api: Api) -> None:
    for n in range(ROUNDS):
        host, guest, late = players(f"host{n}", f"guest{n}", f"late{n}")
        game = a_game(host, guest)

        started, joined = await asyncio.gather(
            api.post(f"/games/{game.game_id}/start", host),
            api.post(f"/games/{game.game_id}/join", late),
        )

        _, roster = Game.with_roster(game.game_id, consistent=True)
        is_in = late.username in {seat.username for seat in roster}
        assert ok(started)["status"] == "STARTED"
        assert stored(game).alive_count == len(roster) == (3 if is_in else 2)
        if not is_in:
            refusal(joined, 409, "game_not_open")
            assert late.user.current_game is None


@pytest.mark.parametrize("last_seat", [False, True])
async def test_joining_a_game_that_was_deleted_creates_nothing(api: Api, last_seat: bool) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, max_players=2 if last_seat else 50)
    Item.delete_one(game_key(game.game_id))
    Item.delete_one(mapping_key(game.game_id, "alice"))

    for action in ("join", "leave", "start", "cancel"):
        refusal(await api.post(f"/games/{game.game_id}/{action}", bob), 404, "game_not_found")

    assert Game.with_roster(game.game_id, consistent=True) == (None, [])
    assert bob.user.current_game is None
    # Its host is free, too.
    ok(await api.post("/games", alice, map="open-ocean"), 201)


async def test_two_updates_and_a_delete_leave_no_half_account(api: Api) -> None:
    for n in range(ROUNDS):
        alice = a_player(f"alice{n}")

        await asyncio.gather(
            api.send("PATCH", "/players/me", alice, json={"display_name": "Al"}),
            api.send("DELETE", "/players/me", alice),
            api.send("PATCH", "/players/me", alice, json={"display_name": "Bo"}),
        )

        assert User.by_username(alice.username, consistent=True) is None
