"""WebSocket clients for tests: one inside this process, and one that keeps a game's state."""

import asyncio
import itertools
import json
from functools import reduce
from operator import or_
from typing import Any, Self, get_args

from pydantic import TypeAdapter

from matches import diff
from matches.diff import View
from matches.messages.server import SERVER_MESSAGES, ServerMessage
from tests.builders import APlayer

DEADLINE_SECONDS = 5.0
QUIET_SECONDS = 0.15
Message = dict[str, Any]


def kind_of(model: type[ServerMessage]) -> str:
    return str(get_args(model.model_fields["type"].annotation)[0])


def check_defined(message: Message) -> Message:
    """Check a message against its definition; fields that it does not name are an error."""
    models = [model for model in SERVER_MESSAGES if kind_of(model) == message["type"]]
    TypeAdapter(reduce(or_, models)).validate_python(message)
    return message


class Socket:
    """A WebSocket to the ASGI application in this process."""

    def __init__(self, player: APlayer | None, **handshake: Any) -> None:
        token = [f"bearer.{player.tokens.access_token}"] if player else []
        headers = handshake.get("headers", {})
        self._scope = {
            "type": "websocket",
            "path": handshake.get("path", "/ws/"),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "subprotocols": handshake.get("subprotocols", ["gameserver.v1", *token]),
        }
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._ids = itertools.count(1)
        self.subprotocol: str | None = None

    async def __aenter__(self) -> Self:
        from gameserver.asgi import application

        self._task = asyncio.create_task(
            application(self._scope, self._to_app.get, self._from_app.put)
        )
        await self._to_app.put({"type": "websocket.connect"})
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.hang_up()

    async def accepted(self) -> Message:
        """Expect to be let in; return the first message, the settings."""
        event = await self.event()
        assert event["type"] == "websocket.accept", event
        self.subprotocol = event["subprotocol"]
        return await self.receive("settings.snapshot")

    async def hang_up(self) -> None:
        """Be gone without a word, as a lost network is."""
        await self._to_app.put({"type": "websocket.disconnect", "code": 1006})
        await asyncio.wait_for(self._task, DEADLINE_SECONDS)

    async def event(self) -> Message:
        """Return the next ASGI event."""
        return await asyncio.wait_for(self._from_app.get(), DEADLINE_SECONDS)

    async def receive(self, kind: str | None = None) -> Message:
        """Return the next message, which is of this kind."""
        event = await self.event()
        assert event["type"] == "websocket.send", event
        message = check_defined(json.loads(event["text"]))
        assert kind is None or message["type"] == kind, message
        return message

    async def closed(self) -> int:
        """Return the close code, past what was sent before."""
        while (event := await self.event())["type"] != "websocket.close":
            pass
        await self._to_app.put({"type": "websocket.disconnect", "code": event["code"]})
        return int(event["code"])

    async def send_text(self, text: str) -> None:
        await self._to_app.put({"type": "websocket.receive", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        await self._to_app.put({"type": "websocket.receive", "bytes": data})

    async def send(self, kind: str, **fields: Any) -> int:
        """Send a message; return its id."""
        message_id = next(self._ids)
        await self.send_text(json.dumps({"id": message_id, "type": kind, **fields}))
        return message_id

    async def ask(self, kind: str, **fields: Any) -> Message:
        """Send a message and return its answer; what comes before the answer is dropped."""
        message_id = await self.send(kind, **fields)
        while (message := await self.receive()).get("re") != message_id:
            pass
        return message

    async def ok(self, kind: str, **fields: Any) -> Message:
        answer = await self.ask(kind, **fields)
        assert answer["type"] == "ok", answer
        return answer

    async def refused(self, kind: str, **fields: Any) -> str:
        """Send what will be refused; return the code."""
        answer = await self.ask(kind, **fields)
        assert answer["type"] == "error", answer
        return str(answer["code"])

    async def watch(self, game_id: str) -> "Story":
        await self.ok("game.watch", game_id=game_id)
        return Story(await self.receive("game.snapshot"))

    async def hears_nothing(self) -> bool:
        """Tell whether nothing comes for a moment."""
        try:
            await asyncio.wait_for(self._from_app.get(), QUIET_SECONDS)
        except TimeoutError:
            return True
        return False


class Story:
    """A game as a client knows it: from a snapshot and the changes after it alone."""

    def __init__(self, snapshot: Message) -> None:
        self.view: View = {}
        self.take(snapshot)

    @property
    def version(self) -> int:
        return int(self.view["version"])

    @property
    def names(self) -> list[str]:
        return [player["username"] for player in self.view["players"]]

    def take(self, message: Message) -> list[str]:
        """Apply a push; return the types of its events. A gap in the chain is an error."""
        if message["type"] == "game.snapshot":
            self.view = {name: message[name] for name in ("version", "game", "players", "away")}
            return []
        assert message["type"] == "game.changed", message
        assert message["from_version"] == self.version, "a gap"
        self.view = diff.apply(self.view, message)
        return [event["type"] for event in message["events"]]
