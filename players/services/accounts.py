"""Accounts: sign up, guests, profiles, passwords, roles and bans."""

import hashlib
import secrets
from datetime import datetime

from gameserver import hints
from gameserver.errors import (
    InvalidCredentials,
    NotAuthenticated,
    PlayerNotFound,
    TryAgain,
    UsernameTaken,
    ValidationFailed,
)
from gameserver.models import ConditionFailed
from players import passwords, rules
from players.models import Credential, Device, User
from players.services import sessions
from players.services.sessions import Tokens
from settings_singleton import counters
from settings_singleton.services import require_flag

GUEST_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
GUEST_LETTERS = 10
DEVICE_ID_LENGTHS = (8, 200)


def sign_up(
    username: str, password: str, display_name: str | None = None, *, now: datetime
) -> tuple[User, Tokens]:
    """Create an account and log it in.

    Raises: FeatureDisabled, ValidationFailed, UsernameTaken, TryAgain.
    """
    require_flag("signup_enabled")
    name = rules.canonical_username(username)
    rules.check_new_username(name)
    rules.check_password(password)
    shown_name = name if display_name is None else rules.clean_display_name(display_name)
    user = User.new(name, shown_name, now=now)
    if User.by_username(name) is not None:
        # Only to spare the hashing; the write's condition decides.
        raise UsernameTaken
    credential = Credential.new(name, passwords.hash_password(password))
    try:
        User.create_with_credential(user, credential)
    except ConditionFailed as refused:
        raise UsernameTaken from refused
    counters.count("players_signed_up")
    return user, sessions.open_session(name, now=now)


def guest_login(device_id: str, *, now: datetime) -> tuple[User, Tokens, bool]:
    """Resume the guest account of a device, or create one; the last value says which (created).

    Raises: FeatureDisabled (only if it would create), ValidationFailed, Banned.
    """
    shortest, longest = DEVICE_ID_LENGTHS
    if not shortest <= len(device_id) <= longest:
        raise ValidationFailed(f"A device_id has {shortest} to {longest} characters.")
    device_hash = hashlib.sha256(device_id.encode()).hexdigest()
    # Twice: of two first logins at once, the slower finds the account of the faster.
    for _ in range(2):
        device = Device.by_hash(device_hash)
        if device is not None:
            user = User.by_username(device.username, consistent=True)
            if user is not None:
                rules.check_not_banned(user.banned_until, now)
                return user, sessions.open_session(user.username, now=now), False
            # The account was deleted: the device starts anew.
            Device.forget(device_hash)
        require_flag("signup_enabled")
        name = rules.GUEST_PREFIX + "".join(
            secrets.choice(GUEST_ALPHABET) for _ in range(GUEST_LETTERS)
        )
        user = User.new(name, name, now=now, is_guest=True)
        try:
            User.create_with_device(user, Device.new(device_hash, name))
        except ConditionFailed:
            continue
        counters.count("players_signed_up")
        return user, sessions.open_session(name, now=now), True
    raise TryAgain


def profile(username: str) -> User:
    """Read a public profile.

    Raises: PlayerNotFound.
    """
    try:
        user = User.by_username(rules.canonical_username(username))
    except ValidationFailed:
        user = None
    if user is None:
        raise PlayerNotFound
    return user


def own_profile(username: str) -> User:
    """Read one's own profile, strongly: it shows what one has just done.

    Raises: NotAuthenticated if the account was deleted meanwhile.
    """
    user = User.by_username(username, consistent=True)
    if user is None:
        raise NotAuthenticated
    return user


def rename(username: str, display_name: str) -> User:
    """Change a display name. Seats taken before keep the name they had.

    Raises: ValidationFailed, PlayerNotFound.
    """
    name = rules.clean_display_name(display_name)
    try:
        user = User.update_profile(username, name)
    except ConditionFailed as refused:
        raise PlayerNotFound from refused
    sessions.forget_identity(username)
    hints.sessions_changed(username)
    return user


def change_password(username: str, session_id: str, old: str, new: str) -> None:
    """Replace the password and end all other sessions.

    Raises: InvalidCredentials, ValidationFailed, TryAgain.
    """
    rules.check_password(new)
    credential = Credential.of(username)
    if credential is None:
        raise InvalidCredentials("A guest has no password: upgrade the account first.")
    if not passwords.is_password(old, credential.password_hash):
        raise InvalidCredentials
    try:
        Credential.change_hash(username, credential.password_hash, passwords.hash_password(new))
    except ConditionFailed as refused:
        raise InvalidCredentials from refused
    sessions.log_out_everywhere(username, but=session_id)


def upgrade_guest(
    guest: str, password: str, display_name: str | None, *, username: str | None = None
) -> User:
    """Make a guest a full account. It keeps its username: its games are stored under it.

    Raises: ValidationFailed if it is no guest, asks for another username, or for a bad password.
    """
    if username is not None and rules.canonical_username(username) != guest:
        raise ValidationFailed("A guest keeps its username. Choose a display_name instead.")
    rules.check_password(password)
    name = None if display_name is None else rules.clean_display_name(display_name)
    credential = Credential.new(guest, passwords.hash_password(password))
    try:
        User.upgrade(guest, name, credential)
    except ConditionFailed as refused:
        raise ValidationFailed("This account is no guest.") from refused
    sessions.forget_identity(guest)
    return own_profile(guest)


def delete_account(username: str, *, over: str | None = None) -> None:
    """Delete an account that sits in no game: sessions, profile, password.

    `over` is a game he may still point to, because it is over for him.

    Raises: ConditionFailed if it sits in a game, or was deleted before.
    """
    # Before and after: a session that outlived the account would be good for the next one who
    # takes its name.
    sessions.log_out_everywhere(username)
    User.delete_with_credential(username, over=over)
    sessions.log_out_everywhere(username)


def make_referee(username: str) -> User:
    """Let an account report eliminations of others.

    Raises: PlayerNotFound.
    """
    return _change(username, [User.role.set("referee")])


def dismiss_referee(username: str) -> User:
    """Make a referee a mere player again.

    Raises: PlayerNotFound.
    """
    return _change(username, [User.role.set("player")])


def ban(username: str, *, until: datetime, reason: str) -> User:
    """Refuse an account until a time: its sessions end, its sockets are closed.

    Raises: PlayerNotFound.
    """
    user = _change(username, [User.banned_until.set(until), User.ban_reason.set(reason)])
    sessions.log_out_everywhere(username)
    return user


def unban(username: str) -> User:
    """Let an account in again.

    Raises: PlayerNotFound.
    """
    return _change(username, [User.banned_until.remove(), User.ban_reason.remove()])


def _change(username: str, actions: list) -> User:  # type: ignore[type-arg]
    try:
        user = User.change_account(username, actions)
    except ConditionFailed as refused:
        raise PlayerNotFound from refused
    sessions.forget_identity(username)
    hints.sessions_changed(username)
    return user
