"""The losing side of every condition on accounts, logins and devices."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from gameserver import table
from gameserver.models import Write, transact
from matches.access_patterns.players import (
    LATER,
    NEW_TOKEN_HASH,
    SESSION_ID,
    TOKEN_HASH,
    a_guest,
    a_session,
)
from matches.access_patterns.scenario import NOW, PASSWORD_HASH, a_lobby, a_player
from players.models import Credential, Device, Session, User
from tests.raw import delete_raw, get_raw, refusals, set_raw

pytestmark = pytest.mark.usefixtures("table")


def rotate(old: str, new: str) -> Session:
    return Session.rotate("ada", SESSION_ID, old, new, expires_at=LATER)


def test_a_taken_username_is_refused_and_its_password_stays() -> None:
    a_player("ada")
    again = User.new("ada", "Ada II", now=NOW)
    refused = refusals(lambda: User.create_with_credential(again, Credential.new("ada", "other")))
    assert set(refused) == {"user", "credential"}
    assert Credential.of("ada").password_hash == PASSWORD_HASH  # type: ignore[union-attr]


def test_a_left_over_password_keeps_its_username_taken() -> None:
    a_player("ada")
    delete_raw(table.user_key("ada"))
    again = User.new("ada", "Ada II", now=NOW)
    refused = refusals(lambda: User.create_with_credential(again, Credential.new("ada", "other")))
    assert set(refused) == {"credential"}


def test_a_device_makes_one_account() -> None:
    a_guest("guest-first", "d" * 64)
    refused = refusals(lambda: a_guest("guest-second", "d" * 64))
    device = refused["device"]
    assert isinstance(device, Device)
    assert device.username == "guest-first"
    assert User.by_username("guest-second", consistent=True) is None


@pytest.mark.parametrize(
    "write",
    [
        lambda: User.update_profile("nobody", "Name"),
        lambda: User.change_account("nobody", [User.role.set("referee")]),
        lambda: User.reset_stats("nobody"),
        lambda: User.upgrade("nobody", "Name", Credential.new("nobody", PASSWORD_HASH)),
        lambda: User.delete_with_credential("nobody"),
        lambda: Credential.change_hash("nobody", PASSWORD_HASH, "new"),
        lambda: rotate(TOKEN_HASH, NEW_TOKEN_HASH),
        lambda: transact(user=User.seat("nobody", "g")),
        lambda: transact(user=User.unseat("nobody", "g")),
        lambda: transact(
            user=User.settle("nobody", kills=1, is_winner=True, coins=1, clear_pointer=True)
        ),
    ],
)
def test_no_write_creates_the_account_it_misses(write: Callable[[], object]) -> None:
    # O-09
    assert set(refusals(write).values()) == {None}


def test_only_a_guest_is_upgraded_and_only_once() -> None:
    a_guest("guest-ada", "d" * 64)
    a_player("bob")

    def upgrade(username: str) -> None:
        User.upgrade(username, "Ada", Credential.new(username, "new"))

    assert set(refusals(lambda: upgrade("bob"))) == {"user", "credential"}
    upgrade("guest-ada")
    assert set(refusals(lambda: upgrade("guest-ada"))) == {"user", "credential"}


def test_an_account_in_a_game_is_not_deleted_nor_is_its_password() -> None:
    a_lobby("mine", 1)
    refused = refusals(lambda: User.delete_with_credential("mine-1"))
    assert set(refused) == {"user"}
    assert isinstance(refused["user"], User)


def test_an_account_is_deleted_once_with_its_password() -> None:
    a_player("ada")
    User.delete_with_credential("ada")
    assert Credential.of("ada") is None
    assert refusals(lambda: User.delete_with_credential("ada")) == {"user": None}


def test_a_guest_is_deleted_although_he_has_no_password() -> None:
    a_guest("guest-ada", "d" * 64)
    User.delete_with_credential("guest-ada")
    assert User.by_username("guest-ada", consistent=True) is None


def test_a_password_changed_meanwhile_is_not_overwritten() -> None:
    a_player("ada")
    Credential.change_hash("ada", PASSWORD_HASH, "second")
    refused = refusals(lambda: Credential.change_hash("ada", PASSWORD_HASH, "third"))
    assert isinstance(refused["item"], Credential)


def test_a_repeated_password_change_is_recognised() -> None:
    # T-06: its first answer was lost.
    a_player("ada")
    for _ in range(2):
        Credential.change_hash("ada", PASSWORD_HASH, "second")
    assert Credential.of("ada").password_hash == "second"  # type: ignore[union-attr]


def test_a_used_refresh_token_is_refused_and_shows_its_session() -> None:
    Session.open(a_session("ada"))
    rotate(TOKEN_HASH, NEW_TOKEN_HASH)
    refused = refusals(lambda: rotate(TOKEN_HASH, "c" * 64))
    assert isinstance(refused["item"], Session)


def test_a_repeated_rotation_is_recognised() -> None:
    # T-06: its first answer was lost.
    Session.open(a_session("ada"))
    assert rotate(TOKEN_HASH, NEW_TOKEN_HASH).token_hash == NEW_TOKEN_HASH
    assert rotate(TOKEN_HASH, NEW_TOKEN_HASH).token_hash == NEW_TOKEN_HASH


def test_closing_a_session_twice_is_fine() -> None:
    Session.open(a_session("ada"))
    Session.close("ada", SESSION_ID)
    Session.close("ada", SESSION_ID)
    assert Session.all_of("ada") == []


def test_one_account_sits_in_one_game() -> None:
    a_lobby("mine", 1)
    refused = refusals(lambda: transact(user=User.seat("mine-1", "other")))
    user = refused["user"]
    assert isinstance(user, User)
    assert user.current_game == "mine"


def test_a_stale_pointer_is_replaced_only_while_it_is_the_same() -> None:
    a_lobby("mine", 1)
    wrong = User.seat("mine-1", "other", instead_of="not-mine")
    assert set(refusals(lambda: transact(user=wrong))) == {"user"}
    transact(user=User.seat("mine-1", "other", instead_of="mine"))
    assert User.by_username("mine-1", consistent=True).current_game == "other"  # type: ignore[union-attr]


def test_a_pointer_to_another_game_is_not_cleared() -> None:
    a_lobby("mine", 1)
    assert set(refusals(lambda: transact(user=User.unseat("mine-1", "other")))) == {"user"}
    transact(user=User.unseat("mine-1", "mine"))
    # Absent, not null: O-05, Q-08.
    assert "current_game" not in get_raw(table.user_key("mine-1"))


def test_settling_adds_to_the_stats_and_the_score() -> None:
    a_lobby("mine", 1)

    def settled(*, is_winner: bool) -> Write:
        return User.settle("mine-1", kills=3, is_winner=is_winner, coins=7, clear_pointer=False)

    transact(user=settled(is_winner=True))
    transact(user=settled(is_winner=False))
    user = User.by_username("mine-1", consistent=True)
    assert user is not None
    assert (user.games_played, user.wins, user.deaths) == (2, 1, 1)
    assert (user.kills, user.coins, user.score) == (6, 14, 16)
    assert user.current_game == "mine"


UNKNOWN = {"favourite_colour": {"S": "of a newer release"}}


def test_what_a_newer_release_stored_survives_every_write_to_an_account() -> None:
    # O-05
    a_guest("guest-ada", "d" * 64)
    key = table.user_key("guest-ada")
    set_raw(key, **UNKNOWN)
    User.upgrade("guest-ada", "Ada", Credential.new("guest-ada", PASSWORD_HASH))
    set_raw(table.credential_key("guest-ada"), **UNKNOWN)
    User.update_profile("guest-ada", "Ada L.")
    User.change_account("guest-ada", [User.role.set("referee")])
    User.change_account("guest-ada", [User.banned_until.set(NOW), User.ban_reason.set("rude")])
    User.change_account("guest-ada", [User.banned_until.remove(), User.ban_reason.remove()])
    transact(user=User.seat("guest-ada", "g"))
    transact(user=User.unseat("guest-ada", "g"))
    transact(user=User.settle("guest-ada", kills=1, is_winner=True, coins=1, clear_pointer=True))
    User.reset_stats("guest-ada")
    Credential.change_hash("guest-ada", PASSWORD_HASH, "new")
    Session.open(a_session("ada"))
    set_raw(table.session_key("ada", SESSION_ID), **UNKNOWN)
    rotate(TOKEN_HASH, NEW_TOKEN_HASH)
    for one in (key, table.credential_key("guest-ada"), table.session_key("ada", SESSION_ID)):
        assert get_raw(one)["favourite_colour"] == UNKNOWN["favourite_colour"]


def test_the_leaderboard_is_by_score_then_name() -> None:
    for name, wins in (("cyd", 1), ("ada", 2), ("bob", 1)):
        a_player(name)
        for _ in range(wins):
            transact(user=User.settle(name, kills=0, is_winner=True, coins=0, clear_pointer=True))
    assert [user.username for user in User.top(3)] == ["ada", "bob", "cyd"]
    assert [user.username for user in User.top(1)] == ["ada"]


def test_a_session_says_when_it_ends() -> None:
    Session.open(a_session("ada"))
    [session] = Session.all_of("ada")
    assert session.expires_at == NOW + timedelta(days=30)
