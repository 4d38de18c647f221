"""Clients whose connection breaks, at any moment, and who then ask again."""

import asyncio

from matches.models import STARTED, Game
from tests.builders import APlayer, a_game, stored
from tests.races.clients import LOST, Answer, Client, at_once
from tests.races.invariants import assert_sound
from tests.races.moves import leave, newcomers
from tests.races.threads import dice
from tests.servers import Server

PAIRS, ROUNDS = 10, 10
# A little longer than such a request takes here, so that some are cut after their end.
LATEST_CUT_SECONDS = 0.08

chance = dice("cuts")


async def test_a_cut_connection_leaves_the_state_whole_and_a_repeat_tells_it(
    two_servers: tuple[Server, Server],
) -> None:
    """A-05: 100 joins and 100 starts are cut at random moments, then repeated."""
    players = newcomers(2 * PAIRS, "pair")
    pairs = zip(players[:PAIRS], players[PAIRS:], strict=True)
    cut = await at_once(_play(two_servers[0].port, host, other) for host, other in pairs)
    assert sum(cut) > PAIRS * ROUNDS, "too few were cut before their answer"
    assert_sound()


async def test_a_create_that_is_cut_and_repeated_makes_one_game(
    two_servers: tuple[Server, Server],
) -> None:
    """L-09, A-05, T-08: the repeat, with the same Idempotency-Key, may overtake the first."""
    (host,) = newcomers(1, "host")
    async with (
        Client(two_servers[0].port, host.tokens.access_token) as first,
        Client(two_servers[1].port, host.tokens.access_token) as second,
    ):
        body = {"map": "dirty-desert"}
        for number in range(30):
            await first.send("POST", "/api/games", body, key=f"key {number}")
            if number % 2:
                await _answer_unless_cut(first)
            answer = await second.post("/api/games", body, key=f"key {number}")
            await first.cut()
            again = await first.post("/api/games", body, key=f"key {number}")
            assert (answer.status, again.status) == (201, 201)
            assert answer.body["game_id"] == again.body["game_id"]
            await first.post(f"/api/games/{answer.body['game_id']}/cancel")
    assert_sound()


async def _play(port: int, host: APlayer, other: APlayer) -> int:
    """Join, start and end some games; return how many requests were cut before their answer."""
    cut = 0
    async with (
        Client(port, host.tokens.access_token) as hosting,
        Client(port, other.tokens.access_token) as joining,
    ):
        for _ in range(ROUNDS):
            game = await asyncio.to_thread(a_game, host)
            path = f"/api/games/{game.game_id}"
            cut += await _cut_and_repeat(joining, f"{path}/join")
            seen, roster = await asyncio.to_thread(Game.with_roster, game.game_id, consistent=True)
            assert seen is not None
            assert seen.player_count == len(roster) == 2
            cut += await _cut_and_repeat(hosting, f"{path}/start")
            started = await asyncio.to_thread(stored, game)
            assert (started.status, started.version, started.alive_count) == (STARTED, 3, 2)
            await asyncio.to_thread(leave, other, game)
    return cut


async def _cut_and_repeat(client: Client, path: str) -> bool:
    """Send, cut at some moment, repeat; True if the first answer did not arrive."""
    await client.send("POST", path)
    first = await _answer_unless_cut(client)
    assert first is None or first.status == 200
    again = await client.post(path)
    assert again.status == 200, again
    return first is None


async def _answer_unless_cut(client: Client) -> Answer | None:
    try:
        return await asyncio.wait_for(client.answer(), chance.uniform(0, LATEST_CUT_SECONDS))
    except (TimeoutError, *LOST):
        await client.cut()
        return None
