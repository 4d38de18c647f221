"""The embedded engine itself, through the plain SDK: what every other test here relies on.

If one of these fails, the engine is to blame and no race test of the product means anything.
"""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from mypy_boto3_dynamodb import DynamoDBClient
from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

from gameserver.engine import EmbeddedEngine

TABLE = "qualification"
THREADS, SEATS, ROUNDS = 32, 10, 40


@pytest.fixture(scope="module")
def client(engine: EmbeddedEngine) -> Iterator[DynamoDBClient]:
    client = boto3.client(
        "dynamodb",
        endpoint_url=engine.url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
        config=Config(max_pool_connections=THREADS, retries={"total_max_attempts": 1}),
    )
    client.create_table(
        TableName=TABLE,
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    yield client
    client.delete_table(TableName=TABLE)


def put(client: DynamoDBClient, pk: str, sk: str, **numbers: int) -> None:
    item = {name: {"N": str(number)} for name, number in numbers.items()}
    client.put_item(TableName=TABLE, Item={"PK": {"S": pk}, "SK": {"S": sk}, **item})


def counter(client: DynamoDBClient, pk: str) -> int:
    key = {"PK": {"S": pk}, "SK": {"S": "game"}}
    found = client.get_item(TableName=TABLE, Key=key, ConsistentRead=True)
    return int(found["Item"]["seats"]["N"])


def add_one(pk: str, *, below: int | None = None) -> TransactWriteItemTypeDef:
    update: TransactWriteItemTypeDef = {
        "Update": {
            "TableName": TABLE,
            "Key": {"PK": {"S": pk}, "SK": {"S": "game"}},
            "UpdateExpression": "ADD seats :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }
    if below is not None:
        update["Update"]["ConditionExpression"] = "seats < :seats"
        update["Update"]["ExpressionAttributeValues"] = {
            ":one": {"N": "1"},
            ":seats": {"N": str(below)},
        }
    return update


def test_the_engine_never_seats_more_players_than_its_condition_allows(
    client: DynamoDBClient,
) -> None:
    # EMU-01
    gate = Barrier(THREADS)

    def join(pk: str, number: int) -> bool:
        gate.wait()
        row: TransactWriteItemTypeDef = {
            "Put": {
                "TableName": TABLE,
                "Item": {"PK": {"S": pk}, "SK": {"S": f"player{number:02d}"}},
                "ConditionExpression": "attribute_not_exists(PK)",
            }
        }
        try:
            client.transact_write_items(TransactItems=[row, add_one(pk, below=SEATS)])
        except client.exceptions.TransactionCanceledException:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        for number in range(ROUNDS):
            pk = f"round{number}"
            put(client, pk, "game", seats=0)
            joins = pool.map(join, [pk] * THREADS, range(THREADS))
            acknowledged = sum(joins)
            rows = client.query(
                TableName=TABLE,
                KeyConditionExpression="PK = :pk AND begins_with(SK, :player)",
                ExpressionAttributeValues={":pk": {"S": pk}, ":player": {"S": "player"}},
                ConsistentRead=True,
                Select="COUNT",
            )
            figures = (acknowledged, rows["Count"], counter(client, pk))
            assert figures == (SEATS, SEATS, SEATS), "the engine is to blame, not the product"


def test_the_engine_does_a_transaction_once_per_token(client: DynamoDBClient) -> None:
    # EMU-02
    put(client, "token", "game", seats=0)
    token = str(uuid.uuid4())
    for _ in range(2):
        client.transact_write_items(TransactItems=[add_one("token")], ClientRequestToken=token)
    assert counter(client, "token") == 1
    with pytest.raises(ClientError) as refused:
        client.transact_write_items(
            TransactItems=[add_one("token", below=5)], ClientRequestToken=token
        )
    assert refused.value.response["Error"]["Code"] == "IdempotentParameterMismatchException"
    assert counter(client, "token") == 1


def test_the_engine_applies_the_limit_before_the_filter(client: DynamoDBClient) -> None:
    # EMU-05
    for number in range(10):
        put(client, "filtered", f"item{number}", number=number)
    page = client.query(
        TableName=TABLE,
        KeyConditionExpression="PK = :pk",
        FilterExpression="#number = :last",
        ExpressionAttributeNames={"#number": "number"},
        ExpressionAttributeValues={":pk": {"S": "filtered"}, ":last": {"N": "9"}},
        Limit=3,
    )
    assert (page["Items"], page["ScannedCount"]) == ([], 3)
    assert page["LastEvaluatedKey"]["SK"] == {"S": "item2"}
