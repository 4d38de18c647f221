"""Search open games by a sentence, over HTTP."""

from dataclasses import asdict
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Schema

from gameserver.blocking import run_blocking
from matches import schemas, search
from matches.schemas import GameOut
from players.api import Limit

search_router = Router()

Sentence = Annotated[str, Query(..., min_length=1, max_length=search.MAX_QUERY_LENGTH)]


class FilterOut(Schema):
    """What the sentence was understood as; no maps means all."""

    maps: list[str]
    fill: search.Fill
    order: search.Order


class SearchOut(Schema):
    """Open games; without the model's help (`used_ai` false) it is the plain list."""

    items: list[GameOut]
    next_cursor: None = None
    used_ai: bool
    filter: FilterOut | None
    fallback_reason: search.FallbackReason | None


@search_router.get("/games/search", response=SearchOut)
async def search_games(request: HttpRequest, q: Sentence, limit: Limit) -> SearchOut:
    """Find open games by a sentence: "a nearly full desert game"."""
    found = await run_blocking(search.search, q, limit=limit)
    return SearchOut(
        items=[schemas.game_out(game) for game in found.games],
        used_ai=found.filter is not None,
        filter=FilterOut(**asdict(found.filter)) if found.filter else None,
        fallback_reason=found.fallback_reason,
    )
