"""One player's devices race over HTTP and WebSocket, in two processes that hear each other."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any

import pytest
from django.utils import timezone

from gameserver.engine import EmbeddedEngine
from matches.models import FINISHED, STARTED, Game
from settings_singleton.services import create_first_item
from tests.builders import APlayer, a_game, stored
from tests.conftest import empty_table
from tests.e2e.conftest import metric, set_flags
from tests.races.clients import Client, Device, Leaving, at_once
from tests.races.conftest import environment_on_table
from tests.races.invariants import assert_sound, seated_in
from tests.races.moves import leave, newcomers
from tests.races.threads import dice
from tests.servers import Server, running_server

Servers = tuple[Server, Server]

# Each of two joins is sent up to so much late: about what separates the two ways in.
HEAD_START_SECONDS = 0.006
DEADLINE_SECONDS = 30.0
# One connection watches no more.
LOBBIES = 20
GAMES, LEAVING_EACH = 7, 3


@pytest.fixture(scope="module")
def servers(
    engine: EmbeddedEngine, redis_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    """Two processes on one table and one Redis; who drops loses the seat at the next look."""
    first, second = (
        environment_on_table(tmp_path_factory.mktemp(name)) | {"REDIS_URL": redis_server}
        for name in ("first", "second")
    )
    with empty_table():
        create_first_item(now=timezone.now())
        set_flags(reconnect_grace_seconds=0)
        with running_server(first) as one, running_server(second) as other:
            yield one, other


async def test_a_join_over_http_and_socket_at_once_takes_one_seat(servers: Servers) -> None:
    """J-03, 100 rounds: half of them in one process, half in two."""
    chance = dice("two ways in")
    host, player = newcomers(2, "ways")
    token = player.tokens.access_token
    game = a_game(host)
    before = _joins(servers)
    async with (
        Device(servers[0].port, token) as device,
        Client(servers[0].port, token) as near,
        Client(servers[1].port, token) as far,
    ):
        for client in (near, far) * 50:
            answers = await at_once(
                [_join_over_http(client, game, chance), _join_over_socket(device, game, chance)]
            )
            _assert_seated_once(host, player, game, answers)
            game = leave(player, game)
    assert_sound()
    first, second = (now - then for now, then in zip(_joins(servers), before, strict=True))
    assert first + second == 100
    assert second, "the socket was always the faster"


async def test_a_join_over_two_sockets_at_once_takes_one_seat(servers: Servers) -> None:
    """J-03, 50 rounds, each socket in a process of its own."""
    chance = dice("two sockets")
    host, player = newcomers(2, "sockets")
    token = player.tokens.access_token
    game = a_game(host)
    before = _joins(servers)
    async with Device(servers[0].port, token) as one, Device(servers[1].port, token) as other:
        for _ in range(50):
            answers = await at_once(_join_over_socket(each, game, chance) for each in (one, other))
            _assert_seated_once(host, player, game, answers)
            game = leave(player, game)
    assert_sound()
    first, second = (now - then for now, then in zip(_joins(servers), before, strict=True))
    assert first + second == 50
    assert first, "the second was always the faster"
    assert second, "the first was always the faster"


async def test_who_leaves_a_lobby_by_every_way_at_once_frees_one_seat(servers: Servers) -> None:
    """J-05, 80 leaves: the counter falls by one, and watchers hear of it once."""
    ways = (True, False) * 2
    dropped_before = _freed_by_dropping(servers)
    hosts, players = newcomers(LOBBIES, "hosts"), newcomers(LOBBIES, "leaves")
    games = [a_game(host) for host in hosts]
    async with _watchers(servers, games) as watchers:
        for says_so in ways:
            seats = list(zip(players, games, strict=True))
            refusals = await _leave_by_every_way(servers, seats, watchers, says_so=says_so)
            assert refusals <= {None, "not_in_game"}
    for game, host in zip(games, hosts, strict=True):
        assert seated_in(game) == {host.username}
        assert stored(game).version == 1 + 2 * len(ways)
        for watcher in watchers:
            told = Counter(event["type"] for event in watcher.events(game.game_id))
            assert told == {"player_joined": len(ways), "player_left": len(ways)}
    assert_sound()
    dropped = _freed_by_dropping(servers) - dropped_before
    assert 0 < dropped < 2 * LOBBIES, "the lost connections never met the leaves over HTTP"


@pytest.mark.parametrize("says_so", [True, False])
async def test_who_leaves_a_running_game_by_every_way_at_once_is_eliminated_once(
    servers: Servers, says_so: bool
) -> None:
    """J-05: three of four go at once, so each has a place of his own, and the last one wins."""
    rosters = [newcomers(1 + LEAVING_EACH, f"run{number}-{says_so:d}") for number in range(GAMES)]
    games = [a_game(*roster, status=STARTED) for roster in rosters]
    async with _watchers(servers, games) as watchers:
        seats = [
            (player, game)
            for (_, *leaving), game in zip(rosters, games, strict=True)
            for player in leaving
        ]
        refusals = await _leave_by_every_way(servers, seats, watchers, says_so=says_so)
        assert refusals <= {None, "game_not_open"}
    for before, (winner, *_) in zip(games, rosters, strict=True):
        game, roster = Game.with_roster(before.game_id, consistent=True)
        assert game is not None
        assert (game.status, game.winner, game.alive_count) == (FINISHED, winner.username, 1)
        assert game.version == before.version + LEAVING_EACH
        name_at = {seat.placement: seat.username for seat in roster}
        assert name_at.keys() == {1, 2, 3, 4}
        assert name_at[1] == winner.username
        for watcher in watchers:
            *out, end = watcher.events(game.game_id)
            assert [(one["type"], one["placement"], one["username"]) for one in out] == [
                ("player_eliminated", place, name_at[place]) for place in (4, 3, 2)
            ]
            assert end == {"type": "game_finished", "winner": winner.username}
    assert_sound()


async def _leave_by_every_way(
    servers: Servers,
    seats: Sequence[tuple[APlayer, Game]],
    watchers: Sequence[Device],
    *,
    says_so: bool,
) -> set[str | None]:
    """Let players leave over the socket, by its end, and twice over HTTP, at once.

    Who does not say so over the socket loses the seat when the server looks after those who
    dropped, one after the other: he asks over HTTP when the one before him is seen to be out.
    Returns why repeats were refused.
    """
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_SECONDS):
        leaving = await at_once(
            stack.enter_async_context(Leaving(servers[0].port, servers[number % 2].port, *seat))
            for number, seat in enumerate(seats)
        )
        await _until_told(watchers, seats)
        drops = [asyncio.create_task(each.drop(says_so=says_so)) for each in leaving]
        repeats = []
        for number, each in enumerate(leaving):
            while not says_so and not leaving[max(0, number - 1)].is_out(watchers[0]):
                await watchers[0].receive()
            repeats.append(asyncio.create_task(each.leave_twice()))
        refusals = await at_once(repeats)
        await at_once(drops)
        seats_held = partial(asyncio.to_thread, metric, servers[0], "socket_seats_held")
        while await seats_held():  # noqa: ASYNC110 (a metric, which sets no event)
            await asyncio.sleep(0.02)
        await _until_told(watchers, seats)
    return set(refusals)


@asynccontextmanager
async def _watchers(servers: Servers, games: Sequence[Game]) -> AsyncIterator[list[Device]]:
    """Let a spectator in each process watch all games."""
    (spectator,) = newcomers(1, f"watch-{games[0].game_id[:8]}")
    async with AsyncExitStack() as stack:
        watchers = [
            await stack.enter_async_context(Device(server.port, spectator.tokens.access_token))
            for server in servers
        ]
        for watcher in watchers:
            for game in games:
                await watcher.watch(game.game_id)
        yield watchers


async def _until_told(watchers: Iterable[Device], seats: Iterable[tuple[APlayer, Game]]) -> None:
    for _, game in seats:
        version = int(stored(game).version)
        for watcher in watchers:
            await watcher.until_version(game.game_id, version)


async def _join_over_http(client: Client, game: Game, chance: Random) -> dict[str, Any]:
    await asyncio.sleep(chance.uniform(0, HEAD_START_SECONDS))
    answer = await client.post(f"/api/games/{game.game_id}/join")
    assert answer.status == 200, answer
    return {name: value for name, value in answer.body.items() if name != "join_code"}


async def _join_over_socket(device: Device, game: Game, chance: Random) -> dict[str, Any]:
    await asyncio.sleep(chance.uniform(0, HEAD_START_SECONDS))
    answer = await device.ask("game.join", game_id=game.game_id)
    assert answer["type"] == "ok", answer
    shown: dict[str, Any] = answer["game"]
    return shown


def _assert_seated_once(
    host: APlayer, player: APlayer, before: Game, answers: Sequence[dict[str, Any]]
) -> None:
    """Both devices are told the same: the game as it is with one more player."""
    assert seated_in(before) == {host.username, player.username}
    one, other = answers
    assert one == other
    assert (one["game_id"], one["player_count"]) == (before.game_id, 2)
    assert stored(before).version == one["version"] == before.version + 1


def _joins(servers: Servers) -> list[float]:
    """Return how many seats each process has given away."""
    return [metric(server, "players_joined_total") for server in servers]


def _freed_by_dropping(servers: Servers) -> int:
    """Return how many seats were freed because their players had dropped."""
    return sum(server.output.count('"event": "seat_freed"') for server in servers)
