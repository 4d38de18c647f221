"""Games over HTTP: create, find, join, start, play."""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Header, Query, Router, Status

from gameserver.blocking import run_blocking
from matches import rules, schemas
from matches.schemas import (
    CreateIn,
    EliminationIn,
    EliminationOut,
    GameOut,
    GamesPage,
    GameWithPlayers,
    HistoryPage,
    JoinIn,
    KickIn,
    MapOut,
    QuickJoinIn,
)
from matches.services import find, leaving, lobby, play
from players.api import Limit
from players.bearer import identity_of
from players.rules import canonical_username
from players.services import accounts

router = Router()

Cursor = Annotated[str | None, Query(None)]
MapFilter = Annotated[str | None, Query(None, alias="map", max_length=50)]
IdempotencyKey = Annotated[
    str | None, Header(None, alias="Idempotency-Key", min_length=1, max_length=200)
]


@router.get("/maps", auth=None, response=list[MapOut])
async def list_maps(request: HttpRequest) -> list[MapOut]:
    """List the maps."""
    return [MapOut(id=map_id, title=title) for map_id, title in rules.MAPS.items()]


@router.post("/games", response={201: GameOut})
async def create_game(
    request: HttpRequest, body: CreateIn, idempotency_key: IdempotencyKey
) -> Status[GameOut]:
    """Create a game and take its first seat. A private game's answer has its `join_code`."""
    options = lobby.GameOptions(**body.model_dump())
    game = await run_blocking(
        lobby.create_game,
        identity_of(request),
        options,
        now=timezone.now(),
        idempotency_key=idempotency_key,
    )
    return Status(201, schemas.game_out(game, show_code=True))


@router.get("/games", response=GamesPage)
async def list_games(
    request: HttpRequest, limit: Limit, game_map: MapFilter, cursor: Cursor
) -> GamesPage:
    """List open games, oldest first; the list may lag behind by a moment."""
    page = await run_blocking(find.open_games, game_map, limit=limit, cursor=cursor)
    return GamesPage(
        items=[schemas.game_out(game) for game in page.games], next_cursor=page.next_cursor
    )


@router.post("/games/quick-join", response={200: GameOut, 201: GameOut})
async def quick_join(request: HttpRequest, body: QuickJoinIn | None = None) -> Status[GameOut]:
    """Take a seat in an open game (200), or create one (201)."""
    game, is_new = await run_blocking(
        find.quick_join, identity_of(request), body.map if body else None, now=timezone.now()
    )
    return Status(201 if is_new else 200, schemas.game_out(game))


@router.get("/games/{game_id}", response=GameWithPlayers)
async def get_game(request: HttpRequest, game_id: str) -> GameWithPlayers:
    """Read a game and its players. A private game's code is shown to those who sit in it."""
    game, roster = await run_blocking(lobby.load, game_id)
    return schemas.game_with_players(game, roster, viewer=identity_of(request).username)


@router.post("/games/{game_id}/join", response=GameOut)
async def join_game(request: HttpRequest, game_id: str, body: JoinIn | None = None) -> GameOut:
    """Take a seat; joining again is fine."""
    game = await run_blocking(
        lobby.join_game,
        identity_of(request),
        game_id,
        now=timezone.now(),
        join_code=body.join_code if body else None,
    )
    return schemas.game_out(game)


@router.post("/games/{game_id}/leave", response=GameOut)
async def leave_game(request: HttpRequest, game_id: str) -> GameOut:
    """Give the seat back; in a running game this is an elimination without a killer."""
    username = identity_of(request).username
    game = await run_blocking(leaving.leave_game, username, game_id, now=timezone.now())
    return schemas.game_out(game)


@router.post("/games/{game_id}/kick", response=GameOut)
async def kick_player(request: HttpRequest, game_id: str, body: KickIn) -> GameOut:
    """Take a player out of the lobby (host only)."""
    game = await run_blocking(
        leaving.kick_player,
        identity_of(request).username,
        game_id,
        canonical_username(body.username),
        now=timezone.now(),
    )
    return schemas.game_out(game)


@router.post("/games/{game_id}/start", response=GameOut)
async def start_game(request: HttpRequest, game_id: str) -> GameOut:
    """Start the game (host only); nobody joins afterwards."""
    username = identity_of(request).username
    game = await run_blocking(lobby.start_game, username, game_id, now=timezone.now())
    return schemas.game_out(game)


@router.post("/games/{game_id}/cancel", response=GameOut)
async def cancel_game(request: HttpRequest, game_id: str) -> GameOut:
    """Cancel the lobby (host only)."""
    username = identity_of(request).username
    game = await run_blocking(lobby.cancel_game, username, game_id, now=timezone.now())
    return schemas.game_out(game)


@router.post("/games/{game_id}/eliminations", response={201: EliminationOut})
async def eliminate(
    request: HttpRequest, game_id: str, body: EliminationIn, idempotency_key: IdempotencyKey
) -> Status[EliminationOut]:
    """Report an elimination: a player his own kill, a referee anybody's (or nobody's).

    With an Idempotency-Key, the same report again gives the first answer, for 24 hours.
    """
    reporter = identity_of(request)
    named = canonical_username(body.killer) if body.killer else None
    killer = rules.reported_killer(reporter.role, reporter.username, named)
    victim = canonical_username(body.victim)
    _, result = await run_blocking(
        play.eliminate_player,
        reporter,
        game_id,
        victim,
        killer,
        now=timezone.now(),
        idempotency_key=idempotency_key,
    )
    return Status(201, schemas.elimination_out(victim, killer, result))


@router.get("/players/{username}/games", response=HistoryPage)
async def list_history(
    request: HttpRequest, username: str, limit: Limit, cursor: Cursor
) -> HistoryPage:
    """List a player's games, newest first."""
    user = await run_blocking(accounts.profile, username)
    items, next_cursor = await run_blocking(find.history, user.username, limit=limit, cursor=cursor)
    return HistoryPage(
        items=[schemas.history_item(item) for item in items], next_cursor=next_cursor
    )
