"""A game client on the `websockets` library: it knows a game from what it is sent, alone."""

import asyncio
import contextlib
import itertools
import json
from typing import Any, Self

import websockets
from websockets import Subprotocol
from websockets.asyncio.client import ClientConnection

from tests.builders import APlayer
from tests.servers import Server
from tests.sockets import Message, Story, check_defined

DEADLINE_SECONDS = 20.0


def subprotocols(player: APlayer) -> list[Subprotocol]:
    return [Subprotocol("gameserver.v1"), Subprotocol(f"bearer.{player.tokens.access_token}")]


class Client:
    """A player's or watcher's device; comes back by itself, to the next server in turn."""

    def __init__(self, player: APlayer, servers: list[Server], game_id: str, first: int) -> None:
        self.player = player
        self.story: Story | None = None
        self.connections = 0
        self.close_codes: list[int] = []
        self.heard: list[Message] = []
        self.relayed: list[Any] = []
        self._game_id = game_id
        self._servers = itertools.cycle(servers[first:] + servers[:first])
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Message]] = {}
        self._changed = asyncio.Condition()
        self._socket: ClientConnection | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        await self.until(lambda: self.story is not None)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    @property
    def username(self) -> str:
        return self.player.username

    async def until(self, is_so: Any, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait for what a message makes true; a client that broke fails the test here."""
        async with asyncio.timeout(seconds), self._changed:
            while not is_so():
                if self._task.done():
                    self._task.result()
                await self._changed.wait()

    async def until_version(self, version: int) -> None:
        await self.until(lambda: self.story is not None and self.story.version >= version)

    async def ask(self, kind: str, **fields: Any) -> Message:
        """Send a message until it is answered, over as many connections as that takes."""
        while True:
            message_id = next(self._ids)
            answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
            self._answers[message_id] = answer
            await self.until(lambda: self._socket is not None)
            text = json.dumps({"id": message_id, "type": kind, "game_id": self._game_id, **fields})
            try:
                assert self._socket is not None
                await self._socket.send(text)
                async with asyncio.timeout(DEADLINE_SECONDS):
                    return await answer
            except (websockets.ConnectionClosed, asyncio.CancelledError):
                if self._task.done() or not answer.cancelled():
                    raise

    def cut(self) -> None:
        """Lose the connection without a word."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def _run(self) -> None:
        while True:
            protocols = subprotocols(self.player)
            url = f"{next(self._servers).url.replace('http', 'ws')}/ws/"
            try:
                async with websockets.connect(url, subprotocols=protocols) as socket:
                    self.connections += 1
                    await self._listen(socket)
            except (OSError, websockets.InvalidHandshake, websockets.ConnectionClosed) as error:
                if isinstance(error, websockets.ConnectionClosed) and error.rcvd is not None:
                    self.close_codes.append(error.rcvd.code)
            finally:
                self._socket = None
                for answer in self._answers.values():
                    answer.cancel()
                self._answers.clear()
                async with self._changed:
                    self._changed.notify_all()
            await asyncio.sleep(0.05)

    async def _listen(self, socket: ClientConnection) -> None:
        first = json.loads(await socket.recv())
        assert first["type"] == "settings.snapshot"
        await socket.send(json.dumps({"id": 0, "type": "game.watch", "game_id": self._game_id}))
        is_first_state = True
        async for text in socket:
            message = check_defined(json.loads(text))
            if message["type"] == "game.snapshot":
                # A client that comes back starts from nothing but the snapshot.
                self.story = Story(message)
                self._socket = socket
                is_first_state = False
            elif message["type"] == "game.changed":
                assert not is_first_state
                assert self.story is not None
                self.story.take(message)
            elif message.get("re") in self._answers:
                self._answers.pop(message["re"]).set_result(message)
            elif message["type"] == "game.relay":
                self.relayed += [one["data"] for one in message["messages"]]
            else:
                self.heard.append(message)
            async with self._changed:
                self._changed.notify_all()
