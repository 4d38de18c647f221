"""Create the table as the models describe it, and say how an existing one differs."""

from typing import Any

from gameserver.models import Item


def create_table() -> list[str]:
    """Create the table if it is missing; return how an existing one differs from the design."""
    if not Item.exists():
        Item.create_table(wait=True)
        return []
    return table_differences()


def table_differences() -> list[str]:
    """Compare keys, indexes, projections, billing and TTL with the design; one line each."""
    connection = Item._get_connection().connection
    actual = connection.describe_table(Item.Meta.table_name)
    wanted = Item._get_schema()
    differences = []
    if _keys(actual["KeySchema"]) != _keys(wanted["key_schema"]):
        differences.append(f"keys are {_keys(actual['KeySchema'])}")
    found = {index["IndexName"]: index for index in actual.get("GlobalSecondaryIndexes", [])}
    for index in wanted["global_secondary_indexes"]:
        name = index["index_name"]
        if name not in found:
            differences.append(f"index {name} is missing")
            continue
        if _keys(found[name]["KeySchema"]) != _keys(index["key_schema"]):
            differences.append(f"index {name} has keys {_keys(found[name]['KeySchema'])}")
        projected = set(found[name]["Projection"].get("NonKeyAttributes", []))
        designed = set(index["projection"]["NonKeyAttributes"])
        differences += [f"index {name} does not project {one}" for one in designed - projected]
        differences += [f"index {name} projects {one} for nothing" for one in projected - designed]
    if actual.get("BillingModeSummary", {}).get("BillingMode") != Item.Meta.billing_mode:
        differences.append(f"billing mode is not {Item.Meta.billing_mode}")
    ttl = connection._make_api_call("DescribeTimeToLive", {"TableName": Item.Meta.table_name})
    if ttl["TimeToLiveDescription"].get("AttributeName") != "expires_at":
        differences.append("TTL on expires_at is off")
    return sorted(differences)


def _keys(schema: Any) -> str:
    return ", ".join(sorted(f"{key['KeyType']} {key['AttributeName']}" for key in schema))
