"""The HTTP API's wiring: one NinjaAPI, its routers, its parser, and errors in one place."""

from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from ninja.parser import Parser

from gameserver import problems, strict_json
from gameserver.errors import (
    BodyTooLarge,
    GameServerError,
    MalformedRequest,
    NotAuthenticated,
    ValidationFailed,
)
from matches.api import router as games
from matches.me_api import router as me
from matches.search_api import search_router as search
from players.api import router as players
from players.bearer import bearer
from settings_singleton.api import router as settings

# What any operation may answer besides its own successes; codes are in docs/protocol.md.
PROBLEM_STATUSES = (400, 401, 403, 404, 405, 409, 413, 422, 426, 429, 500, 503)


class StrictParser(Parser):
    """Accept only JSON that can be stored and given back unchanged."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the body's object.

        Raises: ValueError (answered as `malformed_request`), ValidationFailed for another value.
        """
        value = strict_json.loads(request.body.decode())
        if not isinstance(value, dict):
            # Here, because the parameters' parser takes an empty list or 0 for no body at all.
            raise ValidationFailed(errors=[{"loc": ["body"], "msg": "Input should be an object"}])
        return value


class Api(NinjaAPI):
    """NinjaAPI whose document also says which problems every operation may answer."""

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        schema["components"].setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
        content = {problems.CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        for path in schema["paths"].values():
            for operation in path.values():
                for status in PROBLEM_STATUSES:
                    operation["responses"].setdefault(
                        status, {"description": "Problem", "content": content}
                    )
        return schema


PROBLEM_SCHEMA = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457 problem details; `code` is stable, the texts are not.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}

api = Api(
    title="Game server",
    version="1",
    description="Create, find, join and play last-one-standing games.",
    parser=StrictParser(),
    auth=bearer,
)
api.add_router("", settings, tags=["settings"])
api.add_router("", me, tags=["players"])
api.add_router("", players, tags=["players"])
# Before the games: /games/search is no game's id.
api.add_router("", search, tags=["games"])
api.add_router("", games, tags=["games"])


@api.exception_handler(GameServerError)
def on_domain_error(request: HttpRequest, error: GameServerError) -> HttpResponse:
    return problems.problem(error)


@api.exception_handler(AuthenticationError)
def on_missing_token(request: HttpRequest, error: AuthenticationError) -> HttpResponse:
    return problems.problem(NotAuthenticated())


@api.exception_handler(ValidationError)
def on_invalid_request(request: HttpRequest, error: ValidationError) -> HttpResponse:
    # Where and what, never the value itself: it may be a password.
    errors = [{"loc": _place(each["loc"]), "msg": each["msg"]} for each in error.errors]
    return problems.problem(ValidationFailed(errors=errors))


def _place(loc: tuple[str | int, ...]) -> list[str | int]:
    # A body's second part is the name of our function's parameter.
    return ["body", *loc[2:]] if loc[0] == "body" else list(loc)


@api.exception_handler(HttpError)
def on_malformed_body(request: HttpRequest, error: HttpError) -> HttpResponse:
    if isinstance(error.__cause__, ValidationFailed):
        return problems.problem(error.__cause__)
    return problems.problem(
        MalformedRequest("The body is not JSON that can be stored and given back unchanged.")
    )


@api.exception_handler(SuspiciousOperation)
def on_suspicious_request(request: HttpRequest, error: SuspiciousOperation) -> HttpResponse:
    return problems.problem(MalformedRequest())


@api.exception_handler(RequestDataTooBig)
def on_large_body(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    return problems.problem(BodyTooLarge())


@api.exception_handler(Exception)
def on_unexpected_error(request: HttpRequest, error: Exception) -> HttpResponse:
    return problems.internal_error(error, request.META.get("REQUEST_ID", ""))
