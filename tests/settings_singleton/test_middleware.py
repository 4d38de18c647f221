"""The gate in front of /api, and each switch over HTTP."""

from typing import Any

import httpx
import pytest

from matches.models import STARTED
from settings_singleton.middleware import network_of
from settings_singleton.registry import SETTINGS
from settings_singleton.testing import override_flags
from tests.builders import MAP, PASSWORD, Api, a_game, a_player, ok, players, refusal


async def test_maintenance_refuses_everything_with_when_to_come_back(api: Api) -> None:
    alice = a_player()
    with override_flags(maintenance_mode=True):
        for method, path in [
            ("GET", "/games"),
            ("POST", "/games"),
            ("POST", "/players"),
            ("POST", "/auth/token"),
            ("GET", "/players/me"),
            ("GET", "/leaderboard"),
            ("GET", "/stats"),
            ("GET", "/openapi.json"),
            ("GET", "/nothing/here"),
        ]:
            response = await api.send(method, path, alice, json={})

            refusal(response, 503, "maintenance")
            assert int(response.headers["Retry-After"]) > 0


async def test_maintenance_leaves_leaving_logout_settings_and_health_open(api: Api) -> None:
    """F-10"""
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)
    with override_flags(maintenance_mode=True):
        ok(await api.post(f"/games/{game.game_id}/leave", bob))
        assert ok(await api.get("/settings"))["flags"]["maintenance_mode"] is True
        assert (await api.client.get("/healthz")).status_code == 200
        assert (await api.client.get("/metrics")).status_code == 200
        assert (await api.client.get("/readyz")).status_code in {200, 503}
        assert (await api.post("/auth/logout", bob)).status_code == 204


async def test_leaving_a_running_game_in_maintenance_ends_it_properly(api: Api) -> None:
    """F-10: finish, too."""
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    with override_flags(maintenance_mode=True):
        ended = ok(await api.post(f"/games/{game.game_id}/leave", bob))

    assert (ended["status"], ended["winner"]) == ("FINISHED", "alice")


@pytest.mark.django_db
async def test_maintenance_does_not_concern_staff(api: Api) -> None:
    with override_flags(maintenance_mode=True):
        assert (await api.client.get("/admin/login/")).status_code == 200


def refused_by(api: Api, flag: str, game_id: str) -> list[httpx.Request]:
    """What a switch that is off refuses."""
    signup = {"username": "carol", "password": PASSWORD}
    requests: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "signup_enabled": [
            ("/players", signup),
            ("/players/guest", {"device_id": "a-device-of-somebody"}),
        ],
        "game_creation_enabled": [("/games", {"map": MAP})],
        "joining_enabled": [(f"/games/{game_id}/join", {}), ("/games/quick-join", {})],
    }
    return [
        api.client.build_request("POST", f"/api{path}", json=body) for path, body in requests[flag]
    ]


@pytest.mark.parametrize("flag", ["signup_enabled", "game_creation_enabled", "joining_enabled"])
async def test_a_switch_that_is_off_refuses_by_name_and_one_that_is_on_does_not(
    api: Api, flag: str
) -> None:
    """F-07"""
    alice, bob = players("alice", "bob")
    game = a_game(alice)
    with override_flags(**{flag: False}):
        for request in refused_by(api, flag, game.game_id):
            request.headers.update(bob.headers)
            response = await api.client.send(request)

            assert refusal(response, 503, "feature_disabled")["flag"] == flag
            assert int(response.headers["Retry-After"]) > 0
    for request in refused_by(api, flag, game.game_id):
        request.headers.update(bob.headers)
        response = await api.client.send(request)
        assert response.json().get("code") != "feature_disabled"


async def test_games_that_run_go_on_with_every_feature_off(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)
    features = {name: False for name, each in SETTINGS.items() if each.is_switch and each.first}
    with override_flags(**features):
        ok(await api.post(f"/games/{game.game_id}/start", alice))
        won = ok(await api.post(f"/games/{game.game_id}/eliminations", alice, victim="bob"), 201)

    assert won["winner"] == "alice"


async def test_the_reward_follows_the_setting_without_a_restart(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    with override_flags(win_reward_coins=777):
        ok(await api.post(f"/games/{game.game_id}/eliminations", alice, victim="bob"), 201)

    assert alice.user.coins == 777


async def test_an_old_client_is_told_to_update(api: Api) -> None:
    old = {"X-Client-Version": "1.3.9"}
    with override_flags(min_client_version="1.4"):
        answer = refusal(await api.send("GET", "/maps", headers=old), 426, "client_too_old")
        assert answer["min_client_version"] == "1.4"
        ok(await api.send("GET", "/settings", headers=old))
        ok(await api.send("GET", "/maps", headers={"X-Client-Version": "1.4.0"}))
        ok(await api.send("GET", "/maps"))


async def test_every_answer_tells_what_is_left_of_the_minute(api: Api) -> None:
    with override_flags(requests_per_minute=500):
        first = await api.get("/maps")
        second = await api.get("/maps")

    assert first.headers["RateLimit-Limit"] == "500"
    assert 1 <= int(first.headers["RateLimit-Reset"]) <= 60
    assert "RateLimit-Remaining" in second.headers


async def test_too_many_requests_from_one_address_are_refused_until_the_minute_is_over(
    api: Api, frozen_minute: None
) -> None:
    with override_flags(requests_per_minute=10):
        answers = [await api.get("/maps") for _ in range(12)]

    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 2
    assert [answer.headers["RateLimit-Remaining"] for answer in answers[8:]] == ["1", "0", "0", "0"]
    refusal(answers[-1], 429, "rate_limited")
    assert answers[-1].headers["Retry-After"] == "30"
    assert answers[-1].headers["RateLimit-Reset"] == "30"


async def test_a_higher_limit_takes_effect_at_once(api: Api, frozen_minute: None) -> None:
    with override_flags(requests_per_minute=10):
        for _ in range(11):
            last = await api.get("/maps")
        refusal(last, 429, "rate_limited")
    with override_flags(requests_per_minute=20):
        ok(await api.get("/maps"))


async def test_an_account_has_its_own_limit_wherever_it_comes_from(
    api: Api, frozen_minute: None
) -> None:
    alice, bob = players("alice", "bob")
    with override_flags(requests_per_minute=10):
        for number in range(10):
            async with client_at(f"10.0.0.{number}") as client:
                ok(await client.get("/api/maps", headers=alice.headers))
        async with client_at("10.0.0.99") as client:
            refused = await client.get("/api/maps", headers=alice.headers)
            assert "account" in refusal(refused, 429, "rate_limited")["detail"]
            ok(await client.get("/api/maps", headers=bob.headers))


async def test_a_forged_token_cannot_use_up_somebody_elses_limit(
    api: Api, frozen_minute: None
) -> None:
    alice = a_player()
    head, claims, _ = alice.tokens.access_token.split(".")
    forged = {"Authorization": f"Bearer {head}.{claims}.AAAA"}
    with override_flags(requests_per_minute=10):
        for number in range(11):
            async with client_at(f"10.0.1.{number}") as client:
                ok(await client.get("/api/maps", headers=forged))
        async with client_at("10.0.1.99") as client:
            ok(await client.get("/api/maps", headers=alice.headers))


def client_at(address: str) -> httpx.AsyncClient:
    from gameserver.asgi import application

    transport = httpx.ASGITransport(application, client=(address, 5_000))
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
    ],
)
def test_an_address_counts_as_what_one_subscriber_holds(address: str, network: str) -> None:
    assert network_of(address) == network
