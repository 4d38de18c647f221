"""Game clients that cost less than the server they race on: raw HTTP/1.1 over asyncio."""

import asyncio
import json
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self, TypeVar

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


async def at_once(requests: Iterable[Awaitable[T]]) -> list[T]:
    """Run all requests together and return their answers in order."""
    return await asyncio.gather(*requests)
