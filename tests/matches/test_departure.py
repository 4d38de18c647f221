from datetime import timedelta
from typing import Any

import pytest

from gameserver.errors import NotAuthenticated
from gameserver.models import Page
from matches.models import CANCELLED, STARTED, Game, UserGameMapping
from matches.services import departure, play, sweep
from players.models import User
from players.services import sessions
from tests.builders import (
    NOW,
    PASSWORD,
    Api,
    a_game,
    a_player,
    logged_in,
    ok,
    players,
    stored,
)


async def test_a_host_who_is_deleted_hands_his_lobby_over(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob)

    assert (await api.send("DELETE", "/players/me", alice)).status_code == 204

    detail = ok(await api.get(f"/games/{game.game_id}", cat))
    assert (detail["host"], detail["player_count"]) == ("bob", 1)
    assert [seat["username"] for seat in detail["players"]] == ["bob"]
    ok(await api.post(f"/games/{game.game_id}/join", cat))
    ok(await api.post(f"/games/{game.game_id}/start", bob))


async def test_a_player_who_is_deleted_loses_his_running_game(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, cat, status=STARTED)

    assert (await api.send("DELETE", "/players/me", alice)).status_code == 204

    detail = ok(await api.get(f"/games/{game.game_id}", bob))
    assert (detail["status"], detail["alive_count"], detail["player_count"]) == ("STARTED", 2, 3)
    assert detail["host"] == "deleted-player"
    (gone,) = [seat for seat in detail["players"] if not seat["is_alive"]]
    assert (gone["username"], gone["display_name"]) == ("deleted-player", "deleted-player")
    assert gone["placement"] == 3
    assert "alice" not in str(detail).lower()
    ok(await api.post(f"/games/{game.game_id}/eliminations", bob, victim="cat"), 201)


async def test_no_answer_about_a_running_game_names_a_deleted_host(api: Api) -> None:
    alice, bob, cat, dan = players("alice", "bob", "cat", "dan")
    game = a_game(alice, bob, cat, dan, status=STARTED)
    assert ok(await api.post(f"/games/{game.game_id}/join", bob))["host"] == "alice"

    assert (await api.send("DELETE", "/players/me", alice)).status_code == 204

    for action, player in (("join", bob), ("leave", cat), ("leave", cat)):
        answer = ok(await api.post(f"/games/{game.game_id}/{action}", player))
        assert answer["host"] == "deleted-player"


async def test_the_past_of_a_deleted_winner_stays_without_his_name(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    play.take_out(game.game_id, "bob", "alice", now=NOW)

    assert (await api.send("DELETE", "/players/me", alice)).status_code == 204

    detail = ok(await api.get(f"/games/{game.game_id}", bob))
    assert detail["winner"] == detail["host"] == "deleted-player"
    seats = {seat["username"]: seat for seat in detail["players"]}
    assert seats["deleted-player"]["placement"] == 1
    assert seats["bob"]["eliminated_by"] == "deleted-player"
    names = [item["username"] for item in ok(await api.get("/leaderboard", bob))["items"]]
    assert names == ["bob"]


async def test_a_new_owner_of_the_name_gets_no_old_games(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    over = a_game(alice, bob, status=STARTED, now=NOW - timedelta(hours=1))
    play.take_out(over.game_id, "bob", "alice", now=NOW)
    running = a_game(alice, bob, cat, status=STARTED)
    await api.send("DELETE", "/players/me", alice)
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)
    heir = logged_in("alice")

    assert ok(await api.get("/players/alice/games", heir))["items"] == []
    assert ok(await api.get("/players/me", heir))["current_game"] is None
    for game in (over, running):
        detail = ok(await api.get(f"/games/{game.game_id}", heir))
        assert "alice" not in {seat["username"] for seat in detail["players"]}
    path = f"/games/{running.game_id}"
    for action, code in (("leave", "not_in_game"), ("join", "game_not_open")):
        assert (await api.post(f"{path}/{action}", heir)).json()["code"] == code
    kill = await api.post(f"{path}/eliminations", heir, victim="bob")
    assert kill.json()["code"] == "not_alive"


@pytest.mark.parametrize("how", ["cancelled", "swept lobby", "swept game"])
async def test_a_pointer_to_a_game_that_is_over_keeps_nobody(api: Api, how: str) -> None:
    alice, bob = players("alice", "bob")
    if how == "cancelled":
        a_game(alice, bob, status=CANCELLED)
    else:
        a_game(alice, bob, status=STARTED if how == "swept game" else "OPEN")
        sweep.sweep(now=NOW + timedelta(days=1))
    assert bob.user.current_game is not None
    assert ok(await api.get("/players/me", bob))["current_game"] is None

    assert (await api.send("DELETE", "/players/me", bob)).status_code == 204

    assert User.by_username("bob", consistent=True) is None


def test_the_newest_seat_is_anonymised_before_the_index_shows_it(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, cat, status=STARTED)
    monkeypatch.setattr(UserGameMapping, "history", lambda *_, **__: Page())

    departure.delete_account("alice", now=NOW)

    _, seat = Game.with_seat(game.game_id, "alice")
    assert seat
    assert seat.is_deleted
    assert stored(game).alive_count == 2


def test_sessions_end_even_if_deleting_stops_half_way(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = a_player()

    class Crash(Exception):
        pass

    real = User.delete_with_credential

    def delete_and_crash(username: str, **options: Any) -> None:
        real(username, **options)
        raise Crash

    monkeypatch.setattr(User, "delete_with_credential", delete_and_crash)
    with pytest.raises(Crash):
        departure.delete_account("alice", now=NOW)

    # Somebody else takes the name; the old owner's tokens are not good for it.
    a_player("alice")
    with pytest.raises(NotAuthenticated):
        sessions.refresh(alice.tokens.refresh_token, now=NOW)
