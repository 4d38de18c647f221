import asyncio

import pytest

from players.models import Credential
from tests.builders import PASSWORD, Api, APlayer, a_player, logged_in, ok, refusal

DEVICE = "device-of-alice"


async def a_guest(api: Api, device_id: str = DEVICE) -> APlayer:
    body = ok(await api.post("/players/guest", device_id=device_id), 201)
    return logged_in(body["player"]["username"])


async def test_a_device_creates_its_guest_once_and_resumes_it(api: Api) -> None:
    created = ok(await api.post("/players/guest", device_id=DEVICE), 201)
    resumed = ok(await api.post("/players/guest", device_id=DEVICE), 200)
    other = ok(await api.post("/players/guest", device_id=DEVICE + "2"), 201)

    assert created.keys() == {"player", "access_token", "refresh_token", "expires_in"}
    assert created["player"]["is_guest"] is True
    assert created["player"]["username"].startswith("guest-")
    assert resumed["player"] == created["player"]
    assert resumed["refresh_token"] != created["refresh_token"]
    assert other["player"]["username"] != created["player"]["username"]
    assert DEVICE not in str(created)


async def test_a_device_that_asks_twice_at_once_gets_one_guest(api: Api) -> None:
    answers = await asyncio.gather(
        *(api.post("/players/guest", device_id=DEVICE) for _ in range(5))
    )

    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [201]
    assert len({answer.json()["player"]["username"] for answer in answers}) == 1


@pytest.mark.parametrize("device_id", ["", "x" * 7, "x" * 201, None, 12345678])
async def test_a_device_id_has_8_to_200_characters(api: Api, device_id: object) -> None:
    refusal(await api.post("/players/guest", device_id=device_id), 422, "validation_error")


async def test_a_device_id_of_200_four_byte_characters_will_do(api: Api) -> None:
    ok(await api.post("/players/guest", device_id="\U0001f600" * 200), 201)


async def test_a_guest_has_no_password_to_log_in_with_or_to_change(api: Api) -> None:
    guest = await a_guest(api)

    for password in ("", "!", PASSWORD):
        login = await api.post("/auth/token", username=guest.username, password=password)
        refusal(login, 401, "invalid_credentials")
    body = {"old_password": "", "new_password": PASSWORD}
    change = await api.send("PUT", "/players/me/password", guest, json=body)
    refusal(change, 401, "invalid_credentials")


async def test_an_upgraded_guest_keeps_all_and_logs_in_anywhere(api: Api) -> None:
    guest = await a_guest(api)

    body = ok(await api.post("/players/me/upgrade", guest, password=PASSWORD, display_name="Al"))

    assert (body["username"], body["display_name"]) == (guest.username, "Al")
    assert (body["is_guest"], body["role"]) == (False, "player")
    ok(await api.get("/players/me", guest))
    ok(await api.post("/auth/token", username=guest.username, password=PASSWORD))
    assert ok(await api.post("/players/guest", device_id=DEVICE))["player"] == body


@pytest.mark.parametrize(
    "body",
    [
        {"password": "short"},
        {"password": PASSWORD, "display_name": ""},
        {"password": PASSWORD, "username": "another"},
        {"username": "guest-x"},
    ],
)
async def test_a_refused_upgrade_leaves_a_guest(api: Api, body: dict[str, str]) -> None:
    guest = await a_guest(api)

    refusal(await api.post("/players/me/upgrade", guest, **body), 422, "validation_error")

    assert guest.user.is_guest
    assert Credential.of(guest.username) is None


async def test_a_full_account_cannot_be_upgraded_over_its_password(api: Api) -> None:
    ok(await api.post("/players", username="alice", password=PASSWORD), 201)

    answer = await api.post("/players/me/upgrade", logged_in("alice"), password="taken over")

    refusal(answer, 422, "validation_error")
    ok(await api.post("/auth/token", username="alice", password=PASSWORD))


async def test_a_device_whose_guest_was_deleted_starts_anew(api: Api) -> None:
    guest = await a_guest(api)
    assert (await api.send("DELETE", "/players/me", guest)).status_code == 204

    body = ok(await api.post("/players/guest", device_id=DEVICE), 201)

    assert body["player"]["username"] != guest.username


async def test_nobody_signs_up_with_a_guests_name(api: Api) -> None:
    guest = await a_guest(api)

    answer = await api.post("/players", username=guest.username, password=PASSWORD)

    refusal(answer, 422, "validation_error")
    assert a_player("alice").user.is_guest is False
