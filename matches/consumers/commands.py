"""What clients ask over a socket: the same services as over HTTP, the same refusals."""

import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from django.utils import timezone

from gameserver.auth import Identity
from gameserver.blocking import run_blocking
from gameserver.errors import NotInGame, RateLimited, TryAgain
from gameserver.feeds.connection import Connection
from gameserver.feeds.frames import to_json
from gameserver.feeds.limits import Allowance, retry_after
from gameserver.times import rfc3339
from matches import rules, schemas
from matches.consumers.realtime import Realtime
from matches.feeds import ALL_MAPS, GAME, LOBBY, GameFeed
from matches.messages import client as messages
from matches.messages.client import ClientMessage
from matches.services import leaving, lobby, play
from players.rules import canonical_username
from players.services import sessions
from settings_singleton.cache import flags
from settings_singleton.rules import check_client_version, check_maintenance
from settings_singleton.services import require_flag

CHAT_MESSAGES_PER_MINUTE = 60

Answer = dict[str, Any]
Handler = Callable[["Commands", Any], Awaitable[Answer | None]]


class Commands:
    """Carries out one connection's messages, one after the other.

    A handler returns the fields of its `ok`, or None if it has sent the `ok` itself.
    """

    def __init__(self, realtime: Realtime, connection: Connection) -> None:
        self._realtime = realtime
        self._connection = connection
        self._chat = Allowance(lambda: CHAT_MESSAGES_PER_MINUTE, time.monotonic)

    async def run(self, message: ClientMessage) -> None:
        """Carry out a message and send its `ok`.

        Raises: GameServerError, to be sent as `error`.
        """
        if message.type not in ALWAYS_OPEN:
            check_maintenance(flags.maintenance_mode)
            check_client_version(flags.min_client_version, self._connection.version)
        answer = await HANDLERS[message.type](self, message)
        if answer is not None:
            self._ok(message, answer)

    def _ok(self, message: ClientMessage, answer: Answer) -> None:
        self._connection.reply({"type": "ok", "re": message.id, **answer})

    async def _identity(self) -> Identity:
        """Return who asks, as the account stands (a name, a role or a ban may have changed).

        Raises: NotAuthenticated, Banned.
        """
        connection = self._connection
        return await run_blocking(
            sessions.identify, connection.username, connection.session_id, now=timezone.now()
        )

    async def _ping(self, message: messages.Ping) -> Answer:
        return {}

    async def _watch_lobby(self, message: messages.LobbyWatch) -> None:
        if message.map is not None:
            rules.check_map(message.map)
        name = message.map or ALL_MAPS

        def on_watching() -> None:
            self._unwatch_lobbies()
            self._ok(message, {})

        await self._realtime.watch_lobby(name, self._connection, on_watching)

    async def _unwatch_lobby(self, message: messages.LobbyUnwatch) -> Answer:
        self._unwatch_lobbies()
        return {}

    def _unwatch_lobbies(self) -> None:
        for key in tuple(self._connection.watching):
            if key[0] == LOBBY:
                self._realtime.registry.unwatch(key, self._connection)

    async def _watch_game(self, message: messages.GameWatch) -> None:
        rules.check_game_id(message.game_id)
        await self._follow(message.game_id, lambda: self._ok(message, {}))

    async def _follow(self, game_id: str, on_watching: Callable[[], None]) -> None:
        """Raises: GameNotFound, RateLimited, TryAgain."""
        watched = [key for key in self._connection.watching if key[0] == GAME]
        if len(watched) >= MAX_WATCHED_GAMES and (GAME, game_id) not in watched:
            raise RateLimited(f"A connection watches at most {MAX_WATCHED_GAMES} games.")
        await self._realtime.watch_game(game_id, self._connection, on_watching)

    async def _unwatch_game(self, message: messages.GameUnwatch) -> Answer:
        self._realtime.registry.unwatch((GAME, message.game_id), self._connection)
        return {}

    async def _join(self, message: messages.GameJoin) -> None:
        game = await run_blocking(
            lobby.join_game,
            await self._identity(),
            message.game_id,
            now=timezone.now(),
            join_code=message.join_code,
        )
        self._ok(message, _game(game))
        if (GAME, message.game_id) not in self._connection.watching:
            # He is seated, whether he can watch at once or has to ask again.
            with contextlib.suppress(RateLimited, TryAgain):
                await self._follow(message.game_id, lambda: None)

    async def _leave(self, message: messages.GameLeave) -> Answer:
        username = (await self._identity()).username
        return _game(
            await run_blocking(leaving.leave_game, username, message.game_id, now=timezone.now())
        )

    async def _start(self, message: messages.GameStart) -> Answer:
        username = (await self._identity()).username
        return _game(
            await run_blocking(lobby.start_game, username, message.game_id, now=timezone.now())
        )

    async def _eliminate(self, message: messages.GameEliminate) -> Answer:
        reporter = await self._identity()
        named = canonical_username(message.killer) if message.killer else None
        killer = rules.reported_killer(reporter.role, reporter.username, named)
        victim = canonical_username(message.victim)
        _, result = await run_blocking(
            play.eliminate_player, reporter, message.game_id, victim, killer, now=timezone.now()
        )
        return {"elimination": schemas.elimination_out(victim, killer, result).model_dump()}

    async def _say(self, message: messages.GameChat) -> Answer:
        require_flag("chat_enabled")
        feed = await self._member_feed(message.game_id)
        if wait := self._chat.take():
            raise RateLimited("You chat too fast.", retry_after=retry_after(wait))
        said = {
            "type": "game.chat",
            "game_id": message.game_id,
            "username": self._connection.username,
            "text": message.text,
            "sent_at": rfc3339(timezone.now()),
        }
        feed.chat(to_json(said))
        return {}

    async def _relay(self, message: messages.GameRelay) -> Answer | None:
        text = message.text
        feed = await self._member_feed(message.game_id)
        # A username needs no escape.
        feed.relay(f'{{"username":"{self._connection.username}","data":{text}}}')
        # At most once, and many a second: only who gave an id wants an answer.
        return None if message.id is None else {}

    async def _member_feed(self, game_id: str) -> GameFeed:
        """Return the feed of a game he sits in; who talks there watches it, too.

        Raises: NotInGame, GameNotFound, RateLimited, TryAgain.
        """
        username, key = self._connection.username, (GAME, game_id)
        if key not in self._connection.watching:
            _, roster = await run_blocking(lobby.load, game_id)
            lobby.seat_of(roster, username)
            await self._follow(game_id, lambda: None)
        feed = cast(GameFeed, self._connection.watching[key])
        try:
            feed.check_member(username)
        except NotInGame:
            # He may have joined since the feed last looked.
            await feed.refresh()
            feed.check_member(username)
        return feed


# A socket follows its player's game, and a few others for spectators.
MAX_WATCHED_GAMES = 20
ALWAYS_OPEN = frozenset({"ping", "game.leave", "game.unwatch", "lobby.unwatch"})
HANDLERS: dict[str, Handler] = {
    "ping": Commands._ping,
    "lobby.watch": Commands._watch_lobby,
    "lobby.unwatch": Commands._unwatch_lobby,
    "game.watch": Commands._watch_game,
    "game.unwatch": Commands._unwatch_game,
    "game.join": Commands._join,
    "game.leave": Commands._leave,
    "game.start": Commands._start,
    "game.eliminate": Commands._eliminate,
    "game.chat": Commands._say,
    "game.relay": Commands._relay,
}


def _game(game: Any) -> Answer:
    return {"game": schemas.public_game(game)}
