"""What all connections of a process share."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import structlog
from django.utils import timezone
from prometheus_client import Gauge

from gameserver import hints
from gameserver.blocking import run_blocking
from gameserver.errors import Banned, NotAuthenticated, TryAgain
from gameserver.feeds.bridge import Bridge, game_topic, lobby_topic
from gameserver.feeds.connection import (
    BANNED,
    IDLE,
    NOT_AUTHENTICATED,
    RATE_LIMITED,
    RESTART,
    Connection,
    retry_hint,
)
from gameserver.feeds.feed import JITTER
from gameserver.feeds.frames import Frame, frame
from gameserver.feeds.registry import Registry
from matches.consumers.seats import SeatHolder
from matches.consumers.upkeep import Upkeep
from matches.feeds import GAME, GAME_POLL_SECONDS, LOBBY, GameFeed, LobbyFeed, poll_games
from players.services import sessions
from settings_singleton import cache
from settings_singleton.cache import Snapshot

IDLE_SECONDS = 600.0
TEND_SECONDS = 1.0
# How long a dead session may keep its connection where the hint about it was lost.
RECHECK_SECONDS = 60.0
# What one BatchGetItem carries: an account and a session each.
RECHECKED_TOGETHER = 50
MAX_CONNECTIONS_PER_PLAYER = 10
MAINTENANCE_DRAIN_SECONDS = 10.0

CONNECTIONS = Gauge("socket_connections", "Open WebSocket connections")

_log = structlog.get_logger(__name__)


class Realtime:
    """Connections, feeds and seats of one process. Lives on one event loop."""

    def __init__(self) -> None:
        self.bridge = Bridge(self._on_said, self._on_gap)
        self.registry = Registry(self.bridge)
        self.seats = SeatHolder()
        self.connections: dict[str, dict[Connection, None]] = {}
        self._upkeep = Upkeep(self.seats.process_id, self.seats.record_anew)
        self._stops: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._settings_frame: tuple[Snapshot, Frame] | None = None

    def start(self) -> None:
        """Hear hints, and tidy up every second."""
        self._loop = asyncio.get_running_loop()
        self._stops = [hints.listen(self._on_hint), cache.subscribe(self._on_settings)]
        self.bridge.start()
        poll = partial(poll_games, self.registry)
        self.background(self._repeat("tend", TEND_SECONDS, self._tend))
        self.background(self._repeat("poll games", GAME_POLL_SECONDS, poll))
        self.background(self._repeat("check sessions", RECHECK_SECONDS, self._recheck_all))

    def start_upkeep(self) -> None:
        """Also beat and sweep, in threads: the job of a server, not of a test."""
        self._upkeep.start()
        self._stops.append(self._upkeep.stop)

    async def stop(self) -> None:
        """Let everything go."""
        for stop in self._stops:
            await run_blocking(stop)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.registry.stop()
        await self.bridge.stop()

    def background(self, work: Any) -> None:
        """Run a coroutine beside everything else; ended with the process."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def add(self, connection: Connection) -> None:
        """Count a connection in; of too many of one player, the oldest goes."""
        mine = self.connections.setdefault(connection.username, {})
        mine[connection] = None
        CONNECTIONS.inc()
        if len(mine) > MAX_CONNECTIONS_PER_PLAYER:
            next(iter(mine)).close(RATE_LIMITED, "too many connections")

    def remove(self, connection: Connection) -> None:
        """Take a closed connection out of everything; begin the grace of its seats."""
        mine = self.connections.get(connection.username, {})
        if mine.pop(connection, False) is None:
            CONNECTIONS.dec()
            if not mine:
                del self.connections[connection.username]
        self.registry.forget(connection)
        self.seats.gone(connection)

    def everyone(self) -> list[Connection]:
        """Return all connections of this process."""
        return [each for mine in self.connections.values() for each in mine]

    async def watch_game(
        self, game_id: str, connection: Connection, on_watching: Callable[[], None]
    ) -> None:
        """Raises: GameNotFound, TryAgain."""
        make = partial(GameFeed, seats=self.seats, bridge=self.bridge)
        await self.registry.watch((GAME, game_id), make, connection, on_watching)

    async def watch_lobby(
        self, name: str, connection: Connection, on_watching: Callable[[], None]
    ) -> None:
        """Raises: ValidationFailed, TryAgain."""
        await self.registry.watch((LOBBY, name), LobbyFeed, connection, on_watching)

    def settings_frame(self) -> Frame:
        """Return the first message of a connection, serialised once for each snapshot."""
        current = cache.current()
        if self._settings_frame is None or self._settings_frame[0] is not current:
            self._settings_frame = (current, frame(_settings_message("settings.snapshot", current)))
        return self._settings_frame[1]

    def _on_hint(self, hint: hints.Hint) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take, hint)

    def _take(self, hint: hints.Hint) -> None:
        match hint:
            case hints.GameChanged():
                self.registry.wake(game_topic(hint.game_id))
                self.registry.wake(lobby_topic(hint.map))
            case hints.SessionsChanged():
                sessions.forget_identity(hint.username)
                if mine := self.connections.get(hint.username):
                    self.background(self._recheck(tuple(mine), consistent=True))

    def _on_settings(self, before: Snapshot, after: Snapshot) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._take_settings, before, after)

    def _take_settings(self, before: Snapshot, after: Snapshot) -> None:
        if after.public != before.public:
            self._tell_everyone(_settings_message("settings.changed", after))
        if after.maintenance_mode and not before.maintenance_mode:
            self.background(self._close_for_maintenance())

    def _on_said(self, topic: str, kind: str, text: str) -> None:
        feed = self.registry.get((GAME, topic.removeprefix("game.")))
        if isinstance(feed, GameFeed):
            feed.hear(kind, text)

    def _on_gap(self, topic: str | None) -> None:
        self.registry.wake(topic)

    def _tell_everyone(self, message: dict[str, Any]) -> None:
        told = frame(message)
        for connection in self.everyone():
            connection.send(told)

    async def _repeat(self, name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        is_failing = False
        while True:
            await asyncio.sleep(seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311
            try:
                await work()
                is_failing = False
            except Exception as error:  # noqa: BLE001 (the next time may be better)
                if not is_failing:
                    _log.error("realtime_task_failed", task=name, exc_info=error)
                is_failing = True

    async def _tend(self) -> None:
        self._close_idle()
        await self.seats.tend()

    def _close_idle(self) -> None:
        silent_since = time.monotonic() - IDLE_SECONDS
        for connection in self.everyone():
            if connection.heard_at < silent_since:
                connection.close(IDLE, "idle")

    async def _recheck_all(self) -> None:
        everyone = self.everyone()
        for start in range(0, len(everyone), RECHECKED_TOGETHER):
            await self._recheck(everyone[start : start + RECHECKED_TOGETHER])

    async def _recheck(
        self, connections: Sequence[Connection], *, consistent: bool = False
    ) -> None:
        """Close connections whose session ended or whose player is banned."""
        logins = {(one.username, one.session_id) for one in connections}
        try:
            ended = await run_blocking(
                sessions.ended, logins, now=timezone.now(), consistent=consistent
            )
        except TryAgain:
            # The table does not answer; the next check will tell.
            return
        for connection in connections:
            match ended.get((connection.username, connection.session_id)):
                case NotAuthenticated():
                    connection.close(NOT_AUTHENTICATED, "session ended")
                case Banned():
                    connection.close(BANNED, "banned")

    async def _close_for_maintenance(self) -> None:
        self._tell_everyone(
            {"type": "notice", "code": "maintenance", "seconds": MAINTENANCE_DRAIN_SECONDS}
        )
        await asyncio.sleep(MAINTENANCE_DRAIN_SECONDS)
        if cache.flags.maintenance_mode:
            for connection in self.everyone():
                connection.close(RESTART, retry_hint("maintenance"))


def _settings_message(kind: str, snapshot: Snapshot) -> dict[str, Any]:
    return {"type": kind, "revision": snapshot.revision, "flags": snapshot.public}


_running: dict[asyncio.AbstractEventLoop, Realtime] = {}


def current() -> Realtime:
    """Return the running loop's realtime, started if it was not."""
    loop = asyncio.get_running_loop()
    if loop not in _running:
        _running[loop] = Realtime()
        _running[loop].start()
    return _running[loop]


async def stop() -> None:
    """Stop the running loop's realtime, if there is one."""
    realtime = _running.pop(asyncio.get_running_loop(), None)
    if realtime is not None:
        await realtime.stop()
