"""The engine goes away and comes back with its data: errors say so, and nothing is done twice."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ConnectionClosedError

from gameserver.models import Item
from gameserver.schema import create_table
from matches.models import CANCELLED, OPEN, STARTED, Game
from settings_singleton.cache import flags
from tests.builders import MAP, APlayer, a_game, stored
from tests.races.clients import Answer, Client, at_once
from tests.races.conftest import environment_on_table
from tests.races.invariants import assert_sound
from tests.races.moves import cancel, join, leave, newcomers, start
from tests.races.threads import dice
from tests.servers import running_server
from tests.settings_singleton.processes import Table

RESTARTS, PAIRS = 20, 6
RECOVERY_SECONDS = 10.0


@pytest.fixture
def fragile_engine(tmp_path: Path, point_models_at: Callable[[str], None]) -> Iterator[Table]:
    """An engine of the test's own, with an empty table, which the models here use."""
    engine = Table(tmp_path)
    try:
        engine.start()
        point_models_at(engine.url)
        create_table()
        yield engine
    finally:
        engine.close()


@dataclass
class Tally:
    """What the clients of one server were told."""

    statuses: Counter[int] = field(default_factory=Counter)
    last_success: float = 0.0

    def count(self, answer: Answer) -> None:
        self.statuses[answer.status] += 1
        if answer.is_success:
            self.last_success = time.monotonic()


async def test_an_engine_that_restarts_under_load_does_nothing_twice(
    fragile_engine: Table, tmp_path: Path
) -> None:
    """S-03: 20 restarts at random moments; errors are 503, and soon all is well again."""
    chance = dice("restarts")
    players = newcomers(2 * PAIRS)
    pairs = list(zip(players[:PAIRS], players[PAIRS:], strict=True))
    tally, stop = Tally(), asyncio.Event()
    with running_server(environment_on_table(tmp_path / "data")) as server:

        async def restart() -> int:
            try:
                for _ in range(RESTARTS):
                    fragile_engine.kill()
                    await asyncio.sleep(chance.choice([0, chance.uniform(0, 0.8)]))
                    await asyncio.to_thread(fragile_engine.start)
                    back = time.monotonic()
                    while tally.last_success < back:
                        assert time.monotonic() < back + RECOVERY_SECONDS
                        await asyncio.sleep(chance.uniform(0.02, 0.3))
                return RESTARTS
            finally:
                stop.set()

        players_at_it = [_play(server.port, tally, stop, *pair) for pair in pairs]
        *played, _ = await at_once([*players_at_it, restart()])
    assert set(tally.statuses) == {200, 201, 503}
    assert_sound(games=sum(played))
    for (host, other), games in zip(pairs, played, strict=True):
        assert (host.user.games_played, host.user.wins, host.user.kills) == (games, games, games)
        assert (other.user.games_played, other.user.deaths) == (games, games)
        assert host.user.coins == games * flags.win_reward_coins


async def _play(port: int, tally: Tally, stop: asyncio.Event, host: APlayer, other: APlayer) -> int:
    """Play whole games until told to stop, repeating what met an outage; return how many."""
    games = 0
    async with (
        Client(port, host.tokens.access_token) as hosting,
        Client(port, other.tokens.access_token) as joining,
    ):
        while not stop.is_set():
            # A key belongs to one request.
            key = f"{host.username} {games}"
            created = await _insist(
                tally, partial(hosting.post, "/api/games", {"map": MAP}, key=f"{key} created")
            )
            path = f"/api/games/{created.body['game_id']}"
            await _insist(tally, partial(joining.post, f"{path}/join"))
            await _insist(tally, partial(hosting.post, f"{path}/start"))
            shot = partial(
                hosting.post, f"{path}/eliminations", {"victim": other.username}, key=f"{key} shot"
            )
            await _insist(tally, shot)
            games += 1
    return games


async def _insist(tally: Tally, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Repeat what met an outage until it is done."""
    while True:
        answer = await ask()
        tally.count(answer)
        if answer.is_success:
            return answer
        assert (answer.status, answer.code) == (503, "try_again"), answer


@pytest.mark.parametrize("move", ["create", "join", "leave", "start", "cancel"])
def test_a_move_whose_answer_was_lost_with_the_engines_memory_is_true(
    fragile_engine: Table, move: str
) -> None:
    """S-03, L-09: the repeated attempt meets its own effect, and no token tells it so."""
    host, other = newcomers(2)
    game = (
        None if move == "create" else a_game(host, *([other] if move in {"leave", "start"} else []))
    )
    lose = _lose_next_answer(fragile_engine)
    moves: dict[str, Callable[[], Game]] = {
        "create": lambda: a_game(host),
        "join": lambda: join(other, _known(game)),
        "leave": lambda: leave(other, _known(game)),
        "start": lambda: start(host, _known(game)),
        "cancel": lambda: cancel(host, _known(game)),
    }
    told = moves[move]()
    assert lose == ["lost"]
    expected = {
        "create": (OPEN, 1, 1),
        "join": (OPEN, 2, 2),
        "leave": (OPEN, 1, 3),
        "start": (STARTED, 2, 3),
        "cancel": (CANCELLED, 1, 2),
    }[move]
    for seen in (told, stored(told)):
        assert (seen.status, seen.player_count, seen.version) == expected
    assert_sound(games=1)


def _known(game: Game | None) -> Game:
    assert game is not None
    return game


def _lose_next_answer(engine: Table) -> list[str]:
    """Let the next write be done, and the engine restart before it answers."""
    client = Item._get_connection().connection.client
    lost: list[str] = []

    def handler(request: AWSPreparedRequest, **_: Any) -> None:
        target = str(request.headers["X-Amz-Target"])
        if lost or not ("Write" in target or "Update" in target):
            return
        lost.append("lost")
        client._endpoint.http_session.send(request)
        engine.kill()
        engine.start()
        raise ConnectionClosedError(endpoint_url=request.url)

    client.meta.events.register("before-send.dynamodb.*", handler)
    return lost
