"""Search open games by a sentence: a model turns it into a filter, and this module applies it.

The model's answer can only choose among maps, fill levels and orders; whatever else it says is
refused. It never sees a game, a player or a key. Without it the plain list is shown.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import structlog
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from cachetools import TTLCache
from prometheus_client import Counter

from matches import bedrock
from matches.models import Game
from matches.rules import MAPS
from matches.services import find
from settings_singleton.services import require_flag

MAX_QUERY_LENGTH = 200
# Games looked at per map; the list of a map is read in one Query.
MAX_GAMES_PER_MAP = 100
# The model takes a second or so; it must not use up the threads that games need.
MAX_CONCURRENT_QUESTIONS = 4

Fill = Literal["any", "nearly_empty", "half_full", "nearly_full"]
Order = Literal["oldest", "newest", "fullest", "emptiest"]
FallbackReason = Literal["model_timeout", "model_error", "model_answer_invalid", "model_busy"]

ANSWERS = Counter("search_answers_total", "Searches by what answered them", ["by"])

_log = structlog.get_logger(__name__)
_slots = threading.BoundedSemaphore(MAX_CONCURRENT_QUESTIONS)
_known: TTLCache[str, "Filter"] = TTLCache(1_000, 300)
_knowing = threading.Lock()


class InvalidAnswer(Exception):
    """The model said something that is no filter."""


@dataclass(frozen=True)
class Filter:
    """Which open games, in which order. No maps means all."""

    maps: tuple[str, ...] = ()
    fill: Fill = "any"
    order: Order = "oldest"


@dataclass(frozen=True)
class Found:
    """The games, and how they were chosen; `filter` is None where the plain list is shown."""

    games: list[Game]
    filter: Filter | None
    fallback_reason: FallbackReason | None


TOOL: dict[str, Any] = {
    "name": "filter_games",
    "description": "Choose which open games of a last-one-standing game to show.",
    "inputSchema": {
        "json": {
            "type": "object",
            "properties": {
                "maps": {
                    "type": "array",
                    "items": {"type": "string", "enum": list(MAPS)},
                    "description": "Only these maps; empty for all.",
                },
                "fill": {
                    "type": "string",
                    "enum": list(get_args(Fill)),
                    "description": "How many of the seats are taken: under a third, between, "
                    "over two thirds.",
                },
                "order": {"type": "string", "enum": list(get_args(Order))},
            },
            "required": ["maps", "fill", "order"],
            "additionalProperties": False,
        }
    },
}


def search(
    query: str, *, limit: int, ask: Callable[[str, dict[str, Any]], Any] = bedrock.ask
) -> Found:
    """Find open games that fit a player's sentence (at most 200 characters).

    Raises: FeatureDisabled (`feature_disabled`) while `ai_search_enabled` is off.
    """
    require_flag("ai_search_enabled")
    wanted = _filter_of(query, ask)
    if isinstance(wanted, Filter):
        ANSWERS.labels("model").inc()
        return Found(apply(wanted, _open_games(wanted.maps))[:limit], wanted, None)
    ANSWERS.labels(wanted).inc()
    return Found(find.open_games(None, limit=limit).games, None, wanted)


def parse(answer: object) -> Filter:
    """Check a tool call's input, value by value; what it leaves out has its default.

    Raises: InvalidAnswer.
    """
    if not isinstance(answer, dict) or not answer.keys() <= {"maps", "fill", "order"}:
        raise InvalidAnswer
    maps = answer.get("maps", [])
    if not isinstance(maps, list) or not all(isinstance(one, str) and one in MAPS for one in maps):
        raise InvalidAnswer
    fill, order = answer.get("fill", "any"), answer.get("order", "oldest")
    if fill not in get_args(Fill) or order not in get_args(Order):
        raise InvalidAnswer
    return Filter(tuple(dict.fromkeys(maps)), cast(Fill, fill), cast(Order, order))


def apply(wanted: Filter, games: Iterable[Game]) -> list[Game]:
    """Return the games that fit, in the wanted order; ties by age."""
    fitting = [
        game
        for game in games
        if (not wanted.maps or game.map in wanted.maps) and _has_fill(game, wanted.fill)
    ]
    fitting.sort(key=lambda game: str(game.listed_at), reverse=wanted.order == "newest")
    if wanted.order in {"fullest", "emptiest"}:
        fitting.sort(key=_fullness, reverse=wanted.order == "fullest")
    return fitting


def _filter_of(query: str, ask: Callable[[str, dict[str, Any]], Any]) -> Filter | FallbackReason:
    key = " ".join(query.casefold().split())
    with _knowing:
        if (known := _known.get(key)) is not None:
            return known
    if not _slots.acquire(blocking=False):
        return "model_busy"
    try:
        wanted = parse(ask(query, TOOL))
    except (ReadTimeoutError, ConnectTimeoutError):
        return "model_timeout"
    except (InvalidAnswer, bedrock.NoToolCall):
        return "model_answer_invalid"
    except (BotoCoreError, ClientError) as error:
        _log.warning("search_model_failed", error=repr(error))
        return "model_error"
    finally:
        _slots.release()
    with _knowing:
        _known[key] = wanted
    return wanted


def _open_games(maps: tuple[str, ...]) -> list[Game]:
    return [
        game
        for one_map in maps or MAPS
        for game in find.open_games(one_map, limit=MAX_GAMES_PER_MAP).games
    ]


def _has_fill(game: Game, fill: Fill) -> bool:
    match fill:
        case "nearly_empty":
            return _fullness(game) < 1 / 3
        case "half_full":
            return 1 / 3 <= _fullness(game) <= 2 / 3
        case "nearly_full":
            return _fullness(game) > 2 / 3
    return True


def _fullness(game: Game) -> float:
    return int(game.player_count) / int(game.max_players)
