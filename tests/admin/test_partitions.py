"""Look by key: everything is shown, and nothing secret."""

import base64
from typing import Any

import pytest

from gameserver import capacity, table
from gameserver.admin import MASK, attributes
from gameserver.models import Item
from players.models import Credential, Session
from tests.admin.operators import PARTITIONS, Operator
from tests.builders import a_game, a_player, logged_in


def test_a_players_partition_shows_all_items_with_secrets_masked(boss: Operator) -> None:
    alice = a_player("alice")
    Credential.change_hash("alice", "!", "argon2$secret-part-of-a-hash")
    page = boss.page(PARTITIONS, pk="USER#alice")
    for text in ("#METADATA#alice", "#CREDENTIAL", "SESSION#", "display_name", MASK):
        assert text in page
    assert "secret-part-of-a-hash" not in page
    assert Session.all_of("alice")[0].token_hash not in page
    assert alice.tokens.refresh_token.split(".")[2] not in page


def test_a_private_games_code_is_masked(boss: Operator) -> None:
    game = a_game(a_player(), is_private=True)
    page = boss.page(PARTITIONS, pk=game.PK)
    assert game.join_code is not None
    assert game.join_code not in page
    assert "join_code" in page


def test_a_partition_is_read_page_by_page(boss: Operator) -> None:
    a_player("alice")
    for _ in range(60):
        logged_in("alice")
    seen: list[str] = []
    params = {"pk": "USER#alice"}
    while True:
        with capacity.measure() as meter:
            response = boss.get(PARTITIONS, **params)
        assert meter.operations == ["Query"]
        seen += [item["sk"] for item in response.context_data["items"]]
        if response.context_data["next_cursor"] is None:
            break
        params["after"] = response.context_data["next_cursor"]
    assert len(seen) == len(set(seen)) == 63


def test_the_first_page_reads_nothing_and_gives_examples(boss: Operator) -> None:
    with capacity.measure() as meter:
        page = boss.page(PARTITIONS)
    assert meter.round_trips == 0
    assert "USER#alice" in page


@pytest.mark.parametrize("key", ["nothing", "' OR 1=1", "<script>alert(1)</script>", "x" * 5000])
def test_odd_keys_find_nothing_and_do_no_harm(boss: Operator, key: str) -> None:
    page = boss.page(PARTITIONS, pk=key)
    assert "0 items" in page
    assert "<script>alert" not in page


def test_a_position_belongs_to_its_partition(boss: Operator) -> None:
    a_player("alice")
    for _ in range(30):
        logged_in("alice")
    position = boss.get(PARTITIONS, pk="USER#alice").context_data["next_cursor"]
    assert boss.get(PARTITIONS, pk="USER#bob", after=position).status_code == 400


def test_every_type_of_attribute_is_shown_and_secrets_inside_maps_are_masked() -> None:
    item: dict[str, Any] = {
        "zeta": {"S": "text"},
        "SK": {"S": "sk"},
        "PK": {"S": "pk"},
        "count": {"N": "12"},
        "flag": {"BOOL": False},
        "gone": {"NULL": True},
        "blob": {"B": b"\x00\xff"},
        "names": {"SS": ["a", "b"]},
        "nested": {"M": {"api_token": {"S": "hidden"}, "list": {"L": [{"N": "1"}]}}},
        "device_secret": {"S": "hidden"},
    }
    shown = {name: value for name, _, value in attributes(item)}
    assert list(shown)[:2] == ["PK", "SK"]
    assert "hidden" not in str(shown)
    assert shown["flag"] == "false"
    assert shown["blob"] == f'"{base64.b64encode(bytes([0, 255])).decode()}"'
    assert shown["device_secret"] == MASK
    assert MASK in shown["nested"]


def test_the_browser_never_writes(boss: Operator) -> None:
    a_player("alice")
    before = Item.raw_page(table.user_key("alice")[0], limit=10)
    assert boss.post(PARTITIONS, pk="USER#alice").status_code == 405
    assert Item.raw_page(table.user_key("alice")[0], limit=10) == before
