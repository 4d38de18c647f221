"""`Item`: how raw items are read and written, whatever model they belong to."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from gameserver import retries
from gameserver.errors import TryAgain
from gameserver.models import SKIPPED, ConditionFailed, Item, transact
from gameserver.table import game_key, user_key
from matches.access_patterns.scenario import NOW, a_lobby, a_new_game, a_player
from matches.models import Game, UserGameMapping
from players.models import Credential, User
from tests.faults.kinds import unprocessed_items, unprocessed_keys
from tests.faults.layer import Clock, Faults
from tests.raw import delete_raw, get_raw, put_raw, scan_raw, set_raw

pytestmark = pytest.mark.usefixtures("table")


def skipped(reason: str) -> float:
    return float(SKIPPED.labels(reason)._value.get())


def test_an_item_comes_back_as_its_own_class() -> None:
    a_player("ada")
    assert isinstance(Item.read(user_key("ada")), User)
    assert isinstance(User.read(user_key("ada")), User)
    # Of another class it is no item at all.
    assert Game.read(user_key("ada")) is None


def test_what_is_not_there_is_none() -> None:
    assert Item.read(user_key("nobody")) is None
    assert Item.read_many([user_key("nobody")]) == []


@pytest.mark.parametrize(
    "attribute",
    [
        {"created_at": {"S": "yesterday"}},
        {"created_at": {"NULL": True}},
        {"created_at": {"N": "7"}},
        {"username": {"NULL": True}},
        {"wins": {"S": "many"}},
        {"is_guest": {"S": "no"}},
        {"expires_at": {"N": "1" + 30 * "0"}},
        {"kind": {"S": "FUTURE"}},
        {"kind": {"NULL": True}},
    ],
    ids=str,
)
def test_an_item_that_cannot_be_read_is_skipped_counted_and_logged(
    attribute: dict[str, Any],
) -> None:
    # O-08, O-13
    a_player("ada")
    set_raw(user_key("ada"), **attribute)
    before = skipped("unreadable")
    with capture_logs() as logs:
        assert Item.read(user_key("ada")) is None
    assert skipped("unreadable") == before + 1
    assert [line["event"] for line in logs] == ["item_unreadable"]
    assert logs[0]["pk"] == {"S": "USER#ada"}


def test_an_attribute_missing_from_an_item_makes_it_unreadable_but_not_from_an_index() -> None:
    raw = {**get_raw(user_key(a_player("ada").username))}
    del raw["created_at"]
    assert User.decode(raw) is None
    assert isinstance(User.decode(raw, partial=True), User)


def test_a_put_refuses_to_replace_and_shows_what_is_there() -> None:
    ada = a_player("ada")
    with pytest.raises(ConditionFailed) as refused:
        transact(user=User.new("ada", "Another Ada", now=ada.created_at).put())
    there = refused.value.failed["user"]
    assert isinstance(there, User)
    assert there.display_name == "Ada"


def test_a_change_never_creates_an_item() -> None:
    # O-09
    change = User.at(user_key("nobody")).change([User.wins.add(1)])
    with pytest.raises(ConditionFailed) as refused:
        User.update_one(change)
    assert refused.value.failed == {"item": None}
    with pytest.raises(ConditionFailed) as refused:
        transact(user=change)
    assert refused.value.failed == {"user": None}
    assert scan_raw() == []


def test_a_plain_update_returns_the_item_as_it_is_afterwards() -> None:
    a_player("ada")
    user = User.update_one(User.at(user_key("ada")).change([User.wins.add(2)]))
    assert user.wins == 2


def test_a_refused_plain_update_shows_the_item_as_it_stands() -> None:
    a_player("ada")
    change = User.at(user_key("ada")).change([User.wins.add(1)], User.wins == 5)
    with pytest.raises(ConditionFailed) as refused:
        User.update_one(change)
    there = refused.value.failed["item"]
    assert isinstance(there, User)
    assert there.wins == 0


def test_an_update_of_an_item_this_code_cannot_read_is_an_error_not_a_wrong_answer() -> None:
    a_player("ada")
    set_raw(user_key("ada"), created_at={"S": "yesterday"})
    with pytest.raises(ValueError, match="cannot be read"):
        User.update_one(User.at(user_key("ada")).change([User.wins.add(1)]))


def test_removing_what_is_not_there_is_refused_unless_that_is_fine() -> None:
    missing = User.at(user_key("nobody"))
    with pytest.raises(ConditionFailed) as refused:
        transact(user=missing.remove())
    assert "user" in refused.value
    transact(user=missing.remove_if_there())


def test_refusals_carry_the_names_of_their_writes_whatever_the_order() -> None:
    # DynamoDB answers in the order sent, which is not the order given.
    ada = a_player("ada")
    a_player("bob")
    a_player("cyd")
    with pytest.raises(ConditionFailed) as refused:
        transact(
            fine=User.at(user_key("bob")).change([User.wins.add(1)]),
            changed=User.at(user_key("cyd")).change([User.wins.add(1)], User.wins == 9),
            made=User.new("ada", "Ada", now=ada.created_at).put(),
            gone=User.at(user_key("nobody")).remove(),
        )
    assert set(refused.value.failed) == {"changed", "made", "gone"}
    assert refused.value.failed["gone"] is None
    assert all(isinstance(refused.value.failed[name], User) for name in ("changed", "made"))
    # All or nothing.
    assert get_raw(user_key("bob"))["wins"] == {"N": "0"}


def test_a_page_of_an_index_holds_no_item_of_another_kind() -> None:
    # O-07
    game = a_lobby("mine", 1)
    a_player("odd")
    set_raw(user_key("odd"), listing={"S": game.listing}, listed_at={"S": "0"})
    set_raw(game_key("mine"), board={"S": "all-time#0"}, score={"N": "1000"})
    before = skipped("other_kind")
    listed = Game.listed("OPEN", game.map, 0, limit=10).items
    assert [type(one) for one in listed] == [Game]
    assert {type(one) for one in User.top(10)} == {User}
    assert skipped("other_kind") == before + 2


def test_more_keys_than_a_batch_holds_are_read_in_several() -> None:
    for number in range(101):
        game = a_new_game(f"many{number}", "host")
        transact(game=game.put())
    assert len(Game.by_ids(f"many{number}" for number in range(101))) == 101


def test_what_a_batch_leaves_out_is_asked_for_again(faults: Faults, clock: Clock) -> None:
    # O-14
    for number in range(9):
        a_player(f"user{number}")
    faults.order(unprocessed_keys, "BatchGetItem", times=3)
    found = Item.read_many([user_key(f"user{number}") for number in range(9)])
    assert sorted(item.username for item in found if isinstance(item, User)) == [
        f"user{number}" for number in range(9)
    ]
    assert faults.attempts("BatchGetItem") == 4
    assert len(clock.pauses) == 3


def test_a_batch_that_stays_incomplete_is_an_error_not_a_shorter_list(
    faults: Faults, clock: Clock
) -> None:
    # O-14
    a_player("ada")
    faults.order(unprocessed_keys, "BatchGetItem", times=None)
    with pytest.raises(TryAgain):
        Item.read_many([user_key("ada")])
    assert faults.attempts("BatchGetItem") == retries.MAX_ATTEMPTS


def test_what_a_batch_leaves_undone_is_written_again(faults: Faults, clock: Clock) -> None:
    # O-14
    people = [User.new(f"user{number:02d}", "U", now=NOW) for number in range(30)]
    keys = [user_key(user.username) for user in people]
    faults.order(unprocessed_items, "BatchWriteItem", times=3)
    User.write_many(people)
    assert len(Item.read_many(keys)) == 30
    faults.order(unprocessed_items, "BatchWriteItem", times=3)
    User.write_many([], keys)
    assert scan_raw() == []
    assert faults.attempts("BatchWriteItem") == 2 * (2 + 3)


def test_a_batch_that_stays_undone_is_an_error_and_a_repeat_finishes_it(
    faults: Faults, clock: Clock
) -> None:
    # O-14
    people = [User.new(f"user{number:02d}", "U", now=NOW) for number in range(30)]
    faults.order(unprocessed_items, "BatchWriteItem", times=None)
    with pytest.raises(TryAgain):
        User.write_many(people)
    assert faults.attempts("BatchWriteItem") == retries.MAX_ATTEMPTS
    faults.stop()
    User.write_many(people)
    assert len(scan_raw()) == 30


def test_an_unknown_kind_in_a_games_partition_is_left_out_of_its_roster() -> None:
    # O-08
    a_lobby("mine", 2)
    put_raw(
        PK={"S": game_key("mine")[0]},
        SK={"S": "USER#zz"},
        kind={"S": "FUTURE"},
        history_of={"S": "mine-1"},
        joined_at={"S": "2026-01-01T00:00:00.000000+0000"},
    )
    game, roster = Game.with_roster("mine", consistent=True)
    assert game is not None
    assert [seat.username for seat in roster] == ["mine-1", "mine-2"]
    history = UserGameMapping.history("mine-1", limit=10).items
    assert [seat.game_id for seat in history] == ["mine"]


def test_a_credential_is_no_profile() -> None:
    a_player("ada")
    assert isinstance(Credential.of("ada"), Credential)
    delete_raw(user_key("ada"))
    assert User.by_username("ada") is None
