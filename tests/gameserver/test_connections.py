"""The one client that all threads share: its connections, and what travels on them."""

import asyncio
import logging
import re
from typing import Any

import pytest
from django.conf import settings

from gameserver import table
from gameserver.blocking import run_blocking
from gameserver.models import Item
from gameserver.schema import create_table
from matches import access_patterns
from matches.access_patterns.scenario import a_player
from matches.models import Game
from players.models import User
from tests.faults.layer import Request, on_shared_client

EXPRESSIONS = (
    "UpdateExpression",
    "ConditionExpression",
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
)
# Source: DynamoDB developer guide, "Update expressions" and "Comparison operator and function
# reference".
GRAMMAR = {
    *("SET", "ADD", "REMOVE", "DELETE", "AND", "OR", "NOT", "IN", "BETWEEN"),
    *("attribute_exists", "attribute_not_exists", "begins_with", "contains", "size"),
    *("if_not_exists", "list_append", "attribute_type"),
}


def opened_connections() -> int:
    session: Any = Item._get_connection().connection.client._endpoint.http_session
    return int(session._manager.connection_from_url(settings.DYNAMODB_ENDPOINT_URL).num_connections)


@pytest.mark.usefixtures("table")
async def test_a_hundred_requests_at_once_share_the_pools_connections(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # O-15
    a_player("ada")
    caplog.set_level(logging.DEBUG, logger="urllib3.connectionpool")
    Item._shared = None

    async def a_hundred() -> None:
        await asyncio.gather(*(run_blocking(User.by_username, "ada") for _ in range(100)))

    await a_hundred()
    opened = opened_connections()
    assert 1 <= opened <= settings.BLOCKING_THREADS
    for _ in range(3):
        await a_hundred()
    assert opened_connections() <= settings.BLOCKING_THREADS
    assert not [line for line in caplog.messages if "pool is full" in line or "Resetting" in line]


@pytest.mark.usefixtures("table")
def test_one_client_serves_every_model() -> None:
    connections = {id(model._get_connection()) for model in (Item, User, Game)}
    assert len(connections) == 1


@pytest.mark.usefixtures("table")
def test_time_outs_and_pool_are_the_settings_and_botocore_does_not_retry() -> None:
    # O-17, T-11: the libraries' own are 15 s, 30 s, 10 connections and 4 attempts.
    config: Any = Item._get_connection().connection.client.meta.config
    assert config.connect_timeout == settings.DYNAMODB_CONNECT_TIMEOUT_SECONDS <= 1
    assert config.read_timeout == settings.DYNAMODB_READ_TIMEOUT_SECONDS <= 2
    # With room for the threads beside the pool, or their connections would be thrown away.
    assert config.max_pool_connections > settings.BLOCKING_THREADS
    assert config.retries["total_max_attempts"] == 1


@pytest.fixture(scope="module")
def everything_sent(engine: object) -> list[Request]:
    """What every access pattern and every write of its preparation sends."""
    if Item.exists():
        Item.delete_table()
    create_table()
    with on_shared_client() as faults:
        list(access_patterns.measure_all())
    return faults.sent


def test_no_expression_spells_an_attribute(everything_sent: list[Request]) -> None:
    # `map`, `status`, `role`, `owner` and others are reserved words.
    seen = 0
    for request in everything_sent:
        parts = [next(iter(one.values())) for one in request.body.get("TransactItems", [])]
        for part in [*parts, request.body]:
            for text in [part[name] for name in EXPRESSIONS if name in part]:
                seen += 1
                assert bare_words(text) <= GRAMMAR, text
    assert seen > 100


def bare_words(expression: str) -> set[str]:
    return set(re.findall(r"(?<![#:\w])[A-Za-z_]\w*", expression))


def test_bare_words_are_found() -> None:
    assert bare_words("SET #0 = :0, map = :1") == {"SET", "map"}


def test_every_write_to_an_existing_item_says_that_it_exists(
    everything_sent: list[Request],
) -> None:
    # O-09: an update of what is not there would create a part of it.
    updates = [
        part["Update"]
        for request in everything_sent
        for part in request.body.get("TransactItems", [])
        if "Update" in part
    ]
    updates += [request.body for request in everything_sent if request.operation == "UpdateItem"]
    assert updates
    for update in updates:
        if update["Key"]["PK"]["S"].startswith("COUNTER#"):
            # Its first addition makes a shard, whole.
            assert_names(update["UpdateExpression"], update, "kind")
        elif update["ConditionExpression"].startswith("attribute_not_exists"):
            # Meant to create: it makes the item, whole.
            assert_names(update["UpdateExpression"], update, "kind")
        elif update["Key"]["PK"]["S"].startswith(table.SETTINGS_PK):
            # The seen revision is in its condition, which a missing item does not meet.
            assert_names(update["ConditionExpression"], update, "schema_version")
        else:
            assert "attribute_exists" in update["ConditionExpression"]
            assert_names(update["ConditionExpression"], update, "PK")


def assert_names(expression: str, update: dict[str, Any], attribute: str) -> None:
    names = update["ExpressionAttributeNames"]
    assert any(names[found] == attribute for found in re.findall(r"#\d+", expression))
