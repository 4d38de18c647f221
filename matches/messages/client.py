"""What clients send; validated by these classes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gameserver.errors import ValidationFailed
from gameserver.feeds.frames import to_json

MAX_MESSAGE_BYTES = 16 * 1024
MAX_RELAY_BYTES = 1024
MAX_CHAT_LENGTH = 300

GameId = Annotated[str, Field(max_length=64)]
ChatText = Annotated[
    str,
    StringConstraints(
        strip_whitespace=True,
        min_length=1,
        max_length=MAX_CHAT_LENGTH,
        pattern=r"^[^\x00-\x1f\x7f]*$",
    ),
]


class ClientMessage(BaseModel):
    """What a client sends. `id` is its own, echoed as `re`; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    id: int | Annotated[str, Field(max_length=64)] | None = None
    type: str


class GameMessage(ClientMessage):
    """A message about one game."""

    game_id: GameId


class Ping(ClientMessage):
    """Show that the client is there; answered by `ok`."""

    type: Literal["ping"]


class LobbyWatch(ClientMessage):
    """Follow the open games, of one map or of all. Another `lobby.watch` replaces it."""

    type: Literal["lobby.watch"]
    map: Annotated[str, Field(max_length=50)] | None = None


class LobbyUnwatch(ClientMessage):
    """Follow the open games no more."""

    type: Literal["lobby.unwatch"]


class GameWatch(GameMessage):
    """Follow a game: a snapshot, then every change. Again: a fresh snapshot."""

    type: Literal["game.watch"]


class GameUnwatch(GameMessage):
    """Follow a game no more."""

    type: Literal["game.unwatch"]


class GameJoin(GameMessage):
    """Take a seat, as POST /api/games/{id}/join, and watch; answered with the game."""

    type: Literal["game.join"]
    join_code: Annotated[str, Field(max_length=50)] | None = None


class GameLeave(GameMessage):
    """Give the seat back, as POST /api/games/{id}/leave; answered with the game."""

    type: Literal["game.leave"]


class GameStart(GameMessage):
    """Start the game (its host), as POST /api/games/{id}/start; answered with the game."""

    type: Literal["game.start"]


class GameEliminate(GameMessage):
    """Report an elimination, as POST /api/games/{id}/eliminations; answered with its result."""

    type: Literal["game.eliminate"]
    victim: Annotated[str, Field(max_length=100)]
    killer: Annotated[str, Field(max_length=100)] | None = None


class GameChat(GameMessage):
    """Say something to the game's players: 1 to 300 characters, at most 60 times a minute."""

    type: Literal["game.chat"]
    text: ChatText


class GameRelay(GameMessage):
    """Pass any JSON value (1 KB as compact UTF-8) to the game's players: at most once."""

    type: Literal["game.relay"]
    data: Any

    @property
    def text(self) -> str:
        """The data as compact JSON.

        Raises: ValidationFailed if it has more than 1 KB.
        """
        text = to_json(self.data)
        if len(text.encode()) > MAX_RELAY_BYTES:
            raise ValidationFailed(f"data has more than {MAX_RELAY_BYTES} bytes.")
        return text


CLIENT_MESSAGES: dict[str, type[ClientMessage]] = {
    model.model_fields["type"].annotation.__args__[0]: model  # type: ignore[union-attr]
    for model in (
        Ping,
        LobbyWatch,
        LobbyUnwatch,
        GameWatch,
        GameUnwatch,
        GameJoin,
        GameLeave,
        GameStart,
        GameEliminate,
        GameChat,
        GameRelay,
    )
}
