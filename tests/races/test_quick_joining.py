"""Players who just want to play meet in one lobby."""

from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from matches.models import Game
from matches.services import find
from tests.builders import MAP, APlayer, a_game
from tests.races.invariants import assert_sound
from tests.races.moves import cancel, newcomers
from tests.races.threads import at_once, twice_at_once

pytestmark = pytest.mark.usefixtures("table")

Seated = tuple[Game, bool]


@pytest.mark.parametrize("game_map", [MAP, None], ids=["one map", "any map"])
def test_two_quick_joins_at_once_meet_in_one_new_game(game_map: str | None) -> None:
    players = {player.username: player for player in newcomers(2)}
    for _ in range(20):
        answers = at_once(*[partial(_quick_join, player, game_map) for player in players.values()])
        (game_id,) = _games(answers)
        assert sorted(_is_new(answers)) == [False, True]
        _cancel(game_id, players)
    assert_sound(games=20)


def test_thirty_quick_joins_at_once_meet_in_one_new_game() -> None:
    players = {player.username: player for player in newcomers(30)}
    for _ in range(3):
        answers = at_once(*[partial(_quick_join, player, MAP) for player in players.values()])
        (game_id,) = _games(answers)
        assert Counter(_is_new(answers)) == {True: 1, False: 29}
        _cancel(game_id, players)
    assert_sound(games=3)


def test_two_quick_joins_at_the_turn_of_a_minute_meet_in_one_new_game() -> None:
    """Any map will do, and which one is made changes every minute."""
    players = {player.username: player for player in newcomers(2)}
    one, other = players.values()
    turn = timezone.now().replace(second=0, microsecond=0)
    for _ in range(20):
        answers = at_once(
            partial(_quick_join, one, None, turn - timedelta(milliseconds=1)),
            partial(_quick_join, other, None, turn),
        )
        (game_id,) = _games(answers)
        _cancel(game_id, players)
    assert_sound(games=20)


def test_a_quick_join_to_any_map_meets_the_one_that_named_its_map() -> None:
    """Either may be the one who makes the lobby."""
    players = {player.username: player for player in newcomers(2)}
    any_map, one_map = players.values()
    minute = timezone.now()
    while find._map_of_the_minute(minute) != MAP:
        minute += timedelta(minutes=1)
    for _ in range(20):
        answers = at_once(
            partial(_quick_join, any_map, None, minute), partial(_quick_join, one_map, MAP, minute)
        )
        (game_id,) = _games(answers)
        _cancel(game_id, players)
    assert_sound(games=20)


def test_a_quick_join_that_is_sent_twice_at_once_takes_one_seat() -> None:
    """J-03."""
    (player,) = newcomers(1)
    for _ in range(20):
        answers = twice_at_once(_quick_join, player, MAP)
        (game_id,) = _games(answers)
        _cancel(game_id, {player.username: player})
    assert_sound(games=20)


def test_quick_joins_fill_a_lobby_to_its_last_seat_and_then_the_next() -> None:
    host, *others = newcomers(13)
    players = {player.username: player for player in (host, *others)}
    for _ in range(5):
        first = a_game(host, max_players=5)
        answers = at_once(*[partial(_quick_join, player, MAP) for player in others])
        games = _games(answers)
        assert sorted(games.values()) == [4, 8]
        assert games[first.game_id] == 4
        for game_id in games:
            _cancel(game_id, players)
    assert_sound(games=10)


def _quick_join(player: APlayer, game_map: str | None, now: datetime | None = None) -> Seated:
    return find.quick_join(player.identity, game_map, now=now or timezone.now())


def _games(answers: list[Any]) -> Counter[str]:
    """Return the games they were seated in, and how many in each."""
    for answer in answers:
        assert isinstance(answer, tuple), answer
    return Counter(str(game.game_id) for game, _ in answers)


def _is_new(answers: list[Any]) -> list[bool]:
    return [is_new for _, is_new in answers]


def _cancel(game_id: str, players: dict[str, APlayer]) -> None:
    game = Game.by_id(game_id, consistent=True)
    assert game is not None
    cancel(players[game.host], game)
