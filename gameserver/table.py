"""The table: every key it holds, and the one connection to it. Only this module spells keys.

| Entity                  | PK                      | SK                          |
|-------------------------|-------------------------|-----------------------------|
| User                    | USER#{username}         | #METADATA#{username}        |
| Credential              | USER#{username}         | #CREDENTIAL                 |
| Session                 | USER#{username}         | SESSION#{id}                |
| Device                  | DEVICE#{sha256}         | #METADATA                   |
| Game                    | GAME#{game_id}          | #METADATA#{game_id}         |
| UserGameMapping         | GAME#{game_id}          | USER#{username}             |
| Quick-join pointer      | QUICKJOIN#{map}         | #METADATA                   |
| Settings singleton      | SETTINGS#APP            | FLAGS#V1                    |
| Settings audit          | SETTINGS#APP            | AUDIT#FLAGS#{revision:012d} |
| Counter shard           | COUNTER#{name}          | SHARD#{n:02d}               |
| Request record          | REQUEST#{username}#{key}| #METADATA                   |
| Lease                   | LEASE#{name}            | #METADATA                   |
| Heartbeat               | HEARTBEATS              | PROCESS#{id}                |
| Presence                | PRESENCE#{process id}   | GAME#{game_id}#USER#{username} |
| Process report          | PROCESSES               | PROCESS#{id}                |
| Import progress         | IMPORT#{sha256}         | #METADATA                   |

`#` sorts before every letter, so a game and its roster are one contiguous range of one partition.
No part of a key comes from free text: usernames, ids and maps are checked before they get here.
"""

import hashlib
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from pynamodb._schema import ModelSchema
from pynamodb.connection.base import Connection, MetaTable
from pynamodb.connection.table import TableConnection

from gameserver import capacity, engine, retries

Key = tuple[str, str]

METADATA = "#METADATA"
SESSION_PREFIX = "SESSION#"
SETTINGS_PK = "SETTINGS#APP"
PROCESSES_PK = "PROCESSES"
FLAGS_V1_SK = "FLAGS#V1"
FLAGS_V2_SK = "FLAGS#V2"
HEARTBEATS_PK = "HEARTBEATS"
AUDIT_PREFIX = "AUDIT#FLAGS#"
# For the threads beside the pool of blocking.py: the sweep, the counters, reports, the admin.
SPARE_CONNECTIONS = 8
# A game's own item and its roster, and nothing else of its partition.
GAME_AND_ROSTER = ("#METADATA#", "USER$")
ROSTER = ("USER#", "USER$")
# What operators may look for, in the form they type it.
KEY_EXAMPLES = {
    "Player": "USER#alice",
    "Game": "GAME#3f0c2a52-4a0e-4c51-9a37-5f3ad5a1a9d2",
    "Settings and their history": SETTINGS_PK,
    "Processes": PROCESSES_PK,
    "Counter": "COUNTER#eliminations",
    "Quick-join pointer": "QUICKJOIN#dirty-desert",
    "Lease": "LEASE#sweep",
}


def id_in(pk: str) -> str:
    """Return the id that a partition key carries: GAME#{game_id} -> game_id."""
    return pk.partition("#")[2]


def user_key(username: str) -> Key:
    return f"USER#{username}", f"#METADATA#{username}"


def credential_key(username: str) -> Key:
    return f"USER#{username}", "#CREDENTIAL"


def session_key(username: str, session_id: str) -> Key:
    return f"USER#{username}", f"{SESSION_PREFIX}{session_id}"


def device_key(device_hash: str) -> Key:
    return f"DEVICE#{device_hash}", METADATA


def game_key(game_id: str) -> Key:
    return f"GAME#{game_id}", f"#METADATA#{game_id}"


def mapping_key(game_id: str, username: str) -> Key:
    return f"GAME#{game_id}", f"USER#{username}"


def quick_join_key(game_map: str) -> Key:
    return f"QUICKJOIN#{game_map}", METADATA


def flags_key(shape: str = FLAGS_V1_SK) -> Key:
    return SETTINGS_PK, shape


def audit_key(revision: int) -> Key:
    return SETTINGS_PK, f"{AUDIT_PREFIX}{revision:012d}"


def counter_key(name: str, shard: int) -> Key:
    return f"COUNTER#{name}", f"SHARD#{shard:02d}"


def request_key(username: str, idempotency_key: str) -> Key:
    digest = hashlib.sha256(idempotency_key.encode()).hexdigest()
    return f"REQUEST#{username}#{digest}", METADATA


def lease_key(name: str) -> Key:
    return f"LEASE#{name}", METADATA


def import_key(file_hash: str) -> Key:
    return f"IMPORT#{file_hash}", METADATA


def process_key(process_id: str) -> Key:
    return PROCESSES_PK, f"PROCESS#{process_id}"


def heartbeat_key(process_id: str) -> Key:
    return HEARTBEATS_PK, f"PROCESS#{process_id}"


def presence_key(process_id: str, game_id: str, username: str) -> Key:
    return f"PRESENCE#{process_id}", f"GAME#{game_id}#USER#{username}"


def shard_of(identity: str) -> int:
    """Return the listing shard of an id: stable across processes and releases."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:4]) % settings.LISTING_SHARDS


def listing_key(state: str, game_map: str, shard: int) -> str:
    return f"{state}#{game_map}#{shard}"


def listed_at(created_at: datetime, game_id: str) -> str:
    """Return a listing's sort key: by time, then unique, so that a page can resume anywhere."""
    return f"{created_at.astimezone(UTC).isoformat(timespec='microseconds')}#{game_id}"


def newest_key(shard: int) -> str:
    """Return the listing of players by sign-up; no game's listing looks like it."""
    return f"SIGNED_UP#{shard}"


def board_key(season: str, shard: int) -> str:
    return f"{season}#{shard}"


class _RetryingConnection(Connection):
    """pynamodb's connection with this project's retries and metering under every call."""

    def _make_api_call(
        self, operation_name: str, operation_kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        if "ReturnConsumedCapacity" in operation_kwargs:
            operation_kwargs["ReturnConsumedCapacity"] = "INDEXES"
        return retries.call(
            self._send_once,
            operation_name,
            operation_kwargs,
            attempt_seconds=settings.DYNAMODB_READ_TIMEOUT_SECONDS,
        )

    def _send_once(self, operation_name: str, operation_kwargs: dict[str, Any]) -> dict[str, Any]:
        response: dict[str, Any] | None = None
        try:
            response = super()._make_api_call(operation_name, operation_kwargs)
            return response
        finally:
            capacity.record(operation_name, response)


def connect(schema: ModelSchema) -> TableConnection:
    """Connect to the table by the settings; the client is thread-safe and shared.

    Raises: EngineNotRunning when the embedded engine is wanted and none runs.
    """
    table_name = settings.DYNAMODB_TABLE
    # The embedded engine wants any credentials; other endpoints get the environment's.
    credentials = "local" if settings.DYNAMODB_ENDPOINT_URL == "embedded" else None
    connection = _RetryingConnection(
        region=settings.AWS_REGION,
        host=engine.resolve_endpoint(settings.DYNAMODB_ENDPOINT_URL),
        connect_timeout_seconds=settings.DYNAMODB_CONNECT_TIMEOUT_SECONDS,
        read_timeout_seconds=settings.DYNAMODB_READ_TIMEOUT_SECONDS,
        max_retry_attempts=0,
        max_pool_connections=settings.BLOCKING_THREADS + SPARE_CONNECTIONS,
        aws_access_key_id=credentials,
        aws_secret_access_key=credentials,
    )
    connection.add_meta_table(
        MetaTable(
            {
                "TableName": table_name,
                "KeySchema": schema["key_schema"],
                "AttributeDefinitions": schema["attribute_definitions"],
                "GlobalSecondaryIndexes": [
                    {"IndexName": index["index_name"], "KeySchema": index["key_schema"]}
                    for index in schema["global_secondary_indexes"]
                ],
            }
        )
    )
    # botocore's client is not safe to create from several threads at once: create it here.
    _ = connection.client
    table = TableConnection(table_name)
    table.connection = connection
    return table
