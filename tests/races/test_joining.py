"""Many players, one game: never a seat too many, never one player in two."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial

import pytest

from matches.models import Game
from tests.builders import a_game
from tests.races.clients import Client, at_once
from tests.races.invariants import assert_sound
from tests.races.moves import cancel, join, newcomers
from tests.races.threads import at_once as threads_at_once
from tests.races.threads import codes, twice_at_once
from tests.servers import Server

SEATS, CLIENTS = 50, 80


async def test_eighty_clients_on_fifty_seats_fill_them_exactly(server_on_table: Server) -> None:
    """J-01, 20 rounds."""
    await _race_for_seats([server_on_table], rounds=20)


async def test_two_server_processes_fill_fifty_seats_exactly(
    two_servers: tuple[Server, Server],
) -> None:
    """J-01."""
    await _race_for_seats(two_servers, rounds=8)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("max_players", [2, 50], ids=["last seat", "any seat"])
def test_a_player_who_joins_twice_at_once_takes_one_seat(max_players: int) -> None:
    """J-03, 100 rounds; both devices are told that they are in."""
    host, player = newcomers(2)
    for _ in range(50):
        game = a_game(host, max_players=max_players)
        assert codes(twice_at_once(join, player, game)) == ["ok", "ok"]
        assert _seated(game) == {host.username, player.username}
        cancel(host, game)
    assert_sound(games=50)


async def test_two_devices_of_one_player_take_one_seat(two_servers: tuple[Server, Server]) -> None:
    """J-03, over HTTP, through two processes."""
    host, player = newcomers(2)
    first, second = two_servers
    token = player.tokens.access_token
    async with Client(first.port, token) as one, Client(second.port, token) as two:
        for _ in range(20):
            game = a_game(host)
            answers = await at_once(
                client.post(f"/api/games/{game.game_id}/join") for client in (one, two)
            )
            assert [answer.status for answer in answers] == [200, 200]
            assert _seated(game) == {host.username, player.username}
            cancel(host, game)
    assert_sound(games=20)


@pytest.mark.usefixtures("table")
def test_a_player_who_joins_two_games_at_once_sits_in_one() -> None:
    """J-10: one account holds one seat, whichever of its devices was faster."""
    one_host, other_host, player = newcomers(3)
    for _ in range(40):
        one, other = a_game(one_host), a_game(other_host)
        answers = threads_at_once(partial(join, player, one), partial(join, player, other))
        assert sorted(codes(answers)) == ["already_in_game", "ok"]
        assert (player.username in _seated(one)) != (player.username in _seated(other))
        cancel(one_host, one)
        cancel(other_host, other)
    assert_sound(games=80)


@pytest.mark.usefixtures("table")
def test_a_host_who_creates_twice_at_once_hosts_one_game() -> None:
    """J-10: the second lobby would leave the first without its host."""
    (host,) = newcomers(1)
    for _ in range(40):
        answers = twice_at_once(a_game, host)
        assert sorted(codes(answers)) == ["already_in_game", "ok"]
        cancel(host, next(answer for answer in answers if isinstance(answer, Game)))
    assert_sound(games=40)


async def _race_for_seats(servers: Sequence[Server], *, rounds: int) -> None:
    # The host has a seat already, so he is one of the 80.
    host, *others = newcomers(CLIENTS)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                Client(servers[number % len(servers)].port, player.tokens.access_token)
            )
            for number, player in enumerate(others)
        ]
        for _ in range(rounds):
            # The same accounts in every round: each also replaces its pointer to a cancelled game.
            game = a_game(host, max_players=SEATS)
            answers = await at_once(c.post(f"/api/games/{game.game_id}/join") for c in clients)
            assert Counter((answer.status, answer.code) for answer in answers) == {
                (200, None): SEATS - 1,
                (409, "game_full"): CLIENTS - SEATS,
            }
            assert len(_seated(game)) == SEATS
            cancel(host, game)
    assert_sound(games=rounds)


def _seated(game: Game) -> set[str]:
    """Return who sits there; the game's own count must be theirs."""
    seen, roster = Game.with_roster(game.game_id, consistent=True)
    assert seen is not None
    assert seen.player_count == len(roster)
    return {seat.username for seat in roster}
