"""What the server sends; tests check it against these classes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gameserver.times import Timestamp
from matches.schemas import EliminationOut, GameOut, PlayerOut


class ServerMessage(BaseModel):
    """What the server sends. Clients ignore types and fields that they do not know."""

    model_config = ConfigDict(extra="forbid")

    type: str


class Ok(ServerMessage):
    """The answer to a message that was carried out."""

    type: Literal["ok"]
    re: int | str | None


class OkGame(Ok):
    """The answer to `game.join`, `game.leave` and `game.start`: the game after it."""

    game: GameOut


class OkElimination(Ok):
    """The answer to `game.eliminate`."""

    elimination: EliminationOut


class Error(ServerMessage):
    """The answer to a message that was refused: `code` as in HTTP's problems, and its extras."""

    model_config = ConfigDict(extra="allow")

    type: Literal["error"]
    re: int | str | None
    code: str
    detail: str
    retry_after: float | None = None


class SettingsSnapshot(ServerMessage):
    """The first message of every connection: the public settings."""

    type: Literal["settings.snapshot"]
    revision: int
    flags: dict[str, bool | int | str]


class SettingsChanged(ServerMessage):
    """The public settings after a change."""

    type: Literal["settings.changed"]
    revision: int
    flags: dict[str, bool | int | str]


class Notice(ServerMessage):
    """The server restarts, or maintenance begins: connections are closed (1012) in `seconds`."""

    type: Literal["notice"]
    code: Literal["restart", "maintenance"]
    seconds: float


class LobbySnapshot(ServerMessage):
    """The open games, oldest first; at most 100. `map` is null for all maps."""

    type: Literal["lobby.snapshot"]
    map: str | None
    games: list[GameOut]


class LobbyChanged(ServerMessage):
    """Open games that are new or changed, and the ids of those that are open no more."""

    type: Literal["lobby.changed"]
    map: str | None
    games: list[GameOut]
    removed: list[str]


class GameSnapshot(ServerMessage):
    """A game's whole state. Replaces what the client knew, whenever it comes.

    `away`: the players who dropped, and whose seats are held for them.
    """

    type: Literal["game.snapshot"]
    game_id: str
    version: int
    game: GameOut
    players: list[PlayerOut]
    away: list[str]


class PlayerJoined(BaseModel):
    """A player took a seat."""

    type: Literal["player_joined"]
    player: PlayerOut


class PlayerLeft(BaseModel):
    """A player left the lobby, or was taken out of it."""

    type: Literal["player_left"]
    username: str


class HostChanged(BaseModel):
    """The host's role passed on."""

    type: Literal["host_changed"]
    host: str


class GameStarted(BaseModel):
    """The game started; nobody joins any more."""

    type: Literal["game_started"]
    started_at: Timestamp


class PlayerAway(BaseModel):
    """A player's last connection is gone; his seat is held for `reconnect_grace_seconds`."""

    type: Literal["player_away"]
    username: str


class PlayerBack(BaseModel):
    """A player who was away is connected again."""

    type: Literal["player_back"]
    username: str


class PlayerEliminated(BaseModel):
    """A player is out. `eliminated_by`, if not null, has one kill more."""

    type: Literal["player_eliminated"]
    username: str
    placement: int
    eliminated_by: str | None


class GameFinished(BaseModel):
    """The game is over; the winner's placement is 1. Null: it timed out without one."""

    type: Literal["game_finished"]
    winner: str | None


class GameCancelled(BaseModel):
    """The lobby was cancelled."""

    type: Literal["game_cancelled"]


Event = Annotated[
    PlayerJoined
    | PlayerLeft
    | HostChanged
    | GameStarted
    | PlayerAway
    | PlayerBack
    | PlayerEliminated
    | GameFinished
    | GameCancelled,
    Field(discriminator="type"),
]


class GameChanged(ServerMessage):
    """What makes version `version` of `from_version`, the last one this client was sent."""

    type: Literal["game.changed"]
    game_id: str
    from_version: int
    version: int
    game: GameOut
    events: list[Event]


class GameSaid(ServerMessage):
    """A player of the game said something."""

    type: Literal["game.chat"]
    game_id: str
    username: str
    text: str
    sent_at: Timestamp


class Relayed(BaseModel):
    """One relayed value and who sent it."""

    username: str
    data: Any


class GameRelayed(ServerMessage):
    """What players relayed since the last such message, in the order of arrival."""

    type: Literal["game.relay"]
    game_id: str
    messages: list[Relayed]


SERVER_MESSAGES: tuple[type[ServerMessage], ...] = (
    Ok,
    OkGame,
    OkElimination,
    Error,
    SettingsSnapshot,
    SettingsChanged,
    Notice,
    LobbySnapshot,
    LobbyChanged,
    GameSnapshot,
    GameChanged,
    GameSaid,
    GameRelayed,
)
