"""The documents say what the code does."""

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from django.conf import settings
from django.test import AsyncClient
from jsonschema import Draft7Validator

from gameserver.asyncapi import ANSWERS, document
from gameserver.feeds import connection
from gameserver.protocol_tables import fill
from matches.consumers.commands import ALWAYS_OPEN, HANDLERS
from matches.messages.client import CLIENT_MESSAGES
from matches.messages.close_codes import CLOSE_CODES
from settings_singleton.testing import override_flags


def test_the_tables_of_the_protocol_are_those_of_the_code() -> None:
    text = (settings.BASE_DIR / "docs" / "protocol.md").read_text()
    assert fill(text) == text, "run manage.py asyncapi --write-tables"


def test_every_message_of_a_client_has_a_handler_and_the_other_way_round() -> None:
    assert HANDLERS.keys() == CLIENT_MESSAGES.keys()
    assert HANDLERS.keys() >= ALWAYS_OPEN
    assert ANSWERS.keys() <= HANDLERS.keys()


def test_every_close_code_of_the_server_is_documented() -> None:
    codes = {
        value for name, value in vars(connection).items() if type(value) is int and name.isupper()
    }
    assert {code for code in codes if 1000 < code < 5000} <= CLOSE_CODES.keys()


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_every_reference_of_the_asyncapi_document_leads_somewhere() -> None:
    whole = document()
    found = set(references(whole))
    assert len(found) > 50
    for reference in found:
        place: Any = whole
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
        assert place


def test_the_asyncapi_document_has_what_version_3_requires() -> None:
    # Source: AsyncAPI specification 3.0.0.
    whole = document()
    assert whole["asyncapi"] == "3.0.0"
    assert whole["info"].keys() >= {"title", "version"}
    assert {one["action"] for one in whole["operations"].values()} == {"send", "receive"}
    for operation in whole["operations"].values():
        assert operation["channel"] == {"$ref": "#/channels/socket"}
        for message in operation["messages"]:
            assert re.fullmatch(r"#/channels/socket/messages/\w+", message["$ref"])
    assert json.loads(json.dumps(whole)) == whole


def test_the_asyncapi_documents_schemas_use_nothing_that_draft_7_does_not_know() -> None:
    # Source: AsyncAPI specification 3.0.0, "Schema Object": JSON Schema draft 07. Pydantic writes
    # for OpenAPI 3.1, whose `discriminator` means another thing there.
    strict = {**Draft7Validator.META_SCHEMA, "additionalProperties": False}
    # Without it, "#" is this schema and not the lenient one that the name stands for.
    del strict["$id"]
    for name, schema in document()["components"]["schemas"].items():
        problems = [error.message for error in Draft7Validator(strict).iter_errors(schema)]
        assert not problems, (name, problems)


@override_flags()
async def test_the_document_and_its_page_are_served() -> None:
    client = AsyncClient()
    served = await client.get("/api/asyncapi.json")
    assert cast(Any, served).json() == document()
    page = (await client.get("/api/docs/websocket")).content.decode()
    assert all(f"<code>{kind}</code>" in page for kind in CLIENT_MESSAGES)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)


@pytest.mark.parametrize("name", ["operations", "close_codes"])
def test_a_page_without_a_section_is_noticed(name: str) -> None:
    text = (settings.BASE_DIR / "docs" / "protocol.md").read_text()
    with pytest.raises(ValueError, match=name):
        fill(text.replace(f"<!-- {name} -->", ""))
