"""The WebSocket's document: AsyncAPI 3, generated from the classes that validate the messages.

Served as JSON, and as a page that needs nothing but the server.
"""

from collections.abc import Iterator
from typing import Any, get_args

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core.core_schema import TaggedUnionSchema

from matches.messages.client import CLIENT_MESSAGES
from matches.messages.close_codes import CLOSE_CODES
from matches.messages.server import SERVER_MESSAGES, GameChanged, Ok, OkElimination, OkGame

Json = dict[str, Any]
SCHEMAS = "#/components/schemas/{model}"
MESSAGES = "#/channels/socket/messages/"

# What answers what; the rest is answered by a bare `ok`. Everything can be answered by `error`.
ANSWERS: dict[str, type[Ok]] = {
    "game.join": OkGame,
    "game.leave": OkGame,
    "game.start": OkGame,
    "game.eliminate": OkElimination,
}
EVENTS = get_args(get_args(GameChanged.model_fields["events"].annotation)[0])[0]


class _SchemaObjects(GenerateJsonSchema):
    """JSON Schema without OpenAPI's `discriminator` object, which AsyncAPI does not know.

    The constant `type` of each choice tells them apart as well.

    Source: AsyncAPI specification 3.0.0, "Schema Object": draft 07, `discriminator` a string.
    """

    def tagged_union_schema(self, schema: TaggedUnionSchema) -> JsonSchemaValue:
        choices = super().tagged_union_schema(schema)
        choices.pop("discriminator", None)
        return choices


def document() -> Json:
    """Return the AsyncAPI 3.0 document as JSON values."""
    models: list[type[BaseModel]] = [*CLIENT_MESSAGES.values(), *SERVER_MESSAGES]
    _, definitions = models_json_schema(
        [(model, "validation") for model in models],
        ref_template=SCHEMAS,
        schema_generator=_SchemaObjects,
    )
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Game server: WebSocket",
            "version": "1",
            "description": "Follow games and lobbies as they change, and act in them. "
            f"Close codes: {'; '.join(f'{code}: {why}' for code, why in CLOSE_CODES.items())}",
        },
        "defaultContentType": "application/json",
        "channels": {
            "socket": {
                "address": "/ws/",
                "description": "Offer the sub-protocols `gameserver.v1` and `bearer.<token>`.",
                "bindings": {"ws": {"method": "GET"}},
                "messages": {
                    model.__name__: {"$ref": f"#/components/messages/{model.__name__}"}
                    for model in models
                },
            }
        },
        "operations": {**dict(_received()), **dict(_sent())},
        "components": {
            "messages": {model.__name__: _message(model) for model in models},
            "schemas": definitions["$defs"],
        },
    }


async def asyncapi_json(request: HttpRequest) -> JsonResponse:
    """Serve the document."""
    return JsonResponse(document())


async def asyncapi_page(request: HttpRequest) -> HttpResponse:
    """Show the document to people."""
    context = {
        "groups": [
            ("From the client", [_shown(model) for model in CLIENT_MESSAGES.values()]),
            ("From the server", [_shown(model) for model in SERVER_MESSAGES]),
            ("Events of game.changed", [_shown(model) for model in get_args(EVENTS)]),
        ],
        "close_codes": CLOSE_CODES,
    }
    return render(request, "gameserver/websocket.html", context)


def _received() -> Iterator[tuple[str, Json]]:
    for kind, model in CLIENT_MESSAGES.items():
        answer = ANSWERS.get(kind, Ok)
        yield (
            f"receive{model.__name__}",
            {
                "action": "receive",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [{"$ref": f"{MESSAGES}{model.__name__}"}],
                "reply": {
                    "channel": {"$ref": "#/channels/socket"},
                    "messages": [
                        {"$ref": f"{MESSAGES}{answer.__name__}"},
                        {"$ref": f"{MESSAGES}Error"},
                    ],
                },
            },
        )


def _sent() -> Iterator[tuple[str, Json]]:
    for model in SERVER_MESSAGES:
        if issubclass(model, Ok) or model.__name__ == "Error":
            continue
        yield (
            f"send{model.__name__}",
            {
                "action": "send",
                "channel": {"$ref": "#/channels/socket"},
                "messages": [{"$ref": f"{MESSAGES}{model.__name__}"}],
            },
        )


def _message(model: type[BaseModel]) -> Json:
    return {
        "name": kind_of(model),
        "title": model.__name__,
        "summary": summary_of(model),
        "payload": {"$ref": SCHEMAS.format(model=model.__name__)},
    }


def kind_of(model: type[BaseModel]) -> str:
    """Return the `type` of a message or an event."""
    return str(get_args(model.model_fields["type"].annotation)[0])


def _shown(model: type[BaseModel]) -> Json:
    return {"kind": kind_of(model), "summary": summary_of(model), "fields": list(fields_of(model))}


def fields_of(model: type[BaseModel]) -> Iterator[tuple[str, str, bool]]:
    """Name a message's fields beside `type` and the client's own `id`."""
    schema = model.model_json_schema(ref_template=SCHEMAS)
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        if name not in {"type", "id"}:
            yield name, _kind(field), name in required


def _kind(field: Json) -> str:
    match field:
        case {"$ref": reference}:
            kind = str(reference).rsplit("/", 1)[-1]
        case {"anyOf": choices}:
            kind = " or ".join(_kind(one) for one in choices)
        case {"const": value}:
            kind = f'"{value}"'
        case {"enum": values}:
            kind = " or ".join(f'"{one}"' for one in values)
        case {"type": "array", "items": {"oneOf": _}}:
            kind = "list of events"
        case {"type": "array", "items": items}:
            kind = f"list of {_kind(items)}"
        case {"format": "date-time"}:
            kind = "time"
        case {"type": kind, "maxLength": limit}:
            kind = f"{kind}, at most {limit} characters"
        case _:
            kind = str(field.get("type", "any JSON value"))
    return kind


def summary_of(model: type[BaseModel]) -> str:
    """Return a message's docstring in one line."""
    return " ".join((model.__doc__ or "").split())
