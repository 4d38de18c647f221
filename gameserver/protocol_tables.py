"""The tables of docs/protocol.md, generated from the code, so that both say the same."""

from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel

from gameserver.api import api
from gameserver.asyncapi import EVENTS, fields_of, kind_of, summary_of
from gameserver.errors import GameServerError
from matches.messages.client import CLIENT_MESSAGES
from matches.messages.close_codes import CLOSE_CODES
from matches.messages.server import SERVER_MESSAGES

Json = dict[str, Any]
Rows = Iterable[Iterable[str]]


def tables() -> dict[str, str]:
    """Map each generated section's name to its Markdown."""
    document = api.get_openapi_schema()
    return {
        "operations": _table("Request | Who | Fields | Answer", _operations(document)),
        "objects": _table("Object | Fields", _objects(document)),
        "errors": _table("Code | Status | Meaning", _errors()),
        "client": _messages(CLIENT_MESSAGES.values()),
        "server": _messages(SERVER_MESSAGES),
        "events": _messages(get_args(EVENTS)),
        "close_codes": _table(
            "Code | Why", ((str(code), why) for code, why in CLOSE_CODES.items())
        ),
    }


def fill(text: str) -> str:
    """Replace what stands between `<!-- name -->` and `<!-- end name -->` by that table.

    Raises: ValueError if a section is missing.
    """
    for name, table in tables().items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        head, found, rest = text.partition(begin)
        _, found_end, tail = rest.partition(end)
        if not found or not found_end:
            raise ValueError(f"no section {name}")
        text = f"{head}{begin}\n{table}\n{end}{tail}"
    return text


def _operations(document: Json) -> Iterator[tuple[str, ...]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            asked = [one["name"] for one in operation.get("parameters", []) if one["in"] != "path"]
            successes = [str(code) for code in operation["responses"] if int(code) < 400]
            summary = operation.get("description") or operation["summary"]
            yield (
                f"`{method.upper()} {path}`<br>{' '.join(summary.split())}",
                "player" if operation.get("security") else "anybody",
                ", ".join(f"`{name}`" for name in [*asked, *_body_fields(document, operation)]),
                ", ".join(successes),
            )


def _body_fields(document: Json, operation: Json) -> list[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schemas = [body.get("schema", {}), *body.get("schema", {}).get("anyOf", [])]
    names = [str(one["$ref"]).rsplit("/", 1)[-1] for one in schemas if "$ref" in one]
    return [
        field if field in schema.get("required", []) else f"{field}?"
        for schema in (document["components"]["schemas"][name] for name in names)
        for field in schema["properties"]
    ]


def _objects(document: Json) -> Iterator[tuple[str, str]]:
    for name, schema in document["components"]["schemas"].items():
        if not name.endswith("In"):
            yield name, ", ".join(f"`{field}`" for field in schema["properties"])


def _errors() -> Iterator[tuple[str, str, str]]:
    for error in sorted(_subclasses(GameServerError), key=lambda one: one.code):
        yield f"`{error.code}`", str(error.status), error.title


def _subclasses(of: type[GameServerError]) -> Iterator[type[GameServerError]]:
    for error in of.__subclasses__():
        # Not those that a test made up.
        if not error.__module__.startswith("tests"):
            yield error
        yield from _subclasses(error)


def _messages(models: Iterable[type[BaseModel]]) -> str:
    parts = []
    for model in models:
        parts.append(f"**`{kind_of(model)}`** {summary_of(model)}")
        rows = [
            (f"`{name}`", kind, "yes" if is_required else "no")
            for name, kind, is_required in fields_of(model)
        ]
        if rows:
            parts.append(_table("Field | Type | Required", rows).rstrip())
    return "\n\n".join(parts) + "\n"


def _table(head: str, rows: Rows) -> str:
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
