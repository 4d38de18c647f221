import asyncio
from datetime import timedelta

import httpx
import pytest

from gameserver.errors import NotAlive
from matches.models import STARTED, Game
from matches.services import leaving, lobby, play
from matches.services.lobby import GameOptions
from tests.builders import MAP, NOW, Api, APlayer, a_game, a_player, ok, players, refusal


async def create(api: Api, by: APlayer, key: str, **body: object) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    return await api.send("POST", "/games", by, json={"map": MAP, **body}, headers=headers)


async def test_the_same_key_gives_the_same_game(api: Api) -> None:
    alice = a_player()

    first = ok(await create(api, alice, "key-1"), 201)
    again = ok(await create(api, alice, "key-1"), 201)

    assert again == first


async def test_a_replay_gives_the_private_games_code_again(api: Api) -> None:
    alice = a_player()

    first = ok(await create(api, alice, "key-1", is_private=True), 201)
    again = ok(await create(api, alice, "key-1", is_private=True), 201)

    assert again["join_code"] == first["join_code"]


async def test_a_replay_shows_the_game_as_it_stands(api: Api) -> None:
    alice = a_player()
    game = ok(await create(api, alice, "key-1"), 201)
    ok(await api.post(f"/games/{game['game_id']}/leave", alice))

    again = ok(await create(api, alice, "key-1"), 201)

    assert (again["game_id"], again["status"]) == (game["game_id"], "CANCELLED")


async def test_the_same_key_for_another_request_is_refused(api: Api) -> None:
    alice = a_player()
    ok(await create(api, alice, "key-1"), 201)

    refusal(await create(api, alice, "key-1", max_players=4), 409, "idempotency_key_reused")


async def test_keys_belong_to_their_player(api: Api) -> None:
    alice, bob = players("alice", "bob")

    first = ok(await create(api, alice, "key-1"), 201)
    second = ok(await create(api, bob, "key-1", max_players=4), 201)

    assert first["game_id"] != second["game_id"]


async def test_another_key_makes_another_game(api: Api) -> None:
    alice = a_player()
    first = ok(await create(api, alice, "key-1"), 201)

    second = await create(api, alice, "key-2")

    assert refusal(second, 409, "already_in_game")["game_id"] == first["game_id"]


@pytest.mark.parametrize("key", ["x" * 200, "#METADATA", "a#b", "GAME#1"])
async def test_a_key_is_data_whatever_it_looks_like(api: Api, key: str) -> None:
    alice = a_player()

    first = ok(await create(api, alice, key), 201)

    assert ok(await create(api, alice, key), 201) == first


@pytest.mark.parametrize("key", ["", "x" * 201])
async def test_a_key_has_1_to_200_characters(api: Api, key: str) -> None:
    refusal(await create(api, a_player(), key), 422, "validation_error")


def test_a_key_is_forgotten_after_a_day_though_the_engine_still_has_it(table: None) -> None:
    alice = a_player()

    def create_at(hours: int) -> Game:
        now = NOW + timedelta(hours=hours)
        options = GameOptions(map=MAP)
        game = lobby.create_game(alice.identity, options, now=now, idempotency_key="key-1")
        if game.status == "OPEN":
            leaving.leave_game("alice", game.game_id, now=now)
        return game

    first = create_at(0)

    assert create_at(23).game_id == first.game_id
    assert create_at(25).game_id != first.game_id


async def report(api: Api, by: APlayer, game_id: str, victim: str, key: str) -> httpx.Response:
    headers = {"Idempotency-Key": key}
    path = f"/games/{game_id}/eliminations"
    return await api.send("POST", path, by, json={"victim": victim}, headers=headers)


async def test_a_repeated_report_gives_its_first_answer_and_pays_once(api: Api) -> None:
    alice, bob, cleo = players("alice", "bob", "cleo")
    game = a_game(alice, bob, cleo, status="STARTED")

    for victim in ("bob", "cleo"):
        first = ok(await report(api, alice, game.game_id, victim, f"out-{victim}"), 201)
        again = ok(await report(api, alice, game.game_id, victim, f"out-{victim}"), 201)
        assert again == first

    assert (alice.user.kills, alice.user.wins, alice.user.coins) == (2, 1, 100)


async def test_a_report_of_anothers_kill_is_no_repeat(api: Api) -> None:
    alice, bob, cleo = players("alice", "bob", "cleo")
    game = a_game(alice, bob, cleo, status="STARTED")
    ok(await report(api, alice, game.game_id, "bob", "key-1"), 201)

    refusal(await report(api, cleo, game.game_id, "bob", "key-1"), 409, "not_alive")


async def test_a_repeat_while_the_first_report_is_on_its_way_gets_the_same_answer(api: Api) -> None:
    alice, bob, cleo = players("alice", "bob", "cleo")
    game = a_game(alice, bob, cleo, status=STARTED)

    answers = await asyncio.gather(
        *(report(api, alice, game.game_id, "bob", "key-1") for _ in range(4))
    )

    first = ok(answers[0], 201)
    assert all(ok(answer, 201) == first for answer in answers)
    assert alice.user.kills == 0
    ok(await report(api, alice, game.game_id, "cleo", "key-2"), 201)
    assert alice.user.kills == 2


@pytest.mark.parametrize("other", ["cleo", "bob"])
async def test_a_reports_key_is_refused_for_another_report(api: Api, other: str) -> None:
    alice, bob, cleo, dan = players("alice", "bob", "cleo", "dan")
    game = a_game(alice, bob, cleo, dan, status=STARTED)
    ok(await report(api, alice, game.game_id, "dan", "key-1"), 201)
    if other == "bob":
        # Out by somebody else: the rules, too, would refuse the second report.
        ok(await report(api, cleo, game.game_id, "bob", "key-1"), 201)

    answer = await report(api, alice, game.game_id, other, "key-1")

    refusal(answer, 409, "idempotency_key_reused")
    again = ok(await report(api, alice, game.game_id, "dan", "key-1"), 201)
    assert (again["placement"], again["alive_count"]) == (4, 3)


async def test_a_creations_key_is_refused_for_a_report(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = ok(await create(api, alice, "key-1"), 201)
    lobby.join_game(bob.identity, game["game_id"], now=NOW)
    lobby.start_game("alice", game["game_id"], now=NOW)

    answer = await report(api, alice, game["game_id"], "bob", "key-1")

    refusal(answer, 409, "idempotency_key_reused")
    assert bob.user.deaths == 0


async def test_a_key_that_was_not_given_is_no_repeat(api: Api) -> None:
    alice, bob, cleo = players("alice", "bob", "cleo")
    game = a_game(alice, bob, cleo, status=STARTED)
    path = f"/games/{game.game_id}/eliminations"
    ok(await api.post(path, alice, victim="bob"), 201)

    refusal(await api.post(path, alice, victim="bob"), 409, "not_alive")
    refusal(await report(api, alice, game.game_id, "bob", "key-1"), 409, "not_alive")


def test_a_reports_key_is_forgotten_after_a_day(table: None) -> None:
    alice, bob, cleo = players("alice", "bob", "cleo")
    game = a_game(alice, bob, cleo, status=STARTED)

    def report_at(hours: int) -> int:
        now = NOW + timedelta(hours=hours)
        _, result = play.eliminate_player(
            alice.identity, game.game_id, "bob", "alice", now=now, idempotency_key="key-1"
        )
        return result.placement

    assert [report_at(0), report_at(23)] == [3, 3]
    with pytest.raises(NotAlive):
        report_at(25)
