"""A game client that knows a game from what it is sent, alone; and one to be killed anywhere."""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
from dataclasses import dataclass
from random import Random
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


@dataclass
class Doomed:
    """A player's WebSocket by hand, to be cut at any byte. It answers no ping."""

    server: Server
    player: APlayer
    game_id: str
    chance: Random

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.server.port)

    @property
    def handshake(self) -> bytes:
        lines = [
            "GET /ws/ HTTP/1.1",
            f"Host: 127.0.0.1:{self.server.port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            f"Sec-WebSocket-Protocol: gameserver.v1, bearer.{self.player.tokens.access_token}",
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    async def shake_hands(self) -> None:
        await self.connect()
        self.writer.write(self.handshake)
        assert b" 101 " in await self.reader.readuntil(b"\r\n\r\n")

    def frame(self, kind: str, **fields: str) -> bytes:
        """Return a message as a frame: masked, but by zeros, which leave it as it is."""
        payload = json.dumps({"id": 1, "type": kind, **fields}).encode()
        assert len(payload) < 126, "this would need a longer header"
        return bytes((0x81, 0x80 | len(payload))) + bytes(4) + payload

    def send(self, kind: str, **fields: str) -> None:
        self.writer.write(self.frame(kind, **fields))

    async def hears(self, kind: str) -> None:
        await self.reader.readuntil(f'"type":"{kind}"'.encode())

    async def sit_down(self) -> None:
        """Take a seat; it is held once the snapshot was sent."""
        await self.shake_hands()
        self.send("game.join", game_id=self.game_id)
        await self.hears("game.snapshot")

    async def kill(self) -> None:
        """End as a killed process does, in an orderly way or not, but never with a close frame."""
        if "writer" not in vars(self) or self.writer.is_closing():
            return
        if self.chance.random() < 0.5:
            # A RST instead of a FIN.
            raw: socket.socket = self.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()
