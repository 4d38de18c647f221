"""Scenarios of accounts, logins and devices."""

from datetime import timedelta

from gameserver import table
from matches.access_patterns.scenario import NOW, PASSWORD_HASH, Call, Scenario, a_player
from players.models import Credential, Device, Session, User

SESSION_ID = "s" * 22
TOKEN_HASH, NEW_TOKEN_HASH = "a" * 64, "b" * 64
LATER = NOW + timedelta(days=30)


def a_guest(username: str, device_hash: str) -> None:
    """Create a guest account with its device."""
    user = User.new(username, username, now=NOW, is_guest=True)
    User.create_with_device(user, Device.new(device_hash, username))


def a_session(username: str, session_id: str = SESSION_ID) -> Session:
    """Return an unsaved session."""
    return Session.new(username, session_id, TOKEN_HASH, now=NOW, expires_at=LATER)


def create_profile() -> Call:
    user = User.new("newcomer", "Newcomer", now=NOW)
    return lambda: User.create_with_credential(user, Credential.new("newcomer", PASSWORD_HASH))


def create_guest() -> Call:
    return lambda: a_guest("guest-first", "1" * 64)


def update_profile() -> Call:
    a_player("renamed")
    return lambda: User.update_profile("renamed", "Another Name")


def change_account() -> Call:
    a_player("referee")
    return lambda: User.change_account("referee", [User.role.set("referee")])


def read_profile() -> Call:
    a_player("visited")
    return lambda: User.by_username("visited")


def authenticate() -> Call:
    a_player("caller")
    Session.open(a_session("caller"))
    return lambda: User.with_sessions([("caller", SESSION_ID)])


def upgrade_guest() -> Call:
    a_guest("guest-upgraded", "2" * 64)
    credential = Credential.new("guest-upgraded", PASSWORD_HASH)
    return lambda: User.upgrade("guest-upgraded", "Ada", credential)


def leaderboard() -> Call:
    for number in range(20):
        a_player(f"climber-{number}")
    return lambda: User.top(20)


def list_players() -> Call:
    return lambda: User.on_board(0, 20)


def list_newest_players() -> Call:
    return lambda: User.newest(0, 20)


def read_profiles() -> Call:
    names = [f"listed-{number}" for number in range(20)]
    for name in names:
        a_player(name)
    return lambda: User.by_usernames(names)


def reset_stats() -> Call:
    a_player("cheater")
    User.update_one(
        User.at(table.user_key("cheater")).change([User.wins.set(9), User.score.set(90)])
    )
    return lambda: User.reset_stats("cheater")


def delete_profile() -> Call:
    a_player("leaving")
    return lambda: User.delete_with_credential("leaving")


def read_credential() -> Call:
    a_player("at-login")
    return lambda: Credential.of("at-login")


def change_password() -> Call:
    a_player("careful")
    return lambda: Credential.change_hash("careful", PASSWORD_HASH, PASSWORD_HASH[::-1])


def open_session() -> Call:
    return lambda: Session.open(a_session("opening"))


def rotate_refresh_token() -> Call:
    Session.open(a_session("rotating"))
    return lambda: Session.rotate(
        "rotating", SESSION_ID, TOKEN_HASH, NEW_TOKEN_HASH, expires_at=LATER
    )


def list_sessions() -> Call:
    for number in range(3):
        Session.open(a_session("everywhere", f"{number}" * 22))
    return lambda: Session.all_of("everywhere")


def close_session() -> Call:
    Session.open(a_session("closing"))
    return lambda: Session.close("closing", SESSION_ID)


def read_device() -> Call:
    a_guest("guest-back", "3" * 64)
    return lambda: Device.by_hash("3" * 64)


def forget_device() -> Call:
    a_guest("guest-gone", "4" * 64)
    return lambda: Device.forget("4" * 64)


SCENARIOS = (
    Scenario("create profile", create_profile),
    Scenario("create guest", create_guest),
    Scenario("update profile", update_profile),
    Scenario("change account", change_account),
    Scenario("read profile", read_profile),
    Scenario("authenticate", authenticate),
    Scenario("upgrade guest", upgrade_guest),
    Scenario("leaderboard", leaderboard, "20 players"),
    Scenario("list players", list_players, "20 players"),
    Scenario("list newest players", list_newest_players, "20 players"),
    Scenario("read profiles", read_profiles, "20 players"),
    Scenario("reset stats", reset_stats),
    Scenario("delete profile", delete_profile),
    Scenario("read credential", read_credential),
    Scenario("change password", change_password),
    Scenario("open session", open_session),
    Scenario("rotate refresh token", rotate_refresh_token),
    Scenario("list sessions", list_sessions, "3 sessions"),
    Scenario("close session", close_session),
    Scenario("read device", read_device),
    Scenario("forget device", forget_device),
)
