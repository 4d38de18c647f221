"""The server and its engine are killed in the middle of the work; what was promised is there."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from gameserver.engine import running_url
from matches.models import FINISHED, Game, UserGameMapping
from tests.builders import APlayer, a_game
from tests.races.clients import LOST, Answer, Client, at_once
from tests.races.moves import newcomers, start
from tests.races.threads import dice
from tests.servers import ROOT, Server, server_environment

GAMES, SEATS, CRASHES = 5, 50, 2


@dataclass(frozen=True)
class Wish:
    """A request that is repeated until it is answered; `about` is whom it seats or takes out."""

    by: APlayer
    game_id: str
    move: str
    about: str
    body: dict[str, Any] | None = None


class Home:
    """A server on one data folder, started again after each crash; the models here follow it."""

    def __init__(self, data_dir: Path, point_models_at: Callable[[str], None]) -> None:
        # Our key, so that tokens made here are good there.
        self.environment = server_environment(data_dir, SECRET_KEY=settings.SECRET_KEY)
        self._point_models_at = point_models_at
        self._servers: list[Server] = []

    @property
    def server(self) -> Server:
        return self._servers[-1]

    def launch(self) -> None:
        self._servers.append(Server(self.environment))
        self.server.wait_until_ready()
        self._point_models_at(running_url(self.server.data_dir))

    def close(self) -> None:
        for server in self._servers:
            server.close()


@pytest.fixture
def home(tmp_path: Path, point_models_at: Callable[[str], None]) -> Iterator[Home]:
    home = Home(tmp_path / "data", point_models_at)
    try:
        home.launch()
        yield home
    finally:
        home.close()


async def test_a_killed_server_keeps_every_acknowledged_join_and_elimination(home: Home) -> None:
    """S-02: SIGKILL, 1 to 50 ms into the answers to 250 joins, then to 250 eliminations."""
    chance = dice("crash")
    players = await asyncio.to_thread(newcomers, GAMES * SEATS)
    hosts, others = players[:GAMES], players[GAMES:]
    games = [await asyncio.to_thread(a_game, host) for host in hosts]
    joins = [
        Wish(player, games[number % GAMES].game_id, "join", player.username)
        for number, player in enumerate(others)
    ]
    await _insist(home, joins, [chance.uniform(0.001, 0.05) for _ in range(CRASHES)])
    for host, game in zip(hosts, games, strict=True):
        await asyncio.to_thread(start, host, game)
    eliminations = [
        Wish(
            hosts[number % GAMES],
            games[number % GAMES].game_id,
            "eliminations",
            player.username,
            {"victim": player.username},
        )
        for number, player in enumerate(others)
    ]
    await _insist(home, eliminations, [chance.uniform(0.001, 0.05) for _ in range(CRASHES)])
    for host, game in zip(hosts, games, strict=True):
        seen, roster = await asyncio.to_thread(Game.with_roster, game.game_id, consistent=True)
        assert seen is not None
        assert (seen.status, seen.winner, len(roster)) == (FINISHED, host.username, SEATS)
    home.server.terminate()
    _assert_check_table_finds_nothing(home.environment)


async def _insist(home: Home, wishes: list[Wish], crashes: list[float]) -> None:
    """Send all wishes at once, kill the server among the answers, and so on until all are true."""
    answers: dict[str, Answer] = {}
    for delay in crashes:
        waiting = [wish for wish in wishes if wish.about not in answers]
        answers |= await _send(home.server, waiting, kill_after_seconds=delay)
        assert len(answers) < len(wishes), "all was answered before the crash"
        await asyncio.to_thread(home.server.kill)
        await asyncio.to_thread(home.launch)
        await asyncio.to_thread(_assert_done, wishes, answers)
    while waiting := [wish for wish in wishes if wish.about not in answers]:
        answers |= await _send(home.server, waiting)
    await asyncio.to_thread(_assert_done, wishes, answers)


async def _send(
    server: Server, wishes: list[Wish], kill_after_seconds: float | None = None
) -> dict[str, Answer]:
    """Return the answers that came, by whom they are about, without those that say try again."""
    answers: dict[str, Answer] = {}
    has_answered = asyncio.Event()

    async def send(client: Client, wish: Wish) -> None:
        try:
            path = f"/api/games/{wish.game_id}/{wish.move}"
            # The key lets the repeat of an elimination have its first answer.
            answer = await client.post(path, wish.body, key=wish.about)
        except LOST:
            return
        has_answered.set()
        if answer.code == "try_again":
            return
        assert answer.is_success, answer
        answers[wish.about] = answer

    async def kill(delay: float) -> None:
        await has_answered.wait()
        await asyncio.sleep(delay)
        server.kill()

    async with AsyncExitStack() as stack:
        requests = [
            send(
                await stack.enter_async_context(Client(server.port, wish.by.tokens.access_token)),
                wish,
            )
            for wish in wishes
        ]
        if kill_after_seconds is not None:
            requests.append(kill(kill_after_seconds))
        await at_once(requests)
    return answers


def _assert_done(wishes: list[Wish], answers: dict[str, Answer]) -> None:
    """Check that what was acknowledged is in the table, as it was acknowledged."""
    seats: dict[tuple[str, str], UserGameMapping] = {}
    for game_id in {wish.game_id for wish in wishes}:
        _, roster = Game.with_roster(game_id, consistent=True)
        seats |= {(game_id, seat.username): seat for seat in roster}
    for wish in wishes:
        if (answer := answers.get(wish.about)) is None:
            continue
        seat = seats[wish.game_id, wish.about]
        if wish.move == "eliminations":
            assert (seat.is_alive, seat.eliminated_by) == (False, wish.by.username)
            assert seat.placement == answer.body["placement"]


def _assert_check_table_finds_nothing(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "check_table"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing broken" in done.stdout
