from datetime import timedelta

import pytest

from matches.models import CANCELLED, STARTED
from matches.services import lobby, play
from matches.services.sweep import Swept, sweep, sweep_under_lease
from settings_singleton.testing import override_flags
from tests.builders import MAP, NOW, Api, a_game, a_player, ok, players, refusal, stored

LOBBY, MATCH = timedelta(seconds=1800), timedelta(seconds=7200)
MOMENT = timedelta(seconds=1)


def test_a_lobby_that_nobody_starts_is_cancelled_when_its_time_is_over(table: None) -> None:
    alice, bob, cat, dan = players("alice", "bob", "cat", "dan")
    games = [
        a_game(alice),
        a_game(bob, max_players=2, game_map="open-ocean"),
        a_game(cat, is_private=True),
    ]
    lobby.join_game(dan.identity, games[1].game_id, now=NOW)

    assert sweep(now=NOW + LOBBY) == Swept(cancelled=0, ended=0)
    assert sweep(now=NOW + LOBBY + MOMENT) == Swept(cancelled=3, ended=0)

    for game in games:
        swept = stored(game)
        assert (swept.status, swept.ended_at) == (CANCELLED, NOW + LOBBY + MOMENT)
    assert sweep(now=NOW + LOBBY + MOMENT) == Swept(0, 0)


def test_a_game_that_never_ends_is_ended_without_a_winner(table: None) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    assert game.started_at

    assert sweep(now=game.started_at + MATCH) == Swept(0, 0)
    assert sweep(now=game.started_at + MATCH + MOMENT) == Swept(cancelled=0, ended=1)

    swept = stored(game)
    assert swept.status == "FINISHED"
    assert not swept.winner
    assert alice.user.games_played == 0


def test_the_time_allowed_is_a_setting(table: None) -> None:
    a_game(a_player())

    with override_flags(lobby_timeout_seconds=60):
        assert sweep(now=NOW + 61 * MOMENT) == Swept(cancelled=1, ended=0)


def test_games_that_end_by_themselves_are_not_touched(table: None) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=STARTED)
    play.take_out(game.game_id, "bob", "alice", now=NOW)
    version = stored(game).version

    assert sweep(now=NOW + timedelta(days=30)) == Swept(0, 0)
    assert stored(game).version == version


def test_more_games_than_a_page_are_all_swept(table: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matches.services.sweep.PAGE", 3)
    for n in range(10):
        a_game(a_player(f"host{n}"), now=NOW + timedelta(milliseconds=n // 2))

    assert sweep(now=NOW + timedelta(days=1)) == Swept(cancelled=10, ended=0)


def test_only_the_holder_of_the_lease_sweeps(table: None) -> None:
    a_game(a_player())
    later = NOW + timedelta(days=1)

    assert sweep_under_lease("one", now=NOW) == Swept(0, 0)
    assert sweep_under_lease("two", now=NOW + 59 * MOMENT) is None
    assert sweep_under_lease("one", now=NOW + 59 * MOMENT) == Swept(0, 0)
    assert sweep_under_lease("two", now=later) == Swept(cancelled=1, ended=0)


async def test_a_full_lobby_whose_host_is_away_ends_and_frees_its_players(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, max_players=2)

    sweep(now=NOW + LOBBY + MOMENT)

    assert ok(await api.get(f"/games/{game.game_id}", bob))["status"] == CANCELLED
    refusal(await api.post(f"/games/{game.game_id}/start", alice), 409, "game_not_open")
    ok(await api.post("/games", bob, map=MAP), 201)
