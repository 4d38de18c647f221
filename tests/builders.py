"""What tests are made of: players, games, and a client that speaks to the ASGI application."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from gameserver.auth import Identity
from matches.models import OPEN, STARTED, Game
from matches.services import lobby
from matches.services.lobby import GameOptions
from players.models import Credential, User
from players.services import sessions
from players.services.sessions import Tokens

# Tokens carry times that PyJWT compares with the clock, so builders live in the present.
NOW = datetime.now(UTC).replace(microsecond=0)
MAP = "dirty-desert"
PASSWORD = "correct horse"
PROBLEM_FIELDS = {"type", "title", "status", "detail", "code"}
PROFILE_FIELDS = {"username", "display_name", "is_guest", "created_at", "stats"}
OWN_PROFILE_FIELDS = PROFILE_FIELDS | {"current_game", "role"}
NO_STATS = {"games_played": 0, "wins": 0, "kills": 0, "deaths": 0, "coins": 0}
GAME_FIELDS = {
    *("game_id", "map", "status", "host", "player_count", "max_players", "min_players"),
    *("alive_count", "is_private", "version", "created_at", "started_at", "ended_at", "winner"),
}
SEAT_FIELDS = {
    *("username", "display_name", "joined_at", "is_alive", "kills", "placement", "eliminated_by")
}


@dataclass(frozen=True)
class APlayer:
    """An account with an open session."""

    identity: Identity
    tokens: Tokens

    @property
    def username(self) -> str:
        return self.identity.username

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens.access_token}"}

    @property
    def user(self) -> User:
        """The account as it stands."""
        user = User.by_username(self.username, consistent=True)
        assert user is not None
        return user


def a_player(username: str = "alice", *, role: str = "player", now: datetime = NOW) -> APlayer:
    """Store an account whose password nothing matches, and log it in."""
    user = User.new(username, username.title(), now=now)
    user.role = role
    User.create_with_credential(user, Credential.new(username, "!"))
    return logged_in(username)


def players(*usernames: str) -> list[APlayer]:
    """Store several accounts."""
    return [a_player(username) for username in usernames]


def logged_in(username: str) -> APlayer:
    """Open another session of an account, without its password."""
    tokens = sessions.open_session(username, now=datetime.now(UTC))
    return APlayer(sessions.authenticate(tokens.access_token, now=datetime.now(UTC)), tokens)


def a_game(
    host: APlayer,
    *guests: APlayer,
    status: str = OPEN,
    game_map: str = MAP,
    now: datetime = NOW,
    **options: Any,
) -> Game:
    """Store a game: `guests` join a second apart; `status` is OPEN, STARTED or CANCELLED."""
    game = lobby.create_game(host.identity, GameOptions(map=game_map, **options), now=now)
    for seconds, guest in enumerate(guests, 1):
        game = lobby.join_game(
            guest.identity,
            game.game_id,
            now=now + timedelta(seconds=seconds),
            join_code=game.join_code,
        )
    later = now + timedelta(minutes=1)
    if status == STARTED:
        return lobby.start_game(host.username, game.game_id, now=later)
    if status != OPEN:
        return lobby.cancel_game(host.username, game.game_id, now=later)
    return game


def stored(game: Game | str) -> Game:
    """Read a game as it stands."""
    return lobby.existing_game(game if isinstance(game, str) else game.game_id)


class Api:
    """An HTTP client of the ASGI application in this process; paths start after /api."""

    def __init__(self) -> None:
        from gameserver.asgi import application

        # A 500 is an answer to look at, not an exception to see through.
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def send(
        self, method: str, path: str, by: APlayer | None = None, **kwargs: Any
    ) -> httpx.Response:
        headers = {**(by.headers if by else {}), **kwargs.pop("headers", {})}
        return await self.client.request(method, f"/api{path}", headers=headers, **kwargs)

    async def get(self, path: str, by: APlayer | None = None, **params: Any) -> httpx.Response:
        # httpx would replace a query that is in the path.
        return await self.send("GET", path, by, **({"params": params} if params else {}))

    async def post(self, path: str, by: APlayer | None = None, **body: Any) -> httpx.Response:
        """Send `body`; nothing at all if it is empty."""
        return await self.send("POST", path, by, **({"json": body} if body else {}))


def ok(response: httpx.Response, status: int = 200) -> Any:
    """Check for success and return the body."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"].startswith("application/json")
    return response.json()


def refusal(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that an answer is the problem that was expected, in RFC 9457's shape; return it."""
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert body.keys() >= PROBLEM_FIELDS
    assert body["status"] == status
    assert len(response.headers["X-Request-ID"]) == 32
    return body
