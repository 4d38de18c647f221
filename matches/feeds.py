"""What clients can watch: one game, and the open games of a map or of all maps."""

import asyncio
from typing import Protocol

from prometheus_client import Counter

from gameserver.blocking import run_blocking
from gameserver.errors import NotInGame
from gameserver.feeds.bridge import Bridge, game_topic, lobby_topic
from gameserver.feeds.connection import DELIVERED, Connection
from gameserver.feeds.feed import READS, Feed, Message
from gameserver.feeds.frames import Frame, to_json
from gameserver.feeds.registry import Registry
from matches import diff, rules, schemas
from matches.diff import View
from matches.models import OPEN, STARTED, Game, UserGameMapping
from matches.services import find, lobby

GAME, LOBBY = "game", "lobby"
ALL_MAPS = "*"
LOBBY_SIZE = 100
GAME_POLL_SECONDS = 5.0
# Relayed messages of one game leave together, at most this often; the first leaves at once.
RELAY_TICK_SECONDS = 0.02
MAX_TICK_BYTES = 48 * 1024

RELAYED = Counter("socket_relays_total", "Relayed messages passed on, from here or elsewhere")
OVERFLOWED = Counter("socket_relays_overflowed_total", "Relayed messages beyond a tick's size")


class Seats(Protocol):
    """Who wants to know which players of a game are connected here."""

    def seen(
        self, game_id: str, in_game: set[str], away: list[str], connections: list[Connection]
    ) -> None:
        """Take notice of a game's state, and of who watches it."""


def game_view(game: Game, roster: list[UserGameMapping]) -> View:
    """Shape a game for everybody who may watch it: its join code is for none of them."""
    shown = schemas.game_with_players(game, roster, viewer=None).model_dump(mode="json")
    shown.pop("join_code", None)
    players = shown.pop("players")
    playing = {player["username"] for player in players if player["is_alive"]}
    away = sorted(playing.intersection(game.away or ())) if _is_on(shown) else []
    return {"version": shown["version"], "game": shown, "players": players, "away": away}


def _is_on(game: Message) -> bool:
    return game["status"] in {OPEN, STARTED}


class GameFeed(Feed[View]):
    """One game. Its players also hear each other here."""

    kind = GAME
    # `poll_games` looks for all of them.
    poll_seconds = None
    # At most 20 reads a second, however fast the hints come.
    rest_seconds = 0.05

    def __init__(self, name: str, seats: Seats, bridge: Bridge) -> None:
        super().__init__(name)
        self.game_id = name
        self._seats = seats
        self._bridge = bridge
        self._topic = game_topic(name)
        self._members: set[str] = set()
        self._member_connections: list[Connection] = []
        self._relay_head = f'{{"type":"game.relay","game_id":{to_json(name)},"messages":['
        self._relayed: list[str] = []
        self._relayed_here: list[str] = []
        self._relayed_bytes = 0
        self._next_tick = 0.0
        self._tick: asyncio.Handle | None = None

    @property
    def topics(self) -> list[str]:
        return [game_topic(self.key[1])]

    def read(self) -> View:
        return game_view(*lobby.load(self.key[1]))

    def snapshot(self, state: View) -> Message:
        return {"type": "game.snapshot", "game_id": self.key[1], **state}

    def change(self, old: View, new: View) -> Message | None:
        if old == new:
            return None
        changed = diff.change(old, new)
        if changed is None:
            return self.snapshot(new)
        return {"type": "game.changed", "game_id": self.key[1], **changed}

    def on_change(self) -> None:
        if self.state is None:
            return
        players = self.state["players"]
        self._members = {player["username"] for player in players}
        self._member_connections = [
            connection for connection in self.connections if connection.username in self._members
        ]
        is_on = _is_on(self.state["game"])
        in_game = {player["username"] for player in players if player["is_alive"] and is_on}
        self._seats.seen(self.game_id, in_game, self.state["away"], self._member_connections)

    def check_member(self, username: str) -> None:
        """Raises: NotInGame."""
        if username not in self._members:
            raise NotInGame

    def chat(self, text: str) -> None:
        """Tell the players, here and elsewhere; `text` is a ready `game.chat` message."""
        self.hear(GAME_CHAT, text)
        self._bridge.say(self._topic, GAME_CHAT, text)

    def relay(self, text: str) -> None:
        """Pass a ready `{username, data}` on with the next tick."""
        self._relayed_here.append(text)
        self.hear(GAME_RELAY, text)

    def hear(self, kind: str, text: str) -> None:
        """Tell this process's connections what a player said, here or in another process."""
        if kind == GAME_CHAT:
            self._send_all(self._member_connections, Frame(text))
        elif kind == GAME_RELAY:
            if self._relayed_bytes > MAX_TICK_BYTES:
                OVERFLOWED.inc()
                return
            self._relayed.append(text)
            self._relayed_bytes += len(text.encode())
            if self._tick is None:
                loop = asyncio.get_running_loop()
                if loop.time() < self._next_tick:
                    self._tick = loop.call_at(self._next_tick, self._send_relayed)
                else:
                    self._tick = loop.call_soon(self._send_relayed)

    def _send_relayed(self) -> None:
        relayed, self._relayed, self._relayed_bytes = self._relayed, [], 0
        here, self._relayed_here = self._relayed_here, []
        self._tick = None
        self._next_tick = asyncio.get_running_loop().time() + RELAY_TICK_SECONDS
        message = Frame(f"{self._relay_head}{','.join(relayed)}]}}")
        for connection in self._member_connections:
            connection.send_lossy(message)
        RELAYED.inc(len(relayed))
        DELIVERED.inc(len(self._member_connections))
        if self._bridge.reaches_others:
            for text in here:
                self._bridge.say(self._topic, GAME_RELAY, text)


GAME_CHAT, GAME_RELAY = "game.chat", "game.relay"


async def poll_games(registry: Registry) -> None:
    """Wake the feeds of games that changed and no hint told of it.

    Reads the games' own items, a hundred at once: 1 RCU each instead of the whole roster's.

    Raises: TryAgain.
    """
    known = {feed.key[1]: feed.state["version"] for feed in registry.of_kind(GAME) if feed.state}
    READS.labels(GAME, "poll").inc(len(known))
    versions = await run_blocking(find.versions, tuple(known))
    for game_id, version in known.items():
        if versions.get(game_id) != version:
            registry.wake(game_topic(game_id))


class LobbyFeed(Feed[dict[str, Message]]):
    """The open games of a map (or `*`: of all), by id. Read from an index, which lags."""

    kind = LOBBY
    poll_seconds = 10.0
    rest_seconds = 0.5
    settle_seconds = 1.0

    @property
    def map(self) -> str | None:
        return None if self.key[1] == ALL_MAPS else self.key[1]

    @property
    def topics(self) -> list[str]:
        return [lobby_topic(game_map) for game_map in ([self.map] if self.map else rules.MAPS)]

    def read(self) -> dict[str, Message]:
        found = find.open_games(self.map, limit=LOBBY_SIZE).games
        return {game.game_id: schemas.public_game(game) for game in found}

    def snapshot(self, state: dict[str, Message]) -> Message:
        return {"type": "lobby.snapshot", "map": self.map, "games": list(state.values())}

    def change(self, old: dict[str, Message], new: dict[str, Message]) -> Message | None:
        games = [game for game_id, game in new.items() if old.get(game_id) != game]
        removed = [game_id for game_id in old if game_id not in new]
        if not games and not removed:
            return None
        return {"type": "lobby.changed", "map": self.map, "games": games, "removed": removed}
