"""Game clients that cost less than the server they race on: raw HTTP/1.1, and lazy sockets."""

import asyncio
import json
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self, TypeVar

from websockets import Subprotocol
from websockets.asyncio.client import connect

from matches.models import Game
from tests.builders import APlayer
from tests.sockets import Message, check_defined

T = TypeVar("T")

# How a request ends whose server died or whose connection was cut.
LOST = (ConnectionError, asyncio.IncompleteReadError)


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `code` is the problem's, None for a success."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str | None:
        return self.body.get("code")

    @property
    def is_success(self) -> bool:
        return self.status < HTTPStatus.BAD_REQUEST


class Client:
    """One account on one kept connection, one request at a time; reconnects when it was cut."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self._port = port
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cut()

    async def get(self, path: str) -> Answer:
        return await self.request("GET", path)

    async def post(
        self, path: str, body: dict[str, Any] | None = None, *, key: str | None = None
    ) -> Answer:
        return await self.request("POST", path, body, key=key)

    async def request(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str | None = None
    ) -> Answer:
        """Send and wait for the answer.

        Raises: one of LOST if the connection ends before the answer.
        """
        await self.send(method, path, body, key=key)
        return await self.answer()

    async def connect(self) -> asyncio.StreamWriter:
        """Connect now, so that the next request starts with its first byte."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        return self._streams[1]

    async def send(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str | None = None
    ) -> None:
        """Send a request without waiting for its answer."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Content-Length: {len(content)}",
            "Content-Type: application/json",
        ]
        if self._token is not None:
            lines.append(f"Authorization: Bearer {self._token}")
        if key is not None:
            lines.append(f"Idempotency-Key: {key}")
        writer = await self.connect()
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        await writer.drain()

    async def answer(self) -> Answer:
        """Read the answer to the request that was sent."""
        assert self._streams is not None
        try:
            head = (await self._streams[0].readuntil(b"\r\n\r\n")).decode()
            status_line, *header_lines = head.lower().split("\r\n")
            headers = dict(line.split(": ", 1) for line in header_lines if line)
            content = await self._streams[0].readexactly(int(headers.get("content-length", "0")))
        except LOST:
            await self.cut()
            raise
        if headers.get("connection") == "close":
            await self.cut()
        is_json = "json" in headers.get("content-type", "")
        body = json.loads(content) if is_json else {"text": content.decode()}
        return Answer(int(status_line.split(" ")[1]), body)

    async def cut(self) -> None:
        """Drop the connection at once, whatever is under way on it."""
        if self._streams is None:
            return
        writer, self._streams = self._streams[1], None
        writer.transport.abort()
        try:
            await writer.wait_closed()
        except ConnectionError:
            return


class Device:
    """One account's WebSocket, which asks one thing at a time and keeps what else it hears."""

    def __init__(self, port: int, token: str) -> None:
        self.heard: list[Message] = []
        self._last_id = 0
        self._connecting = connect(
            f"ws://127.0.0.1:{port}/ws/",
            subprotocols=[Subprotocol("gameserver.v1"), Subprotocol(f"bearer.{token}")],
            # It reads when it is asked to, and what it has not read yet is no reason to be closed.
            max_queue=None,
        )

    async def __aenter__(self) -> Self:
        self._socket = await self._connecting
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.cut()

    async def ask(self, kind: str, **fields: Any) -> Message:
        """Send a message and return its answer, `ok` or `error`."""
        message_id = await self.send(kind, **fields)
        while (message := await self.receive()).get("re") != message_id:
            pass
        return message

    async def send(self, kind: str, **fields: Any) -> int:
        """Send a message without waiting for its answer; return its id."""
        self._last_id += 1
        await self._socket.send(json.dumps({"id": self._last_id, "type": kind, **fields}))
        return self._last_id

    async def receive(self) -> Message:
        """Return the next message; what is no answer is kept in `heard`, too."""
        message = check_defined(json.loads(await self._socket.recv()))
        if "re" not in message:
            self.heard.append(message)
        return message

    async def watch(self, game_id: str) -> None:
        """Watch a game, or go on; read on to its snapshot, if none has been heard."""
        answer = await self.ask("game.watch", game_id=game_id)
        assert answer["type"] == "ok", answer
        await self.until_version(game_id, 0)

    async def until_version(self, game_id: str, version: int) -> None:
        """Read on until a watched game is known in a version, or in a newer one."""
        while not (told := self.told(game_id)) or told[-1]["version"] < version:
            await self.receive()

    def told(self, game_id: str) -> list[Message]:
        """Return what was heard of a game."""
        return [message for message in self.heard if message.get("game_id") == game_id]

    def events(self, game_id: str) -> list[Message]:
        """Return what happened in a game after its snapshot, of which there is only one."""
        first, *changes = self.told(game_id)
        assert first["type"] == "game.snapshot"
        return [event for change in changes for event in change["events"]]

    async def cut(self) -> None:
        """Drop the connection at once, without a close frame."""
        self._socket.transport.abort()
        await self._socket.wait_closed()


class Leaving:
    """A player in his game, with a socket to one process, who asks another over HTTP."""

    def __init__(self, socket_port: int, http_port: int, player: APlayer, game: Game) -> None:
        token = player.tokens.access_token
        self.username = player.username
        self.game_id = game.game_id
        self._device = Device(socket_port, token)
        self._client = Client(http_port, token)

    async def __aenter__(self) -> Self:
        """Take a seat, or hear that he has it; the socket holds it from now on."""
        await self._device.__aenter__()
        answer = await self._device.ask("game.join", game_id=self.game_id)
        assert answer["type"] == "ok", answer
        await self._device.until_version(self.game_id, answer["game"]["version"])
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._device.cut()
        await self._client.cut()

    async def drop(self, *, says_so: bool) -> None:
        """Lose the connection; `says_so`: after leaving over it, not waiting for the answer."""
        if says_so:
            await self._device.send("game.leave", game_id=self.game_id)
        await self._device.cut()

    async def leave_twice(self) -> str | None:
        """Leave over HTTP, lose the answer, and leave again; return why that was refused."""
        path = f"/api/games/{self.game_id}/leave"
        await self._client.send("POST", path)
        await self._client.cut()
        answer = await self._client.post(path)
        return answer.code

    def is_out(self, watcher: Device) -> bool:
        """Tell whether the last that a watcher heard of him is that he is out."""
        news = [
            event["type"]
            for event in watcher.events(self.game_id)
            if self.username in {event.get("username"), event.get("player", {}).get("username")}
        ]
        return news[-1:] in (["player_left"], ["player_eliminated"])


async def at_once(requests: Iterable[Awaitable[T]]) -> list[T]:
    """Run all requests together and return their answers in order."""
    return await asyncio.gather(*requests)
