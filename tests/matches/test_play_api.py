import asyncio
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from matches.models import STARTED, Game
from settings_singleton.testing import override_flags
from tests.builders import (
    Api,
    APlayer,
    a_game,
    a_player,
    ok,
    players,
    refusal,
    stored,
)


async def kill(api: Api, by: APlayer, game: Game, victim: str, **more: Any) -> httpx.Response:
    return await api.post(f"/games/{game.game_id}/eliminations", by, victim=victim, **more)


def stats(player: APlayer) -> dict[str, int]:
    user = player.user
    names = ("games_played", "wins", "kills", "deaths", "coins", "score")
    return {name: int(getattr(user, name)) for name in names}


async def test_a_whole_game_from_start_to_reward(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, cat, status=STARTED)

    first = ok(await kill(api, alice, game, "bob"), 201)
    assert first == {
        "victim": "bob",
        "killer": "alice",
        "placement": 3,
        "alive_count": 2,
        "winner": None,
    }
    assert ok(await api.get("/players/me", bob))["current_game"] is None
    with override_flags(win_reward_coins=70):
        last = ok(await kill(api, cat, game, "ALICE"), 201)
    assert last == {
        "victim": "alice",
        "killer": "cat",
        "placement": 2,
        "alive_count": 1,
        "winner": "cat",
    }

    detail = ok(await api.get(f"/games/{game.game_id}", bob))
    assert (detail["status"], detail["winner"], detail["alive_count"]) == ("FINISHED", "cat", 1)
    assert detail["ended_at"] is not None
    seats = {seat["username"]: seat for seat in detail["players"]}
    outcome = ("is_alive", "kills", "placement", "eliminated_by")
    assert {name: tuple(seat[key] for key in outcome) for name, seat in seats.items()} == {
        "alice": (False, 1, 2, "cat"),
        "bob": (False, 0, 3, "alice"),
        "cat": (True, 1, 1, None),
    }
    none = {"games_played": 1, "wins": 0, "kills": 0, "deaths": 1, "coins": 0, "score": 0}
    assert stats(bob) == none
    assert stats(alice) == none | {"kills": 1, "score": 1}
    assert stats(cat) == none | {"wins": 1, "kills": 1, "deaths": 0, "coins": 70, "score": 11}
    assert ok(await api.get("/players/me", cat))["current_game"] is None


async def test_an_elimination_is_refused_with_the_reason(api: Api) -> None:
    alice, bob, cat, dan, eve = players("alice", "bob", "cat", "dan", "eve")
    lobby = a_game(eve)
    refusal(await kill(api, eve, lobby, "alice"), 409, "game_not_open")
    game = a_game(alice, bob, cat, status=STARTED)
    ok(await kill(api, alice, game, "bob"), 201)

    refusal(await kill(api, alice, game, "bob"), 409, "not_alive")
    refusal(await kill(api, bob, game, "alice"), 409, "not_alive")
    refusal(await kill(api, alice, game, "dan"), 409, "not_in_game")
    refusal(await kill(api, dan, game, "alice"), 409, "not_in_game")
    refusal(await kill(api, alice, game, "alice"), 422, "validation_error")
    refusal(await kill(api, alice, game, "a#b"), 422, "validation_error")
    refusal(await kill(api, alice, game, "cat", killer="bob"), 403, "not_referee")
    refusal(await kill(api, alice, game, "cat", killer="cat"), 403, "not_referee")
    missing = await api.post("/games/nothing/eliminations", alice, victim="bob")
    refusal(missing, 404, "game_not_found")
    assert stored(game).version == game.version + 1

    ok(await kill(api, alice, game, "cat", killer="Alice"), 201)
    refusal(await kill(api, alice, game, "cat"), 409, "game_not_open")


@pytest.mark.parametrize("authority", ["killer", "referee"])
async def test_a_referee_reports_for_anybody_and_for_nobody(
    api: Api, settings: Settings, authority: str
) -> None:
    settings.ELIMINATION_AUTHORITY = authority
    alice, bob, cat = players("alice", "bob", "cat")
    referee = a_player("ref", role="referee")
    game = a_game(alice, bob, cat, status=STARTED)

    fell = ok(await kill(api, referee, game, "bob"), 201)
    shot = ok(await kill(api, referee, game, "cat", killer="alice"), 201)

    assert (fell["killer"], fell["placement"]) == (None, 3)
    assert (shot["killer"], shot["winner"]) == ("alice", "alice")
    assert stats(alice)["kills"] == 1


async def test_a_referee_cannot_let_strangers_kill(api: Api) -> None:
    alice, bob, _ = players("alice", "bob", "dan")
    referee = a_player("ref", role="referee")
    game = a_game(alice, bob, status=STARTED)

    refusal(await kill(api, referee, game, "bob", killer="dan"), 409, "not_in_game")
    refusal(await kill(api, referee, game, "bob", killer="ref"), 409, "not_in_game")
    refusal(await kill(api, referee, game, "bob", killer="bob"), 422, "validation_error")


async def test_where_only_referees_report_players_do_not(api: Api, settings: Settings) -> None:
    settings.ELIMINATION_AUTHORITY = "referee"
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)

    refusal(await kill(api, alice, game, "bob"), 403, "not_referee")
    refusal(await kill(api, alice, game, "bob", killer="alice"), 403, "not_referee")

    assert stored(game).version == game.version


async def test_leaving_a_running_game_is_an_elimination_without_a_killer(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, cat, status=STARTED)
    path = f"/games/{game.game_id}/leave"

    left = ok(await api.post(path, alice))
    again = ok(await api.post(path, alice))

    assert (left["status"], left["alive_count"], left["host"]) == ("STARTED", 2, "alice")
    assert again == left
    assert stats(alice) == {
        "games_played": 1,
        "wins": 0,
        "kills": 0,
        "deaths": 1,
        "coins": 0,
        "score": 0,
    }
    refusal(await api.post(f"/games/{game.game_id}/join", alice), 409, "game_not_open")


async def test_when_all_others_leave_the_last_one_wins(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)

    left = ok(await api.post(f"/games/{game.game_id}/leave", alice))

    assert (left["status"], left["winner"], left["alive_count"]) == ("FINISHED", "bob", 1)
    assert left == {
        **left,
        "ended_at": ok(await api.get(f"/games/{game.game_id}", bob))["ended_at"],
    }
    assert left["ended_at"] is not None
    assert (stats(bob)["wins"], stats(bob)["coins"]) == (1, 100)


async def test_20_finishing_reports_at_once_pay_once(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)

    answers = await asyncio.gather(
        *(kill(api, (alice, bob)[n % 2], game, ("bob", "alice")[n % 2]) for n in range(20))
    )

    accepted = [answer.json() for answer in answers if answer.status_code == 201]
    assert len(accepted) == 1
    for answer in answers:
        if answer.status_code != 201:
            refusal(answer, 409, answer.json()["code"])
            assert answer.json()["code"] in {"game_not_open", "not_alive"}
    winner, loser = (alice, bob) if accepted[0]["winner"] == "alice" else (bob, alice)
    one = {"games_played": 1, "wins": 1, "kills": 1, "deaths": 0, "coins": 100, "score": 11}
    none = {"games_played": 1, "wins": 0, "kills": 0, "deaths": 1, "coins": 0, "score": 0}
    assert (stats(winner), stats(loser)) == (one, none)


async def test_a_repeated_finishing_report_pays_nothing_more(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    ok(await kill(api, alice, game, "bob"), 201)
    paid = stats(alice)

    for _ in range(3):
        refusal(await kill(api, alice, game, "bob"), 409, "game_not_open")

    assert stats(alice) == paid


async def test_a_long_game_leaves_small_items(api: Api) -> None:
    everybody = [a_player(f"p{n:02d}") for n in range(50)]
    game = a_game(*everybody, status=STARTED)

    for victim in everybody[1:]:
        ok(await kill(api, everybody[0], game, victim.username), 201)

    finished = stored(game)
    assert (finished.winner, finished.version) == ("p00", 50 + 1 + 49)
    assert stats(everybody[0])["kills"] == 49
    for item in (finished, everybody[0].user):
        assert len(str(item.serialize())) < 2_000
