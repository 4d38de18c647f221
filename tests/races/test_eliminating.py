"""Everybody fires at once: each death counts once, and there is one winner with one reward."""

from collections import Counter
from functools import partial
from itertools import permutations

import pytest

from gameserver import capacity, retries
from matches.models import FINISHED, OPEN, STARTED, Game
from matches.rules import Elimination
from settings_singleton.cache import flags
from tests.builders import APlayer, a_game, stored
from tests.races.invariants import assert_sound
from tests.races.moves import eliminate, leave, newcomers
from tests.races.threads import at_once, codes, dice, twice_at_once

PATTERNS = {"read game and players", "eliminate", "eliminate, last", "leave lobby"}

pytestmark = pytest.mark.usefixtures("table")


def test_an_elimination_that_is_reported_twice_at_once_counts_once() -> None:
    """P-01, 30 rounds."""
    killer, victim, other = newcomers(3)
    for rounds in range(1, 31):
        game = a_game(killer, victim, other, status=STARTED)
        assert sorted(codes(twice_at_once(eliminate, killer, victim, game))) == ["not_alive", "ok"]
        assert stored(game).alive_count == 2
        leave(other, game)
        assert killer.user.kills == rounds
    assert_sound(games=30)


def test_two_killers_of_one_victim_do_not_both_score() -> None:
    """P-01."""
    one, other, victim, last = newcomers(4)
    for rounds in range(1, 21):
        game = a_game(one, other, victim, last, status=STARTED)
        answers = at_once(
            partial(eliminate, one, victim, game), partial(eliminate, other, victim, game)
        )
        assert sorted(codes(answers)) == ["not_alive", "ok"]
        for player in (one, other):
            leave(player, game)
        assert one.user.kills + other.user.kills == rounds
    assert_sound(games=20)


def test_two_survivors_who_eliminate_each_other_at_once_leave_one_winner() -> None:
    """P-01, 50 rounds: one placement 2, and one reward."""
    one, other = newcomers(2)
    for rounds in range(1, 51):
        game = a_game(one, other, status=STARTED)
        answers = at_once(
            partial(eliminate, one, other, game), partial(eliminate, other, one, game)
        )
        # The loser's shot comes after the end.
        assert sorted(codes(answers)) == ["game_not_open", "ok"]
        (won,) = [answer for answer in answers if isinstance(answer, Elimination)]
        winner = (one, other)[answers.index(won)]
        assert (won.placement, won.alive_count, won.winner) == (2, 1, winner.username)
        assert _placements(game)[winner.username] == 1
        assert _rewards([one, other]) == rounds
    assert_sound(games=50)


def test_three_who_eliminate_each_other_in_a_circle_leave_one_winner() -> None:
    """P-01: whoever is out fires no more, whatever he aimed at."""
    players = newcomers(3)
    for _ in range(20):
        game = a_game(*players, status=STARTED)
        circle = zip(players, [*players[1:], players[0]], strict=True)
        answers = at_once(*[partial(eliminate, one, other, game) for one, other in circle])
        assert set(codes(answers)) <= {"ok", "not_alive", "game_not_open"}
        assert codes(answers).count("ok") in {1, 2}
        _end(game, players)
    assert_sound(games=20)
    assert _rewards(players) == 20


def test_the_last_two_leave_at_once_and_one_of_them_wins() -> None:
    """P-01, J-05: who is out last cannot leave any more."""
    one, other = newcomers(2)
    for rounds in range(1, 31):
        game = a_game(one, other, status=STARTED)
        answers = at_once(partial(leave, one, game), partial(leave, other, game))
        assert sorted(codes(answers)) == ["game_not_open", "ok"]
        assert _rewards([one, other]) == rounds
    assert_sound(games=30)


def test_twenty_finishing_shots_at_once_end_a_fifty_player_game_once() -> None:
    """P-01: one result per player, and the totals are their sum."""
    players = newcomers(50)
    game = a_game(*players, status=STARTED)
    one, other, *fallen = players
    for player in fallen:
        leave(player, game)
    shots = [partial(eliminate, one, other, game), partial(eliminate, other, one, game)] * 10
    assert Counter(codes(at_once(*shots))) == {"ok": 1, "game_not_open": 19}
    assert sorted(_placements(game).values()) == [*range(1, 51)]
    assert sum(int(player.user.games_played) for player in players) == 50
    assert sum(int(player.user.wins) for player in players) == 1
    assert sum(int(player.user.kills) for player in players) == 1
    assert _rewards(players) == 1
    assert_sound(games=1)


def test_a_game_in_which_everybody_fires_all_the_time_ends_with_one_winner() -> None:
    """P-01: 24 players, each shooting at somebody at the same instant, until one is left."""
    chance = dice("everybody")
    players = newcomers(24)
    game = a_game(*players, status=STARTED)
    alive = {player.username: player for player in players}
    while stored(game).status == STARTED:
        shots = [
            partial(
                eliminate, alive[name], alive[chance.choice(sorted(alive.keys() - {name}))], game
            )
            for name in alive
        ]
        outcomes = Counter(codes(at_once(*shots)))
        # Contention that outlasts the retries is said to be that.
        assert set(outcomes) <= {"ok", "not_alive", "game_not_open", "try_again"}
        out = _placements(game)
        alive = {name: player for name, player in alive.items() if name not in out}
    assert sorted(_placements(game).values()) == [*range(1, 25)]
    assert _rewards(players) == 1
    assert_sound(games=1)


@pytest.mark.parametrize("status", [STARTED, OPEN])
def test_all_who_go_at_once_in_one_process_read_and_write_once_each(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take turns; else the 49 would beat each other some three hundred times."""
    monkeypatch.setattr(retries, "TURN_SECONDS", 60.0)
    winner, *others = newcomers(50)
    game = a_game(winner, *others, status=status)
    before = _requests()
    if status == STARTED:
        answers = at_once(*[partial(eliminate, winner, other, game) for other in others])
        assert codes(answers) == ["ok"] * 49
    else:
        assert codes(at_once(*[partial(leave, other, game) for other in others])) == ["ok"] * 49
    spent = _requests() - before
    assert spent["Query"] == spent["TransactWriteItems"] == 49
    assert_sound(games=1)


def _requests() -> Counter[str]:
    """Count what this process has asked about games and their players, by operation."""
    counted: Counter[str] = Counter()
    for sample in next(iter(capacity.REQUESTS.collect())).samples:
        if sample.name.endswith("_total") and sample.labels["pattern"] in PATTERNS:
            counted[sample.labels["operation"]] += int(sample.value)
    return counted


def _end(game: Game, players: list[APlayer]) -> None:
    """Let the survivors, if there are several, eliminate each other."""
    for killer, victim in permutations(players, 2):
        out = _placements(game)
        if stored(game).status == STARTED and not {killer.username, victim.username} & out.keys():
            eliminate(killer, victim, game)
    assert stored(game).status == FINISHED


def _placements(game: Game) -> dict[str, int]:
    _, roster = Game.with_roster(game.game_id, consistent=True)
    return {seat.username: int(seat.placement) for seat in roster if seat.placement is not None}


def _rewards(players: list[APlayer]) -> float:
    """Return how many rewards the players have got together."""
    return sum(int(player.user.coins) for player in players) / flags.win_reward_coins
