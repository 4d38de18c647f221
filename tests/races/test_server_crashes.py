"""The server and its engine are killed in the middle of the work; what was promised is there."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
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

GAMES, SEATS, CRASHES = 6, 43, 2
# Requests under way at once; more of them only lose to each other more often.
CROWD = 25


@dataclass(frozen=True)
class Wish:
    """A request that is repeated until it is answered; `about` is whom it seats or takes out."""

    by: APlayer
    game_id: str
    move: str
    about: str
    body: dict[str, Any] | None = None


class Crash:
    """Kills a server some milliseconds after so many of its answers."""

    def __init__(self, server: Server, after_answers: int, delay_seconds: float) -> None:
        self._server = server
        self._answers_left = after_answers
        self._is_due = asyncio.Event()
        self.task = asyncio.create_task(self._strike(delay_seconds))

    def on_answer(self) -> None:
        self._answers_left -= 1
        if self._answers_left <= 0:
            self._is_due.set()

    async def _strike(self, delay_seconds: float) -> None:
        await self._is_due.wait()
        await asyncio.sleep(delay_seconds)
        await asyncio.to_thread(self._server.kill)


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
    """S-02: 252 joins, then 252 eliminations; SIGKILL 1 to 50 ms after some answer among them."""
    chance = dice("crash")
    players = await asyncio.to_thread(newcomers, GAMES * SEATS)
    hosts, others = players[:GAMES], players[GAMES:]
    games = [await asyncio.to_thread(a_game, host) for host in hosts]
    joins = [
        Wish(player, games[number % GAMES].game_id, "join", player.username)
        for number, player in enumerate(others)
    ]
    await _insist(home, joins, chance)
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
    await _insist(home, eliminations, chance)
    for host, game in zip(hosts, games, strict=True):
        seen, roster = await asyncio.to_thread(Game.with_roster, game.game_id, consistent=True)
        assert seen is not None
        assert (seen.status, seen.winner, len(roster)) == (FINISHED, host.username, SEATS)
    home.server.terminate()
    _assert_check_table_finds_nothing(home.environment)


async def _insist(home: Home, wishes: list[Wish], chance: Random) -> None:
    """Send all wishes, kill the server among its answers, and so on until every wish is true."""
    answers: dict[str, Answer] = {}
    for _ in range(CRASHES):
        waiting = [wish for wish in wishes if wish.about not in answers]
        crash = Crash(home.server, chance.randrange(len(waiting) // 2), chance.uniform(0.001, 0.05))
        answers |= await _send(home.server, waiting, crash)
        await crash.task
        assert len(answers) < len(wishes), "all was answered before the crash"
        await asyncio.to_thread(home.launch)
        await asyncio.to_thread(_assert_done, wishes, answers)
    while waiting := [wish for wish in wishes if wish.about not in answers]:
        answers |= await _send(home.server, waiting)
    await asyncio.to_thread(_assert_done, wishes, answers)


async def _send(
    server: Server, wishes: list[Wish], crash: Crash | None = None
) -> dict[str, Answer]:
    """Return the answers that came, by whom they are about, without those that say try again."""
    answers: dict[str, Answer] = {}
    waiting = iter(wishes)

    async def work() -> None:
        for wish in waiting:
            async with Client(server.port, wish.by.tokens.access_token) as client:
                path = f"/api/games/{wish.game_id}/{wish.move}"
                # The key lets the repeat of an elimination have its first answer.
                answer = await client.post(path, wish.body, key=wish.about)
            if answer.code != "try_again":
                assert answer.is_success, answer
                answers[wish.about] = answer
            if crash is not None:
                crash.on_answer()

    async def work_until_it_breaks() -> None:
        with suppress(*LOST):
            await work()

    await at_once(work_until_it_breaks() if crash else work() for _ in range(CROWD))
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
