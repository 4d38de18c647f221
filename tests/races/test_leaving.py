"""A seat that is given back, or a lobby that ends, while others come in."""

from functools import partial

import pytest

from matches.models import CANCELLED, OPEN, STARTED
from tests.builders import a_game, stored
from tests.races.invariants import assert_sound
from tests.races.moves import cancel, join, leave, newcomers
from tests.races.threads import at_once, codes, dice, twice_at_once

pytestmark = pytest.mark.usefixtures("table")


def test_a_player_who_leaves_twice_at_once_frees_one_seat() -> None:
    """J-05, 50 rounds."""
    host, player, other = newcomers(3)
    game = a_game(host, other)
    for _ in range(50):
        join(player, game)
        _assert_left(codes(twice_at_once(leave, player, game)))
        assert stored(game).player_count == 2
    assert_sound(games=1)


def test_a_host_who_leaves_twice_at_once_passes_the_role_on_once() -> None:
    """J-05, L-01."""
    players = {player.username: player for player in newcomers(3)}
    game = a_game(*players.values())
    for _ in range(30):
        leaving = players[stored(game).host]
        _assert_left(codes(twice_at_once(leave, leaving, game)))
        assert stored(game).player_count == 2
        assert stored(game).host != leaving.username
        join(leaving, game)
    assert_sound(games=1)


def test_everybody_leaves_at_once_and_the_lobby_is_cancelled() -> None:
    """J-05, L-01: whoever is left hosts, and the last one out ends it."""
    players = newcomers(6)
    for _ in range(8):
        game = a_game(*players)
        answers = at_once(*[partial(leave, player, game) for player in players])
        assert set(codes(answers)) == {"ok"}
        assert (stored(game).status, stored(game).player_count) == (CANCELLED, 0)
    assert_sound(games=8)


def test_a_player_who_leaves_a_running_game_twice_at_once_is_eliminated_once() -> None:
    """J-05: the repeat is told the same as the first."""
    players = newcomers(4)
    for _ in range(20):
        game = a_game(*players, status=STARTED)
        assert codes(twice_at_once(leave, players[1], game)) == ["ok", "ok"]
        assert stored(game).alive_count == 3
        for player in players[2:]:
            leave(player, game)
    assert_sound(games=20)


def test_the_last_seat_goes_to_a_newcomer_only_once_another_has_left() -> None:
    """J-08, 100 rounds: a lobby is listed as open exactly while a seat is free."""
    chance = dice("last seat")
    host, leaving, coming = newcomers(3)
    outcomes = set()
    for _ in range(100):
        game = a_game(host, leaving, max_players=2)
        left, joined = codes(
            at_once(partial(leave, leaving, game), partial(join, coming, game), chance=chance)
        )
        assert left == "ok"
        assert joined in {"ok", "game_full"}
        outcomes.add(joined)
        seats, listing = (2, "FULL") if joined == "ok" else (1, "OPEN")
        assert stored(game).player_count == seats
        assert str(stored(game).listing).startswith(listing)
        cancel(host, game)
    assert_sound(games=100)
    assert len(outcomes) == 2, "the two never met"


def test_a_lobby_that_fills_and_empties_at_once_still_shows_its_free_seat() -> None:
    """J-08."""
    chance = dice("free seat")
    host, leaving, coming = newcomers(3)
    for _ in range(30):
        game = a_game(host, leaving, max_players=3)
        answers = at_once(partial(leave, leaving, game), partial(join, coming, game), chance=chance)
        assert codes(answers) == ["ok", "ok"]
        assert stored(game).player_count == 2
        assert str(stored(game).listing).startswith("OPEN")
        cancel(host, game)
    assert_sound(games=30)


def test_a_lobby_that_its_host_cancels_takes_nobody_in_afterwards() -> None:
    """J-07, 100 rounds."""
    chance = dice("cancel")
    host, coming = newcomers(2)
    outcomes = set()
    for _ in range(100):
        game = a_game(host)
        cancelled, joined = codes(
            at_once(partial(cancel, host, game), partial(join, coming, game), chance=chance)
        )
        assert cancelled == "ok"
        assert joined in {"ok", "game_not_open"}
        outcomes.add(joined)
        assert stored(game).status == CANCELLED
        assert stored(game).player_count == (2 if joined == "ok" else 1)
    assert_sound(games=100)
    assert len(outcomes) == 2, "the two never met"


def test_a_lobby_is_inherited_or_cancelled_when_its_only_player_leaves() -> None:
    """J-07, 100 rounds: never a lobby without a host, never a seat in no game."""
    chance = dice("last one out")
    host, coming = newcomers(2)
    outcomes = set()
    for _ in range(100):
        game = a_game(host)
        left, joined = codes(
            at_once(partial(leave, host, game), partial(join, coming, game), chance=chance)
        )
        assert left == "ok"
        outcomes.add(joined)
        now = stored(game)
        if joined == "ok":
            assert (now.status, now.host, now.player_count) == (OPEN, coming.username, 1)
            leave(coming, game)
        else:
            assert (joined, now.status, now.player_count) == ("game_not_open", CANCELLED, 0)
    assert_sound(games=100)
    assert len(outcomes) == 2, "the two never met"


def _assert_left(outcomes: list[str]) -> None:
    """Both are told that he is out; the slower one by an error if he was out before it looked."""
    assert "ok" in outcomes
    assert set(outcomes) <= {"ok", "not_in_game"}
