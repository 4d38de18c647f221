"""Conflicts, throttling and an engine that answers nothing, on the way to and from a service."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from gameserver import retries
from gameserver.errors import GameFull, GameNotFound, TryAgain
from gameserver.models import Item
from matches.services import lobby, play
from matches.services.lobby import GameOptions
from players.services import accounts
from tests.builders import MAP, NOW, Api, a_game, a_player, ok, players, refusal, stored
from tests.faults.kinds import (
    black_hole,
    conflict,
    in_progress,
    slow,
    throttled,
    throttled_index,
    throttled_transaction,
)
from tests.faults.layer import Clock, Faults

TRANSACT = "TransactWriteItems"


def keys_written(faults: Faults) -> list[list[tuple[str, str]]]:
    """The keys of every transaction that was sent."""
    transactions = []
    for request in faults.sent:
        if request.operation == TRANSACT:
            parts = [next(iter(item.values())) for item in request.body["TransactItems"]]
            keys = [part.get("Key") or part["Item"] for part in parts]
            transactions.append([(key["PK"]["S"], key["SK"]["S"]) for key in keys])
    return transactions


def test_a_join_that_conflicts_three_times_succeeds_once(faults: Faults, clock: Clock) -> None:
    # T-01
    host, guest = players("host", "guest")
    game = a_game(host)
    faults.order(conflict, TRANSACT, times=3)
    began = clock.now
    with retries.budget(5.0):
        joined = lobby.join_game(guest.identity, game.game_id, now=NOW + timedelta(seconds=1))
    assert joined.player_count == 2
    assert len(clock.pauses) == 3
    assert clock.now - began < 1.0
    _, roster = lobby.load(game.game_id)
    assert [seat.username for seat in roster] == ["host", "guest"]


@pytest.mark.parametrize("fault", [conflict, throttled, throttled_transaction])
async def test_contention_that_lasts_is_told_as_try_again_never_as_full(
    api: Api, faults: Faults, clock: Clock, fault: Any
) -> None:
    # T-03
    host, guest = players("host", "guest")
    game = a_game(host)
    faults.order(fault, TRANSACT, times=None)
    answer = await api.post(f"/games/{game.game_id}/join", guest)
    problem = refusal(answer, 503, "try_again")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "full" not in problem["detail"]
    assert stored(game).player_count == 1


async def test_a_missing_game_is_not_found_and_a_full_one_is_full(
    api: Api, faults: Faults, clock: Clock
) -> None:
    # T-03: the same cancelled transaction, for reasons of its own, and no retry.
    host, guest, late = players("host", "guest", "late")
    game = a_game(host, guest, max_players=2)
    already = faults.attempts(TRANSACT)
    refusal(await api.post("/games/no-such-game/join", late), 404, "game_not_found")
    refusal(await api.post(f"/games/{game.game_id}/join", late), 409, "game_full")
    assert faults.attempts(TRANSACT) == already + 2
    assert clock.pauses == []


def test_joins_of_different_games_have_no_item_in_common(faults: Faults) -> None:
    # T-04: else strangers would cancel each other.
    hosts = players(*(f"host{number}" for number in range(50)))
    games = [a_game(host) for host in hosts]
    guests = players(*(f"guest{number}" for number in range(50)))
    faults.sent.clear()
    for guest, game in zip(guests, games, strict=True):
        lobby.join_game(guest.identity, game.game_id, now=NOW)
    uses = Counter(key for keys in keys_written(faults) for key in keys)
    assert len(uses) == 50 * 3
    assert set(uses.values()) == {1}


def test_no_transaction_of_a_whole_game_touches_the_settings_or_many_items(
    faults: Faults,
) -> None:
    # T-04, T-14
    host, first, second = players("host", "first", "second")
    game = a_game(host, first, second, status="STARTED")
    for victim in ("first", "second"):
        play.eliminate_player(host.identity, game.game_id, victim, "host", now=NOW)
    transactions = keys_written(faults)
    assert max(len(keys) for keys in transactions) <= 5
    assert not any(pk.startswith("SETTINGS") for keys in transactions for pk, _ in keys)
    for keys in transactions:
        assert len(keys) == len(set(keys)), "two actions on one item"


def test_a_transaction_in_progress_after_a_time_out_ends_well(faults: Faults, clock: Clock) -> None:
    # T-05
    host, guest = players("host", "guest")
    game = a_game(host)
    faults.order(slow(clock, seconds=2.0), TRANSACT)
    faults.order(in_progress, TRANSACT, times=2)
    before = faults.attempts(TRANSACT)
    with retries.budget(5.0):
        assert lobby.join_game(guest.identity, game.game_id, now=NOW).player_count == 2
    assert faults.attempts(TRANSACT) == before + 4
    tokens = {request.body["ClientRequestToken"] for request in faults.sent[-5:-1]}
    assert len(tokens) == 1


def test_under_throttling_every_request_makes_few_attempts_in_its_time(
    faults: Faults, clock: Clock
) -> None:
    # T-11: 20 s of a throttled table under steady load, then none.
    host, guest = players("host", "guest")
    game = a_game(host)
    faults.order(throttled, times=None)
    began = clock.now
    while clock.now - began < 20.0:
        sent, asked = len(faults.sent), clock.now
        with retries.budget(5.0), pytest.raises(TryAgain):
            lobby.join_game(guest.identity, game.game_id, now=NOW)
        assert len(faults.sent) - sent <= retries.MAX_ATTEMPTS
        assert clock.now - asked <= 5.0
        clock.now += 0.25
    faults.stop()
    faults.sent.clear()
    lobby.join_game(guest.identity, game.game_id, now=NOW)
    assert [request.operation for request in faults.sent] == [TRANSACT, "GetItem"]


async def test_a_throttled_index_stops_only_what_it_holds(
    api: Api, faults: Faults, clock: Clock
) -> None:
    # joins touch the listing, which shows the player count; names and reads do not.
    host, guest, other = players("host", "guest", "other")
    game = a_game(host, guest)

    def touches_listing(body: dict[str, Any]) -> bool:
        return "#METADATA#" in str(body) and "GAME#" in str(body)

    for operation in (TRANSACT, "UpdateItem"):
        faults.order(
            throttled_index("GameListingIndex"), operation, times=None, when=touches_listing
        )
    for path, by, body in (
        ("/games", other, {"map": MAP}),
        (f"/games/{game.game_id}/join", other, {}),
        (f"/games/{game.game_id}/start", host, {}),
    ):
        answer = await api.post(path, by, **body)
        refusal(answer, 503, "try_again")
        assert int(answer.headers["Retry-After"]) >= 1
    ok(await api.send("PATCH", "/players/me", other, json={"display_name": "Still me"}))
    ok(await api.get(f"/games/{game.game_id}", other))
    ok(await api.get("/games", other))
    faults.stop()
    ok(await api.post(f"/games/{game.game_id}/start", host))


async def test_an_engine_that_never_answers_ends_in_503_inside_the_budget(
    api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # O-17; the wait is real, so it is short.
    player = a_player("ada")
    ok(await api.get("/players/me", player))
    settings.DYNAMODB_READ_TIMEOUT_SECONDS = 0.2
    settings.REQUEST_BUDGET_SECONDS = 0.5
    with black_hole() as url:
        settings.DYNAMODB_ENDPOINT_URL = url
        monkeypatch.setattr(Item, "_shared", None)
        began = time.monotonic()
        answers = await asyncio.gather(
            api.get("/players/me", player),
            api.post("/games", player, map=MAP),
            api.post("/games/quick-join", player),
            api.post("/auth/token", username="ada", password="whatever"),
        )
        took = time.monotonic() - began
        Item._get_connection().connection.client.close()
    for answer in answers:
        refusal(answer, 503, "try_again")
    assert took < 2.0


def test_a_name_is_free_until_it_is_taken(table: None, cheap_passwords: None) -> None:
    # O-04: "does it exist" is asked of the item, never of the table.
    players("ada", "bob")
    with pytest.raises(GameNotFound):
        lobby.existing_game("free-id")
    user, _ = accounts.sign_up("cyd", "long enough", now=NOW)
    assert user.username == "cyd"


def test_a_full_game_is_full_however_contended(faults: Faults, clock: Clock) -> None:
    # T-03: conflicts first, then the true reason.
    host, guest, late = players("host", "guest", "late")
    game = lobby.create_game(host.identity, GameOptions(MAP, max_players=2), now=NOW)
    lobby.join_game(guest.identity, game.game_id, now=NOW)
    faults.order(conflict, TRANSACT, times=2)
    with pytest.raises(GameFull):
        lobby.join_game(late.identity, game.game_id, now=NOW)
