import time
from datetime import timedelta
from typing import Any
from unittest import mock

import jwt
import pytest
from django.conf import settings
from django.contrib.auth.hashers import get_hasher

from gameserver import auth, capacity
from gameserver.errors import Banned, NotAuthenticated
from players.models import Session
from players.services import accounts, sessions
from tests.builders import NOW, PASSWORD, Api, APlayer, a_player, logged_in, ok, players, refusal

FORTY_DAYS = timedelta(days=40)


async def sign_up(api: Api, username: str = "alice") -> dict[str, Any]:
    body: dict[str, Any] = ok(await api.post("/players", username=username, password=PASSWORD), 201)
    return body


def bearer(access_token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {access_token}"}


async def me(api: Api, access_token: str) -> int:
    answer = await api.send("GET", "/players/me", headers=bearer(access_token))
    return answer.status_code


def test_production_hashes_with_argon2() -> None:
    assert get_hasher().algorithm == "argon2"
    assert len(settings.PASSWORD_HASHERS) == 1


async def test_logging_in_gives_new_tokens_each_time(api: Api) -> None:
    signed_up = await sign_up(api)

    first = ok(await api.post("/auth/token", username="alice", password=PASSWORD))
    second = ok(await api.post("/auth/token", username="ALICE", password=PASSWORD))

    assert first.keys() == {"access_token", "refresh_token", "expires_in"}
    for name in ("access_token", "refresh_token"):
        assert len({signed_up[name], first[name], second[name]}) == 3
    # Session id and secret: 128 and 256 bits, in base64.
    _, session_id, secret = first["refresh_token"].split(".")
    assert (len(session_id), len(secret)) == (22, 43)
    assert await me(api, first["access_token"]) == 200


@pytest.mark.parametrize(
    ("username", "password"),
    [
        ("alice", "wrong password"),
        ("alice", PASSWORD.upper()),
        ("alice", ""),
        ("nobody", PASSWORD),
        ("a#b", PASSWORD),
        ("alice ", PASSWORD),
        ("", PASSWORD),
    ],
)
async def test_a_wrong_name_and_a_wrong_password_are_told_alike(
    api: Api, username: str, password: str
) -> None:
    await sign_up(api)

    answer = await api.post("/auth/token", username=username, password=password)

    problem = refusal(answer, 401, "invalid_credentials")
    assert problem["detail"] == "Username or password is wrong."
    # Whoever answers a challenge by a refresh would do so for ever.
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize("username", ["alice", "nobody", "a#b", "guest"])
async def test_every_failed_login_hashes_once(api: Api, username: str) -> None:
    await sign_up(api)
    if username == "guest":
        guest = ok(await api.post("/players/guest", device_id="the device"), 201)
        username = guest["player"]["username"]
    hasher = type(get_hasher())

    with mock.patch.object(hasher, "encode", autospec=True, side_effect=hasher.encode) as encode:
        answer = await api.post("/auth/token", username=username, password="wrong password")

    refusal(answer, 401, "invalid_credentials")
    assert encode.call_count == 1


async def test_refreshing_rotates_the_refresh_token(api: Api) -> None:
    tokens = await sign_up(api)

    fresh = ok(await api.post("/auth/refresh", refresh_token=tokens["refresh_token"]))

    assert fresh.keys() == {"access_token", "refresh_token", "expires_in"}
    assert fresh["refresh_token"] != tokens["refresh_token"]
    assert await me(api, fresh["access_token"]) == 200
    ok(await api.post("/auth/refresh", refresh_token=fresh["refresh_token"]))


async def test_a_used_refresh_token_ends_its_whole_family(api: Api) -> None:
    stolen = await sign_up(api)
    other = ok(await api.post("/auth/token", username="alice", password=PASSWORD))
    fresh = ok(await api.post("/auth/refresh", refresh_token=stolen["refresh_token"]))
    assert await me(api, fresh["access_token"]) == 200

    reuse = await api.post("/auth/refresh", refresh_token=stolen["refresh_token"])

    refusal(reuse, 401, "not_authenticated")
    assert await me(api, fresh["access_token"]) == 401
    heir = await api.post("/auth/refresh", refresh_token=fresh["refresh_token"])
    refusal(heir, 401, "not_authenticated")
    assert await me(api, other["access_token"]) == 200


@pytest.mark.parametrize(
    "token",
    [
        *("", ".", "..", "alice", "alice.x.y", "alice..", "a#b.x.y", "bob.x.y", "x" * 150),
        *("\U0001f600.\U0001f600.\U0001f600", "alice.\U0001f600.y", "alice." + "x" * 100 + ".y"),
    ],
)
async def test_rubbish_is_no_refresh_token(api: Api, token: str) -> None:
    await sign_up(api)

    answer = await api.post("/auth/refresh", refresh_token=token)

    problem = refusal(answer, 401, "not_authenticated")
    assert problem["detail"].startswith("This refresh token")


async def test_a_refresh_token_needs_its_own_session(api: Api) -> None:
    alice = await sign_up(api, "alice")
    await sign_up(api, "bob")
    _, session_id, secret = alice["refresh_token"].split(".")

    forged = await api.post("/auth/refresh", refresh_token=f"bob.{session_id}.{secret}")

    refusal(forged, 401, "not_authenticated")


async def test_a_session_ends_when_it_expires_not_when_it_is_deleted(api: Api) -> None:
    a_player("alice")
    old = sessions.open_session("alice", now=NOW - FORTY_DAYS)
    _, session_id, _ = old.refresh_token.split(".")
    assert [session.session_id for session in Session.all_of("alice")].count(session_id) == 1

    refusal(
        await api.post("/auth/refresh", refresh_token=old.refresh_token), 401, "not_authenticated"
    )
    access = auth.issue_access_token("alice", session_id, now=NOW)
    assert await me(api, access) == 401


async def test_logging_out_ends_this_session_only(api: Api) -> None:
    here, there = a_player("alice"), logged_in("alice")
    ok(await api.get("/players/me", here))

    assert (await api.post("/auth/logout", here)).status_code == 204

    await assert_dead(api, here)
    ok(await api.get("/players/me", there))


async def test_logging_out_everywhere_ends_them_all(api: Api) -> None:
    here, there = a_player("alice"), logged_in("alice")
    bob = a_player("bob")

    assert (await api.post("/auth/logout", here, everywhere=True)).status_code == 204

    await assert_dead(api, here)
    await assert_dead(api, there)
    ok(await api.get("/players/me", bob))


async def test_changing_the_password_ends_all_other_sessions(api: Api) -> None:
    await sign_up(api)
    here, *others = (logged_in("alice") for _ in range(3))

    answer = await api.send(
        "PUT",
        "/players/me/password",
        here,
        json={"old_password": PASSWORD, "new_password": "new one!"},
    )

    assert answer.status_code == 204
    ok(await api.get("/players/me", here))
    for session in others:
        await assert_dead(api, session)
    old = await api.post("/auth/token", username="alice", password=PASSWORD)
    refusal(old, 401, "invalid_credentials")
    ok(await api.post("/auth/token", username="alice", password="new one!"))


@pytest.mark.parametrize(
    ("old", "new", "status", "code"),
    [
        ("wrong one", "a new password", 401, "invalid_credentials"),
        (PASSWORD, "short", 422, "validation_error"),
        (PASSWORD, "x" * 129, 422, "validation_error"),
    ],
)
async def test_a_refused_password_change_changes_nothing(
    api: Api, old: str, new: str, status: int, code: str
) -> None:
    await sign_up(api)
    here, other = logged_in("alice"), logged_in("alice")

    body = {"old_password": old, "new_password": new}
    refusal(await api.send("PUT", "/players/me/password", here, json=body), status, code)

    ok(await api.get("/players/me", other))
    ok(await api.post("/auth/token", username="alice", password=PASSWORD))


@pytest.mark.parametrize(
    "header",
    [
        *("", "Bearer", "Bearer ", "Bearer x", "Bearer a.b.c", "Basic YWxpY2U6eA==", "bearer\tx"),
        "Bearer " + "x" * 5000,
    ],
)
async def test_a_bad_token_is_not_authenticated(api: Api, header: str) -> None:
    answer = await api.send("GET", "/players/me", headers={"Authorization": header})

    refusal(answer, 401, "not_authenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def forged_tokens() -> dict[str, str]:
    claims = {"sub": "alice", "sid": "x", "exp": int(time.time()) + 600}
    key = b"k" * 32
    expired = auth.issue_access_token("alice", "x", now=NOW - timedelta(hours=1))
    return {
        "no signature": jwt.encode(claims, None, algorithm="none"),
        "another key": jwt.encode(claims, key, algorithm="HS256"),
        "the bare secret": jwt.encode(claims, settings.SECRET_KEY, algorithm="HS256"),
        "another algorithm": jwt.encode(claims, key * 2, algorithm="HS512"),
        "expired": expired,
    }


@pytest.mark.parametrize("kind", list(forged_tokens()))
async def test_a_forged_or_expired_token_is_not_authenticated(api: Api, kind: str) -> None:
    a_player("alice")

    answer = await api.send("GET", "/players/me", headers=bearer(forged_tokens()[kind]))

    refusal(answer, 401, "not_authenticated")


async def assert_dead(api: Api, session: APlayer) -> None:
    refusal(await api.get("/players/me", session), 401, "not_authenticated")
    refresh = await api.post("/auth/refresh", refresh_token=session.tokens.refresh_token)
    refusal(refresh, 401, "not_authenticated")


def test_many_logins_are_checked_with_one_read_for_fifty(table: None) -> None:
    accounts_here = players(*(f"player{number}" for number in range(60)))
    # Two devices of one account share its item.
    logins = {(one.username, one.identity.session_id) for one in accounts_here}
    second = logged_in("player0")
    logins.add(("player0", second.identity.session_id))
    banned, gone = accounts_here[1], accounts_here[2]
    accounts.ban(banned.username, until=NOW + FORTY_DAYS, reason="test")
    Session.close(gone.username, gone.identity.session_id)

    with capacity.measure() as meter:
        ended = sessions.ended(logins, now=NOW)

    assert {name: type(reason) for (name, _), reason in ended.items()} == {
        banned.username: Banned,
        gone.username: NotAuthenticated,
    }
    assert meter.round_trips == 2
