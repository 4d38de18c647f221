"""Keys, the schema, and what `create_table` says of a table that differs."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.conf import settings
from pytest_django import Settings

from gameserver import table
from gameserver.models import Item
from gameserver.schema import create_table, table_differences

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def client() -> Any:
    return Item._get_connection().connection.client


def test_a_game_and_its_roster_are_one_range_and_nothing_else_is_in_it() -> None:
    first, last = table.GAME_AND_ROSTER
    inside = [
        table.game_key("g")[1],
        table.mapping_key("g", "-")[1],
        table.mapping_key("g", "z" * 20)[1],
    ]
    outside = [table.METADATA, "#CREDENTIAL", "USER$"]
    assert all(first <= sk < last for sk in inside)
    assert not any(first <= sk < last for sk in outside)
    assert all(table.ROSTER[0] <= sk < table.ROSTER[1] for sk in inside[1:])


def test_no_two_keys_of_different_things_are_the_same() -> None:
    keys = [
        table.user_key("same"),
        table.credential_key("same"),
        table.session_key("same", "same"),
        table.device_key("same"),
        table.game_key("same"),
        table.mapping_key("same", "same"),
        table.quick_join_key("same"),
        table.flags_key(),
        table.audit_key(1),
        table.counter_key("same", 1),
        table.request_key("same", "same"),
        table.lease_key("same"),
    ]
    assert len(set(keys)) == len(keys)


def test_an_idempotency_key_of_any_letters_is_hashed_into_a_short_key() -> None:
    assert len(table.request_key("ada", "#" * 10_000)[0]) < 100
    assert table.request_key("ada", "a") != table.request_key("ada", "b")
    assert table.request_key("ada", "a") != table.request_key("bob", "a")


def test_revisions_sort_as_numbers_do() -> None:
    assert table.audit_key(9)[1] < table.audit_key(10)[1] < table.audit_key(999_999_999_999)[1]


def test_listed_games_sort_by_the_instant_whatever_its_zone_or_fraction() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    moments = [MIDNIGHT + timedelta(microseconds=number * 500_000) for number in range(4)]
    assert table.listed_at(MIDNIGHT.astimezone(kathmandu), "g") == table.listed_at(MIDNIGHT, "g")
    sorted_at = [table.listed_at(moment, "g") for moment in moments]
    assert sorted_at == sorted(sorted_at)
    assert len(set(map(len, sorted_at))) == 1


def test_a_shard_is_the_same_in_every_process_and_release(settings: Settings) -> None:
    settings.LISTING_SHARDS = 8
    # Items lie under these: another result would lose them from their lists.
    assert [table.shard_of(f"player{number}") for number in range(6)] == [6, 6, 0, 4, 3, 6]
    assert {table.shard_of(f"player{number}") for number in range(200)} == set(range(8))


@pytest.mark.usefixtures("table")
def test_creating_the_table_again_changes_and_reports_nothing() -> None:
    assert create_table() == []
    assert table_differences() == []


@pytest.mark.usefixtures("table")
def test_the_table_is_on_demand_with_ttl_and_three_sparse_indexes() -> None:
    described = client().describe_table(TableName=settings.DYNAMODB_TABLE)["Table"]
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    indexes = {index["IndexName"]: index for index in described["GlobalSecondaryIndexes"]}
    assert set(indexes) == {"GameListingIndex", "LeaderboardIndex", "MatchHistoryIndex"}
    for index in indexes.values():
        assert index["Projection"]["ProjectionType"] == "INCLUDE"
        # Decoding needs it; a query would otherwise come back empty.
        assert "kind" in index["Projection"]["NonKeyAttributes"]
        assert "join_code" not in index["Projection"]["NonKeyAttributes"]
    ttl = client().describe_time_to_live(TableName=settings.DYNAMODB_TABLE)
    assert ttl["TimeToLiveDescription"]["AttributeName"] == "expires_at"


@pytest.mark.usefixtures("table")
def test_a_table_that_differs_is_described_line_by_line() -> None:
    Item.delete_table()
    key = [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}]
    client().create_table(
        TableName=settings.DYNAMODB_TABLE,
        KeySchema=key,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK", "history_of")
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "MatchHistoryIndex",
                "KeySchema": [{"AttributeName": "history_of", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["kind", "coins"]},
                "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
            }
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    differences = create_table()
    assert {
        "index GameListingIndex is missing",
        "index LeaderboardIndex is missing",
        "index MatchHistoryIndex has keys HASH history_of",
        "index MatchHistoryIndex does not project placement",
        "index MatchHistoryIndex projects coins for nothing",
        "billing mode is not PAY_PER_REQUEST",
        "TTL on expires_at is off",
    } <= set(differences)
