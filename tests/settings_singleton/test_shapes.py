from typing import Any

import pytest

from settings_singleton.registry import SETTINGS
from settings_singleton.shapes import Snapshot, UnreadableRevision, choose, decode_v1
from tests.settings_singleton.items import an_item
from tests.settings_singleton.v2 import SHAPES, V1, V2, a_v2_item


def test_a_whole_item_is_read_without_defects() -> None:
    snapshot = decode_v1(an_item(7, chat_enabled=False, message_of_the_day="Hello"))

    assert (snapshot.revision, snapshot.defects) == (7, ())
    assert (snapshot.chat_enabled, snapshot.signup_enabled) == (False, True)
    assert snapshot.message_of_the_day == "Hello"


@pytest.mark.parametrize(
    "attribute",
    [
        {"S": "true"},
        {"N": "1"},
        {"NULL": True},
        {"L": []},
        {},
        {"BOOL": "yes"},
    ],
)
def test_a_wrong_typed_switch_costs_only_itself_its_safe_value(attribute: dict[str, Any]) -> None:
    snapshot = decode_v1(an_item() | {"signup_enabled": attribute})

    assert snapshot.defects == ("signup_enabled",)
    assert not snapshot.signup_enabled
    assert snapshot.joining_enabled


@pytest.mark.parametrize("number", ["1.5", "-1", "0", "1e6", "99999999999", "NaN"])
def test_an_unusable_number_costs_only_itself_its_safe_value(number: str) -> None:
    snapshot = decode_v1(an_item() | {"requests_per_minute": {"N": number}})

    assert snapshot.defects == ("requests_per_minute",)
    assert snapshot.requests_per_minute == SETTINGS["requests_per_minute"].safe


def test_a_setting_that_the_item_does_not_know_yet_has_its_safe_value() -> None:
    item = an_item()
    del item["chat_enabled"]

    assert decode_v1(item).defects == ("chat_enabled",)
    assert not decode_v1(item).chat_enabled


def test_attributes_of_a_newer_release_are_ignored() -> None:
    assert decode_v1(an_item(3) | {"tournaments_enabled": {"BOOL": True}}) == decode_v1(an_item(3))


@pytest.mark.parametrize("attribute", [{"S": "7"}, {"N": "0"}, {"N": "-2"}, {"N": "1.5"}, None])
def test_an_item_whose_revision_is_unreadable_is_no_answer(attribute: Any) -> None:
    with pytest.raises(UnreadableRevision):
        decode_v1(an_item() | {"schema_version": attribute})


def test_no_item_in_any_shape_is_none() -> None:
    assert choose({}, SHAPES) is None


def test_of_two_shapes_with_the_same_revision_the_newer_is_read() -> None:
    found = {V1.sk: an_item(4), V2.sk: a_v2_item(4, chat_enabled=False)}

    assert choose(found, SHAPES) == Snapshot(**_values(chat_enabled=False), revision=4)


def test_a_flip_by_a_server_that_only_knows_the_older_shape_is_not_missed() -> None:
    found = {V1.sk: an_item(5, joining_enabled=False), V2.sk: a_v2_item(4)}

    snapshot = choose(found, SHAPES)

    assert snapshot is not None
    assert (snapshot.revision, snapshot.joining_enabled) == (5, False)


def test_the_older_shape_is_read_while_there_is_no_newer_one() -> None:
    snapshot = choose({V1.sk: an_item(2)}, SHAPES)

    assert snapshot is not None
    assert snapshot.revision == 2


def test_a_broken_newer_shape_falls_back_to_the_older_one() -> None:
    broken = a_v2_item(9) | {"schema_version": {"S": "nine"}}

    snapshot = choose({V1.sk: an_item(2), V2.sk: broken}, SHAPES)

    assert snapshot is not None
    assert snapshot.revision == 2


def _values(**changes: Any) -> dict[str, Any]:
    return decode_v1(an_item(**changes)).values
