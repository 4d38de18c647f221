"""Many players, one game: never a seat too many, never one player in two."""

from functools import partial

import pytest

from matches.models import Game
from tests.builders import a_game
from tests.races.invariants import assert_sound, seated_in
from tests.races.moves import cancel, join, newcomers
from tests.races.threads import at_once, codes, twice_at_once

pytestmark = pytest.mark.usefixtures("table")


@pytest.mark.parametrize("max_players", [2, 50], ids=["last seat", "any seat"])
def test_a_player_who_joins_twice_at_once_takes_one_seat(max_players: int) -> None:
    """J-03, 100 rounds; both devices are told that they are in."""
    host, player = newcomers(2)
    for _ in range(50):
        game = a_game(host, max_players=max_players)
        assert codes(twice_at_once(join, player, game)) == ["ok", "ok"]
        assert seated_in(game) == {host.username, player.username}
        cancel(host, game)
    assert_sound(games=50)


def test_a_player_who_joins_two_games_at_once_sits_in_one() -> None:
    """J-10: one account holds one seat, whichever of its devices was faster."""
    one_host, other_host, player = newcomers(3)
    for _ in range(25):
        one, other = a_game(one_host), a_game(other_host)
        answers = at_once(partial(join, player, one), partial(join, player, other))
        assert sorted(codes(answers)) == ["already_in_game", "ok"]
        assert (player.username in seated_in(one)) != (player.username in seated_in(other))
        cancel(one_host, one)
        cancel(other_host, other)
    assert_sound(games=50)


def test_a_host_who_creates_twice_at_once_hosts_one_game() -> None:
    """J-10: the second lobby would leave the first without its host."""
    (host,) = newcomers(1)
    for _ in range(25):
        answers = twice_at_once(a_game, host)
        assert sorted(codes(answers)) == ["already_in_game", "ok"]
        cancel(host, next(answer for answer in answers if isinstance(answer, Game)))
    assert_sound(games=25)
