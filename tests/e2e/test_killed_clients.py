"""Clients that are killed in every state of a connection, and what is left of them."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random

from matches.models import CANCELLED, Game
from matches.models.presence import Heartbeat, Presence
from tests.builders import a_game, players, stored
from tests.e2e.clients import Doomed
from tests.e2e.conftest import StartServer, metric, set_flags
from tests.races.clients import Device
from tests.races.invariants import assert_sound, seated_in
from tests.servers import Server

GAMES, KILLED_IN_EACH_STATE = 10, 20
# A little longer than a join takes here, so that some are cut after their answer.
LATEST_CUT_SECONDS = 0.03
DEADLINE_SECONDS = 30.0
SEED = 20_25
# Of a row of /proc/net/tcp.
LISTENING = "0A"


async def in_the_handshake(client: Doomed) -> None:
    await client.connect()
    client.writer.write(client.handshake[: client.chance.randrange(len(client.handshake))])
    await client.kill()


async def after_the_handshake_was_sent(client: Doomed) -> None:
    await client.connect()
    client.writer.write(client.handshake)
    await client.kill()


async def before_the_first_message(client: Doomed) -> None:
    await client.shake_hands()
    await client.kill()


async def as_a_spectator(client: Doomed) -> None:
    await client.shake_hands()
    client.send("lobby.watch")
    client.send("game.watch", game_id=client.game_id)
    await client.hears("game.snapshot")
    await client.kill()


async def in_his_seat(client: Doomed) -> None:
    await client.sit_down()
    await client.kill()


async def as_a_host(client: Doomed) -> None:
    """His game has nobody else."""
    client.game_id = (await asyncio.to_thread(a_game, client.player)).game_id
    await client.shake_hands()
    client.send("game.watch", game_id=client.game_id)
    await client.hears("game.snapshot")
    await client.kill()


async def in_the_middle_of_a_frame(client: Doomed) -> None:
    await client.sit_down()
    whole = client.frame("game.chat", game_id=client.game_id, text="hi")
    client.writer.write(whole[: client.chance.randrange(1, len(whole))])
    await client.kill()


async def after_the_join_was_sent(client: Doomed) -> None:
    await client.shake_hands()
    client.send("game.join", game_id=client.game_id)
    await client.kill()


async def while_the_join_was_under_way(client: Doomed) -> None:
    await client.shake_hands()
    client.send("game.join", game_id=client.game_id)
    await asyncio.sleep(client.chance.uniform(0, LATEST_CUT_SECONDS))
    await client.kill()


async def by_silence(client: Doomed) -> None:
    """Nothing tells the server, as if the network had gone: only its pings find out."""
    await client.sit_down()


Death = Callable[[Doomed], Awaitable[None]]

# Who died so had a seat, for certain or (the second) if his join was read.
SEATED: list[Death] = [by_silence, in_his_seat, as_a_host, in_the_middle_of_a_frame]
JOINING: list[Death] = [after_the_join_was_sent, while_the_join_was_under_way]
NOT_SEATED: list[Death] = [
    as_a_spectator,
    before_the_first_message,
    after_the_handshake_was_sent,
    in_the_handshake,
]


async def test_two_hundred_killed_clients_leave_no_seat_no_feed_and_no_error(
    start_server: StartServer,
) -> None:
    """J-11: after the grace, who sits in a game is who is present."""
    set_flags(reconnect_grace_seconds=1)
    server = start_server(SOCKET_PING_SECONDS="2")
    chance = Random(SEED)
    hosts = players(*(f"host{number}" for number in range(GAMES)))
    games = [a_game(host) for host in hosts]
    killed: dict[Death, list[Doomed]] = {}
    async with AsyncExitStack() as stack:
        for host, game in zip(hosts, games, strict=True):
            device = Device(server.port, host.tokens.access_token)
            await (await stack.enter_async_context(device)).watch(game.game_id)
        for death in SEATED + JOINING + NOT_SEATED:
            killed[death] = _doomed(death.__name__, server, games, chance)
            for client in killed[death]:
                # Who went silent keeps his end open until then.
                stack.push_async_callback(client.kill)
            await asyncio.gather(*(death(client) for client in killed[death]))
        await _until_only_hosts_are_left(server)
        for host, game in zip(hosts, games, strict=True):
            assert seated_in(game) == {host.username}
        for client in killed[as_a_host]:
            game = stored(client.game_id)
            assert (game.status, game.player_count) == (CANCELLED, 0)
        (process,) = Heartbeat.all_known()
        present = {seat.username for seat in Presence.of_process(process.process_id)}
        assert present == {host.username for host in hosts}
        assert_sound()
        _assert_freed_once(server, killed)
    # It waits for every connection and task: one that was left behind would be logged as an error.
    assert await asyncio.to_thread(server.terminate) == 0
    assert '"level": "error"' not in server.output


def _doomed(name: str, server: Server, games: list[Game], chance: Random) -> list[Doomed]:
    accounts = players(*(f"{name[:15]}-{number}" for number in range(KILLED_IN_EACH_STATE)))
    return [
        Doomed(server, player, games[number % GAMES].game_id, chance)
        for number, player in enumerate(accounts)
    ]


async def _until_only_hosts_are_left(server: Server) -> None:
    names = {
        "socket_connections": GAMES,
        "socket_seats_held": GAMES,
        r'feeds\{kind="game"\}': GAMES,
        r'feeds\{kind="lobby"\}': 0,
    }
    async with asyncio.timeout(DEADLINE_SECONDS):
        for name, number in names.items():
            read = partial(asyncio.to_thread, metric, server, name)
            while await read() != number:  # noqa: ASYNC110 (a metric, which sets no event)
                await asyncio.sleep(0.1)
        while _client_sockets(server) != GAMES:  # noqa: ASYNC110 (a state of the system)
            await asyncio.sleep(0.1)


def _client_sockets(server: Server) -> int:
    """Count a server's open sockets to clients; those that a client reset are in no table."""
    proc = Path(f"/proc/{server.pid}")
    elsewhere = {line.split()[6] for line in (proc / "net/unix").read_text().splitlines()[1:]}
    for line in (proc / "net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_, inode = line.split()[:10]
        if state == LISTENING or not local.endswith(f":{server.port:04X}"):
            elsewhere.add(inode)
    count = 0
    for descriptor in (proc / "fd").iterdir():
        with suppress(FileNotFoundError):
            found = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
            count += found is not None and found[1] not in elsewhere
    return count


def _assert_freed_once(server: Server, killed: dict[Death, list[Doomed]]) -> None:
    """Every seat that was taken was freed, and the server says so once."""
    freed = Counter(
        json.loads(line)["username"]
        for line in server.output.splitlines()
        if '"event": "seat_freed"' in line
    )
    assert set(freed.values()) == {1}
    names = {death: {client.player.username for client in killed[death]} for death in killed}
    for death in SEATED:
        assert names[death] <= freed.keys(), death.__name__
    for death in JOINING:
        assert names[death] & freed.keys(), "no join outlived its client"
    assert freed.total() == metric(server, "players_joined_total") + len(names[as_a_host])
