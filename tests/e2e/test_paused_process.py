"""A server process that was held still, and taken for dead meanwhile, holds what it held before."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
from django.core.management import call_command

from matches.models.presence import Heartbeat, Presence
from matches.services import lobby, presence
from settings_singleton.testing import override_flags
from tests.builders import APlayer, a_game, players, stored
from tests.e2e.clients import Client
from tests.e2e.conftest import StartServer, set_flags, start_at_once, stopped
from tests.servers import Server

# Three missed beats and the round after them, and a little for a busy machine.
TAKEN_FOR_DEAD_SECONDS = 40.0
# The next beat, and the tending after it.
RECORDED_SECONDS = 20.0


def seats(game_id: str) -> list[str]:
    return [seat.username for seat in lobby.load(game_id)[1]]


def recorded(process: str) -> set[tuple[str, bool]]:
    """Whose seats a process says it holds, and whether they are away."""
    return {(one.username, one.is_away) for one in Presence.of_process(process)}


async def until(is_so: Callable[[], bool], seconds: float) -> None:
    """Wait for a state of the table, which tells nobody."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def holder_of(seats: set[tuple[str, bool]]) -> str:
    """Wait until a process says that it holds these seats; return which."""

    def found() -> list[str]:
        known = [one.process_id for one in Heartbeat.all_known()]
        return [process for process in known if recorded(process) == seats]

    await until(lambda: bool(found()), RECORDED_SECONDS)
    return found()[0]


def listed(server: Server, by: APlayer) -> set[str]:
    answer = httpx.get(f"{server.url}/api/games", headers=by.headers, timeout=10)
    return {game["game_id"] for game in answer.json()["items"]}


async def test_lobbies_of_a_process_that_is_held_still_stay_listed_and_keep_their_players(
    start_server: StartServer,
) -> None:
    """L-08: longer than it takes to be taken for dead, shorter than the grace."""
    set_flags(reconnect_grace_seconds=120)
    still, other = start_at_once(start_server, 2)
    host, guest, lonely, watcher = players("host", "guest", "lonely", "watcher")
    game_id, lonely_id = a_game(host, guest).game_id, a_game(lonely).game_id
    async with (
        Client(host, [still], game_id, 0) as at_still,
        Client(guest, [still], game_id, 0) as guest_at_still,
        Client(lonely, [still], lonely_id, 0) as alone,
        Client(watcher, [other], game_id, 0) as watching,
    ):
        here = {("host", False), ("guest", False), ("lonely", False)}
        still_id = await holder_of(here)

        with stopped(still.pid):
            # The other process says so in its own round of looking for dead ones.
            await watching.until(
                lambda: away(watching) == ["guest", "host"], TAKEN_FOR_DEAD_SECONDS
            )
            await asyncio.to_thread(call_command, "sweep", verbosity=0)
            assert await asyncio.to_thread(listed, other, watcher) == {game_id, lonely_id}
            assert (seats(game_id), seats(lonely_id)) == (["host", "guest"], ["lonely"])

        await watching.until(lambda: away(watching) == [])
        await until(lambda: recorded(still_id) == here, RECORDED_SECONDS)
        assert await asyncio.to_thread(listed, still, watcher) == {game_id, lonely_id}
        assert (seats(game_id), seats(lonely_id)) == (["host", "guest"], ["lonely"])
        for client in (at_still, guest_at_still, alone):
            assert (await client.ask("ping"))["type"] == "ok"
            assert client.connections == 1


async def test_a_process_whose_seats_were_freed_meanwhile_holds_what_is_left_and_what_comes_back(
    start_server: StartServer,
) -> None:
    server = start_server()
    host, guest = players("host", "guest")
    game_id = a_game(host, guest).game_id
    async with (
        Client(host, [server], game_id, 0) as thrown_out,
        Client(guest, [server], game_id, 0) as staying,
    ):
        here = {("host", False), ("guest", False)}
        still_id = await holder_of(here)

        with stopped(server.pid), override_flags(reconnect_grace_seconds=0):
            # Another process, which sees it silent past the grace; the guest has a tablet there.
            now = datetime.now(UTC) + timedelta(minutes=1)
            presence.announce("elsewhere", now=now)
            presence.record("elsewhere", [(game_id, "guest")], [], now=now)
            assert presence.sweep_dead_processes(now=now, since=now - timedelta(days=1)) == 1
            assert seats(game_id) == ["guest"]
            assert recorded(still_id) == set()

        await until(lambda: recorded(still_id) == {("guest", False)}, RECORDED_SECONDS)
        # The tablet goes, and he is still here.
        assert not presence.give_up("elsewhere", game_id, "guest", now=datetime.now(UTC))
        await thrown_out.until(lambda: names(thrown_out) == ["guest"])
        assert (await thrown_out.ask("game.join"))["type"] == "ok"
        await until(lambda: recorded(still_id) == here, RECORDED_SECONDS)
        assert stored(game_id).player_count == 2
        assert thrown_out.connections == staying.connections == 1


def away(client: Client) -> list[str]:
    assert client.story is not None
    return sorted(client.story.view["away"])


def names(client: Client) -> list[str]:
    assert client.story is not None
    return client.story.names
