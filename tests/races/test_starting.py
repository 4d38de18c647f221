"""The instant of the start: who is in, who is too late, and that there is only one."""

from functools import partial

import pytest

from matches.models import STARTED, Game
from tests.builders import a_game, stored
from tests.races.invariants import assert_sound
from tests.races.moves import join, leave, newcomers, start
from tests.races.threads import at_once, codes, dice, twice_at_once

pytestmark = pytest.mark.usefixtures("table")


def test_a_player_who_joins_at_the_start_is_in_the_game_or_told_that_he_is_not() -> None:
    """J-06, 200 rounds."""
    chance = dice("start")
    host, other, late = newcomers(3)
    outcomes = set()
    for _ in range(200):
        game = a_game(host, other)
        started, joined = codes(
            at_once(partial(start, host, game), partial(join, late, game), chance=chance)
        )
        assert started == "ok"
        assert joined in {"ok", "game_not_open"}
        outcomes.add(joined)
        _assert_plays(game, 3 if joined == "ok" else 2)
        leave(other, game)
        if joined == "ok":
            leave(late, game)
    assert_sound(games=200)
    assert len(outcomes) == 2, "the two never met"


def test_a_game_that_is_started_twice_at_once_starts_once() -> None:
    """L-05: both are told the same start."""
    host, other = newcomers(2)
    for _ in range(30):
        game = a_game(host, other)
        first, second = twice_at_once(start, host, game)
        assert isinstance(first, Game)
        assert isinstance(second, Game)
        assert first.started_at == second.started_at
        assert first.version == second.version == 3
        leave(other, game)
    assert_sound(games=30)


def test_a_lobby_that_starts_itself_when_full_starts_once_with_its_host() -> None:
    """L-05: the host's start against the automatic one of the last seat."""
    chance = dice("automatic")
    host, other, last = newcomers(3)
    outcomes = set()
    for _ in range(30):
        game = a_game(host, other, max_players=3, auto_start=True)
        started, joined = at_once(
            # The host's click is quicker than taking a last seat: it is let go later.
            partial(start, host, game),
            partial(join, last, game),
            chance=chance,
            within=0.02,
        )
        assert isinstance(started, Game)
        outcomes.update(codes([joined]))
        is_in = isinstance(joined, Game)
        _assert_plays(game, 3 if is_in else 2)
        # One change for the seat of `other`, one for the start; the last seat is part of that.
        assert stored(game).version == started.version == 3
        assert stored(game).started_at == started.started_at
        leave(other, game)
        if is_in:
            leave(last, game)
    assert_sound(games=30)
    assert outcomes == {"ok", "game_not_open"}, "the two never met"


def _assert_plays(game: Game, players: int) -> set[str]:
    """Check that the game runs with exactly so many players, all alive; return their names."""
    seen, roster = Game.with_roster(game.game_id, consistent=True)
    assert seen is not None
    assert seen.status == STARTED
    assert seen.alive_count == seen.player_count == len(roster) == players
    assert all(seat.is_alive for seat in roster)
    assert seen.started_at >= max(seat.joined_at for seat in roster)
    return {seat.username for seat in roster}
