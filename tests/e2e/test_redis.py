"""What a Redis that is full, slow, or hangs costs: a notice, a count; never an action."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import httpx

from tests.builders import MAP, APlayer, players
from tests.e2e.clients import Client
from tests.e2e.conftest import Redis, metric, post, stopped
from tests.servers import Server

# REQUEST_BUDGET_SECONDS is 5.
QUICK_SECONDS = 3.0


async def test_a_full_redis_fails_no_action_and_counts_requests_again_once_it_has_room(
    two_servers: list[Server], redis: Redis
) -> None:
    accounts = players("host", "guest")
    with redis.full():
        # Pub/sub takes no memory of the data's: what is said still crosses.
        for servers in (two_servers, two_servers[::-1]):
            assert await slowest_action(servers, *accounts, crosses=True) < QUICK_SECONDS
        for server in two_servers:
            assert metric(server, "bridge_is_up") == 1
            # The alarms: counting requests needs memory, so each process counts for itself.
            failures = metric(server, "rate_limit_redis_failures_total")
            assert 1 <= failures == server.output.count("rate_limits_without_redis")
            assert "OutOfMemoryError" in server.output
        assert counted(redis) == 0
    await until(lambda: both_count_in(redis, two_servers))


async def test_a_redis_that_is_slow_or_hangs_holds_up_no_action_and_is_used_again_after(
    two_servers: list[Server], redis: Redis
) -> None:
    accounts = players("host", "guest")
    await until(lambda: both_count_in(redis, two_servers))
    with slow(redis):
        assert await slowest_action(two_servers, *accounts, crosses=True) < QUICK_SECONDS
        # Unless it was lucky, each has given up counting there for a while.
        await until(lambda: all(has_counted_for_itself(server) for server in two_servers))
        assert [metric(server, "bridge_is_up") for server in two_servers] == [1, 1]
    with stopped(redis.pid):
        for servers in (two_servers, two_servers[::-1]):
            assert await slowest_action(servers, *accounts, crosses=False) < QUICK_SECONDS
        await until(lambda: [metric(server, "bridge_is_up") for server in two_servers] == [0, 0])
        assert all("bridge_down" in server.output for server in two_servers)
    await until(lambda: [metric(server, "bridge_is_up") for server in two_servers] == [1, 1])
    assert await slowest_action(two_servers, *accounts, crosses=True) < QUICK_SECONDS
    await until(lambda: both_count_in(redis, two_servers))


async def slowest_action(
    servers: list[Server], host: APlayer, guest: APlayer, *, crosses: bool
) -> float:
    """Play over HTTP and over WebSockets, the host here and the guest there.

    Each action succeeds; returns the seconds of the slowest. With `crosses`, what one says in a
    game is heard by the other.
    """
    here, there = servers
    seconds: list[float] = []

    async def timed(action: Awaitable[Any]) -> Any:
        began = time.monotonic()
        answer = await action
        seconds.append(time.monotonic() - began)
        return answer

    async def over_http(server: Server, path: str, by: APlayer) -> Any:
        answer = await timed(asyncio.to_thread(post, server, path, by))
        assert answer.is_success, answer.text
        return answer.json()

    async def create() -> str:
        answer = await timed(asyncio.to_thread(create_game, here, host))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["game_id"])

    async def over_socket(client: Client, kind: str, **fields: str) -> None:
        answer = await timed(client.ask(kind, **fields))
        assert answer["type"] == "ok", answer

    game_id = await create()
    await over_http(there, f"{game_id}/join", guest)
    await over_http(here, f"{game_id}/start", host)
    assert (await over_http(there, f"{game_id}/leave", guest))["winner"] == host.username

    game_id = await create()
    async with (
        Client(host, [here], game_id, 0) as one,
        Client(guest, [there], game_id, 0) as other,
    ):
        await over_socket(other, "game.join")
        # His process, at least, knows that he may talk.
        await over_socket(other, "game.chat", text="hello")
        for speaker, listener in ((one, other), (other, one)):
            await over_socket(speaker, "game.chat", text="here")
            await speaker.until(lambda speaker=speaker: has_heard(speaker, speaker))
            if crosses:
                # The first may come before the processes listen to each other.
                while not has_heard(listener, speaker):
                    await asyncio.sleep(0.2)
                    await speaker.ask("game.chat", text="here")
        await over_socket(one, "game.start")
        await over_socket(other, "game.leave")
    return max(seconds)


def create_game(server: Server, host: APlayer) -> httpx.Response:
    url = f"{server.url}/api/games"
    return httpx.post(url, headers=host.headers, json={"map": MAP}, timeout=10)


def has_heard(listener: Client, speaker: Client) -> bool:
    said = [one for one in listener.heard if one["type"] == "game.chat"]
    return any(one["username"] == speaker.username for one in said)


@contextmanager
def slow(redis: Redis) -> Iterator[None]:
    """Let every command wait up to 0.4 s for its answer, four times what a count may take."""
    done = Event()

    def hold_up() -> None:
        while not done.is_set():
            redis.ask("CLIENT", "PAUSE", 400, "ALL")

    thread = Thread(target=hold_up)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def counted(redis: Redis) -> int:
    """Count the requests that were counted in Redis."""
    return sum(int(redis.ask("GET", key)) for key in redis.ask("KEYS", "LIMITS:*"))


def both_count_in(redis: Redis, servers: list[Server]) -> bool:
    before = counted(redis)
    for server in servers:
        httpx.get(f"{server.url}/api/maps", timeout=10).raise_for_status()
    return counted(redis) == before + len(servers)


def has_counted_for_itself(server: Server) -> bool:
    """Ask for something that is counted; tell whether Redis ever took too long for that."""
    httpx.get(f"{server.url}/api/maps", timeout=10).raise_for_status()
    return metric(server, "rate_limit_redis_failures_total") >= 1


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 (states of other processes)
            await asyncio.sleep(0.1)
