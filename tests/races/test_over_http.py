"""Clients race over HTTP, through one server process or two on the same table."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from django.utils import timezone

from matches.models import STARTED
from matches.services import operators
from tests.builders import APlayer, a_game, stored
from tests.races.clients import Answer, Client, at_once
from tests.races.invariants import assert_sound, seated_in
from tests.races.moves import cancel, leave, newcomers
from tests.races.threads import dice
from tests.servers import Server

SEATS, CLIENTS = 50, 80
# How long a crowd takes to arrive, where it does not all at once.
ARRIVAL_SECONDS = 0.5

Servers = tuple[Server, Server]


@pytest.mark.parametrize(("processes", "rounds"), [(1, 8), (2, 8)])
async def test_eighty_clients_on_fifty_seats_fill_them_exactly(
    two_servers: Servers, processes: int, rounds: int
) -> None:
    """J-01: 49 beside the host are seated, the others told that it is full, nobody an error."""
    host, *others = newcomers(CLIENTS, f"joins-{processes}")
    async with _clients(two_servers[:processes], others) as clients:
        for _ in range(rounds):
            # The same accounts in every round: each also replaces its pointer to a cancelled game.
            game = a_game(host, max_players=SEATS)
            answers = await at_once(c.post(f"/api/games/{game.game_id}/join") for c in clients)
            assert Counter((answer.status, answer.code) for answer in answers) == {
                (200, None): SEATS - 1,
                (409, "game_full"): CLIENTS - SEATS,
            }
            assert len(seated_in(game)) == SEATS
            cancel(host, game)
    assert_sound()


async def test_two_devices_of_one_player_take_one_seat(two_servers: Servers) -> None:
    """J-03."""
    host, player = newcomers(2, "device")
    async with _clients(two_servers, [player, player]) as devices:
        for _ in range(20):
            game = a_game(host)
            answers = await at_once(d.post(f"/api/games/{game.game_id}/join") for d in devices)
            assert [answer.status for answer in answers] == [200, 200]
            assert seated_in(game) == {host.username, player.username}
            cancel(host, game)
    assert_sound()


async def test_fifty_joins_across_the_start_are_all_in_or_all_told(two_servers: Servers) -> None:
    """L-06: the start's roster is one snapshot."""
    chance = dice("fifty")
    players = newcomers(50, "start")
    outcomes: Counter[int] = Counter()
    async with _clients(two_servers, players) as (host, _, *late):
        for _ in range(4):
            game = a_game(*players[:2])
            path = f"/api/games/{game.game_id}"
            started, *answers = await at_once(
                [
                    _arrive(host, f"{path}/start", ARRIVAL_SECONDS / 2),
                    *(
                        _arrive(client, f"{path}/join", chance.uniform(0, ARRIVAL_SECONDS))
                        for client in late
                    ),
                ]
            )
            assert started.status == 200
            counts = Counter((answer.status, answer.code) for answer in answers)
            assert set(counts) <= {(200, None), (409, "game_not_open")}
            joined = counts[200, None]
            outcomes[joined] += 1
            seated = seated_in(game)
            assert stored(game).status == STARTED
            assert stored(game).alive_count == len(seated) == 2 + joined
            operators.end_without_winner(game.game_id, now=timezone.now())
    assert_sound()
    assert set(outcomes) - {0, len(late)}, "the start never fell between two joins"


async def test_a_double_click_on_start_starts_once(two_servers: Servers) -> None:
    """L-05: one of the two answers is lost on the way, and asked for again."""
    host, other = newcomers(2, "click")
    async with _clients(two_servers, [host, host]) as (one, two):
        for _ in range(20):
            game = a_game(host, other)
            path = f"/api/games/{game.game_id}/start"
            await one.send("POST", path)
            answer = await two.post(path)
            await one.cut()
            again = await one.post(path)
            assert (answer.status, again.status) == (200, 200)
            assert answer.body == again.body
            assert answer.body["version"] == 3
            leave(other, game)
    assert_sound()


async def test_thirty_quick_joins_meet_in_one_new_game(two_servers: Servers) -> None:
    players = newcomers(30, "quick")
    async with _clients(two_servers, players) as clients:
        for _ in range(3):
            answers = await at_once(client.post("/api/games/quick-join") for client in clients)
            assert Counter(answer.status for answer in answers) == {201: 1, 200: 29}
            (game_id,) = {answer.body["game_id"] for answer in answers}
            game = stored(game_id)
            assert seated_in(game) == {player.username for player in players}
            cancel(next(player for player in players if player.username == game.host), game)
    assert_sound()


async def _arrive(client: Client, path: str, after_seconds: float) -> Answer:
    await asyncio.sleep(after_seconds)
    return await client.post(path)


@asynccontextmanager
async def _clients(
    servers: Sequence[Server], players: Iterable[APlayer]
) -> AsyncIterator[list[Client]]:
    """Give each player a client, spread evenly over the servers."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                Client(servers[number % len(servers)].port, player.tokens.access_token)
            )
            for number, player in enumerate(players)
        ]
