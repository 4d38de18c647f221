from datetime import timedelta

import pytest

from gameserver.times import rfc3339
from players.models import Credential, User
from players.services import accounts
from tests.builders import (
    NO_STATS,
    NOW,
    OWN_PROFILE_FIELDS,
    PASSWORD,
    PROFILE_FIELDS,
    Api,
    a_player,
    logged_in,
    ok,
    refusal,
)


async def test_a_public_profile_shows_no_secrets(api: Api) -> None:
    a_player("bob")

    body = ok(await api.get("/players/bob", a_player("alice")))

    assert body.keys() == PROFILE_FIELDS
    assert body["stats"] == NO_STATS
    assert ok(await api.get("/players/BOB", logged_in("alice"))) == body


@pytest.mark.parametrize("name", ["nobody", "xx", "a%23b", "%00", "USER%23bob", "x" * 300])
async def test_who_does_not_exist_is_not_found(api: Api, name: str) -> None:
    refusal(await api.get(f"/players/{name}", a_player()), 404, "player_not_found")


async def test_a_display_name_can_be_changed(api: Api) -> None:
    alice = a_player("alice")

    body = ok(await api.send("PATCH", "/players/me", alice, json={"display_name": " Al "}))

    assert body.keys() == OWN_PROFILE_FIELDS
    assert body["display_name"] == "Al"
    assert ok(await api.get("/players/alice", alice))["display_name"] == "Al"
    invalid = await api.send("PATCH", "/players/me", alice, json={"display_name": "\u200b"})
    refusal(invalid, 422, "validation_error")


async def test_a_changed_name_is_on_the_next_seat(api: Api) -> None:
    alice = a_player("alice")
    await api.send("PATCH", "/players/me", alice, json={"display_name": "Al"})

    game = ok(await api.post("/games", alice, map="dirty-desert"), 201)

    (seat,) = ok(await api.get(f"/games/{game['game_id']}", alice))["players"]
    assert seat["display_name"] == "Al"


async def test_a_deleted_account_is_gone_with_its_password_and_sessions(api: Api) -> None:
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)
    alice, other = logged_in("alice"), logged_in("alice")

    assert (await api.send("DELETE", "/players/me", alice)).status_code == 204

    for session in (alice, other):
        refusal(await api.get("/players/me", session), 401, "not_authenticated")
        refresh = await api.post("/auth/refresh", refresh_token=session.tokens.refresh_token)
        refusal(refresh, 401, "not_authenticated")
    assert Credential.of("alice") is None
    login = await api.post("/auth/token", username="alice", password=PASSWORD)
    refusal(login, 401, "invalid_credentials")
    refusal(await api.get("/players/alice", a_player("bob")), 404, "player_not_found")


async def test_a_new_owner_of_a_name_inherits_nothing(api: Api) -> None:
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)
    old = logged_in("alice")
    await api.send("DELETE", "/players/me", old)

    ok(await api.post("/players", username="alice", password="another one"), 201)

    refusal(await api.get("/players/me", old), 401, "not_authenticated")
    login = await api.post("/auth/token", username="alice", password=PASSWORD)
    refusal(login, 401, "invalid_credentials")


async def test_the_leaderboard_ranks_by_wins_then_kills(api: Api) -> None:
    for name, wins, kills in (("ann", 0, 9), ("ben", 1, 0), ("cid", 1, 2)):
        user = User.new(name, name.title(), now=NOW)
        user.wins, user.kills, user.games_played = wins, kills, 3
        user.score = 10 * wins + kills
        User.create_with_credential(user, Credential.new(name, "!"))
    viewer = a_player("viewer")

    body = ok(await api.get("/leaderboard", viewer, limit=3))

    assert body["items"] == [
        {"rank": rank, "username": name, "display_name": name.title(), "games_played": 3}
        | {"wins": wins, "kills": kills, "score": score}
        for rank, name, wins, kills, score in [
            (1, "cid", 1, 2, 12),
            (2, "ben", 1, 0, 10),
            (3, "ann", 0, 9, 9),
        ]
    ]
    assert len(ok(await api.get("/leaderboard", viewer))["items"]) == 4


async def test_a_ban_refuses_tokens_and_logins_until_it_ends(api: Api) -> None:
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)
    alice = logged_in("alice")
    ok(await api.get("/players/me", alice))
    until = NOW + timedelta(days=1)

    accounts.ban("alice", until=until, reason="wall hacks")

    problem = refusal(await api.get("/players/me", alice), 403, "banned")
    assert problem["until"] == rfc3339(until)
    assert "wall hacks" not in str(problem)
    login = await api.post("/auth/token", username="alice", password=PASSWORD)
    refusal(login, 403, "banned")
    wrong = await api.post("/auth/token", username="alice", password="wrong password")
    refusal(wrong, 401, "invalid_credentials")
    refresh = await api.post("/auth/refresh", refresh_token=alice.tokens.refresh_token)
    refusal(refresh, 401, "not_authenticated")

    accounts.unban("alice")

    refusal(await api.get("/players/me", alice), 401, "not_authenticated")
    ok(await api.post("/auth/token", username="alice", password=PASSWORD))
