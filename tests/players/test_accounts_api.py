import asyncio
from typing import Any

import pytest

from players.models import User
from settings_singleton.testing import override_flags
from tests.builders import (
    NO_STATS,
    OWN_PROFILE_FIELDS,
    PASSWORD,
    Api,
    a_player,
    logged_in,
    ok,
    refusal,
)

TOKEN_FIELDS = {"access_token", "refresh_token", "expires_in"}


async def test_signing_up_creates_a_profile_and_logs_in(api: Api) -> None:
    body = ok(
        await api.post("/players", username="Alice", password=PASSWORD, display_name="Älice"), 201
    )

    assert body.keys() == TOKEN_FIELDS | {"player"}
    assert body["expires_in"] == 900
    player = body["player"]
    assert player.keys() == OWN_PROFILE_FIELDS
    assert player | {"created_at": None} == {
        "username": "alice",
        "display_name": "Älice",
        "is_guest": False,
        "created_at": None,
        "stats": NO_STATS,
        "current_game": None,
        "role": "player",
    }
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    assert ok(await api.send("GET", "/players/me", headers=headers)) == player


async def test_a_display_name_defaults_to_the_username(api: Api) -> None:
    body = ok(await api.post("/players", username="alice", password=PASSWORD), 201)

    assert body["player"]["display_name"] == "alice"


@pytest.mark.parametrize("again", ["bob", "Bob", "BOB", "\uff22\uff4f\uff42"])
async def test_every_spelling_of_a_taken_name_is_taken(api: Api, again: str) -> None:
    ok(await api.post("/players", username="Bob", password=PASSWORD), 201)

    refusal(await api.post("/players", username=again, password=PASSWORD), 409, "username_taken")
    ok(await api.post("/auth/token", username=again, password=PASSWORD))


async def test_a_free_name_is_free_while_others_exist(api: Api) -> None:
    a_player("bob")

    refusal(await api.get("/players/alice", logged_in("bob")), 404, "player_not_found")
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)


async def test_of_20_sign_ups_at_once_one_succeeds(api: Api) -> None:
    spellings = ["bob", "Bob", "BOB", "bOb"] * 5

    answers = await asyncio.gather(
        *(
            api.post("/players", username=name, password=f"password {n}")
            for n, name in enumerate(spellings)
        )
    )

    winners = [n for n, answer in enumerate(answers) if answer.status_code == 201]
    assert len(winners) == 1
    for n, answer in enumerate(answers):
        if n not in winners:
            # More hashing than the password threads' line takes is asked to come again.
            code = answer.json()["code"]
            refusal(answer, *((409, code) if code == "username_taken" else (503, "try_again")))
    ok(await api.post("/auth/token", username="bob", password=f"password {winners[0]}"))


@pytest.mark.parametrize(
    "body",
    [
        {"username": "a#b"},
        {"username": "GAME#1"},
        {"username": "#METADATA#1"},
        {"username": "%23%23%23"},
        {"username": "a:b"},
        {"username": "a/b"},
        {"username": ""},
        {"username": "   "},
        {"username": "\u200b\u200b\u200b"},
        {"username": "bob "},
        {"username": "x" * 5000},
        {"username": "deleted-player"},
        {"username": "guest-bob"},
        {"username": None},
        {"username": 42},
        {"username": ["bob"]},
        {"display_name": ""},
        {"display_name": " "},
        {"display_name": "\u200b"},
        {"display_name": "\U0001f600" * 33},
        {"password": "short"},
        {"password": "x" * 129},
        {"password": "x" * 5000},
        {"password": None},
    ],
)
async def test_what_cannot_be_an_account_is_refused_by_our_own_rule(
    api: Api, body: dict[str, Any]
) -> None:
    full: dict[str, Any] = {"username": "alice", "password": PASSWORD, **body}

    problem = refusal(await api.post("/players", **full), 422, "validation_error")

    assert PASSWORD not in str(problem)
    assert "x" * 100 not in str(problem)


async def test_a_name_of_32_four_byte_characters_is_accepted(api: Api) -> None:
    name = "\U0001f600" * 32

    body = ok(
        await api.post("/players", username="alice", password=PASSWORD, display_name=name), 201
    )

    assert body["player"]["display_name"] == name


async def test_fields_that_are_not_in_the_contract_are_not_bound(api: Api) -> None:
    extra: dict[str, Any] = {
        "role": "referee",
        "is_staff": True,
        "is_guest": True,
        "coins": 1000,
        "wins": 9,
        "current_game": "g1",
        "kind": "GAME",
        "PK": "USER#bob",
        "SK": "#CREDENTIAL",
        "banned_until": "2000-01-01T00:00:00Z",
    }
    body = ok(await api.post("/players", username="alice", password=PASSWORD, **extra), 201)
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    await api.send("PATCH", "/players/me", headers=headers, json={"display_name": "Al", **extra})

    me = ok(await api.send("GET", "/players/me", headers=headers))
    assert (me["role"], me["is_guest"], me["current_game"], me["stats"]) == (
        "player",
        False,
        None,
        NO_STATS,
    )
    user = User.by_username("alice", consistent=True)
    assert user
    assert (user.PK, user.SK) == ("USER#alice", "#METADATA#alice")
    assert user.banned_until is None


async def test_sign_up_can_be_switched_off(api: Api) -> None:
    with override_flags(signup_enabled=False):
        answer = await api.post("/players", username="alice", password=PASSWORD)
        guest = await api.post("/players/guest", device_id="a new device")

    for response in (answer, guest):
        assert refusal(response, 503, "feature_disabled")["flag"] == "signup_enabled"
        assert int(response.headers["Retry-After"]) > 0
