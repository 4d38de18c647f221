"""Logins: tokens, their rotation, and who a token stands for."""

import hashlib
import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from cachetools import TTLCache

from gameserver import hints
from gameserver.auth import ACCESS_TOKEN_SECONDS, Identity, issue_access_token, read_access_token
from gameserver.errors import Banned, InvalidCredentials, NotAuthenticated, ValidationFailed
from gameserver.models import ConditionFailed
from players import passwords, rules
from players.models import Credential, Login, Session, User

REFRESH_TOKEN_DAYS = 30
BAD_REFRESH_TOKEN = "This refresh token is not good, or no longer: log in again."  # noqa: S105 (a text)
# How long a revoked session may still be believed by a process that missed the hint.
IDENTITY_CACHE_SECONDS = 5
IDENTITY_CACHE_SIZE = 20_000


@dataclass(frozen=True)
class Tokens:
    """A fresh pair; `expires_in` is the access token's life in seconds."""

    access_token: str
    refresh_token: str
    expires_in: int = ACCESS_TOKEN_SECONDS


_identities: TTLCache[Login, tuple[Identity, datetime | None]] = TTLCache(
    IDENTITY_CACHE_SIZE, IDENTITY_CACHE_SECONDS
)
_identities_lock = threading.Lock()


def log_in(username: str, password: str, *, now: datetime) -> Tokens:
    """Check a password and open a session.

    Raises: InvalidCredentials (after the same time for an unknown user), Banned, TryAgain.
    """
    try:
        name = rules.canonical_username(username)
    except ValidationFailed:
        name = ""
    credential = Credential.of(name) if name else None
    if not passwords.is_password(password, credential.password_hash if credential else None):
        raise InvalidCredentials
    user = User.by_username(name, consistent=True)
    if user is None:
        raise InvalidCredentials
    rules.check_not_banned(user.banned_until, now)
    return open_session(name, now=now)


def open_session(username: str, *, now: datetime) -> Tokens:
    """Start a login: a new session with its first refresh token."""
    session_id = secrets.token_urlsafe(16)
    secret = secrets.token_urlsafe(32)
    expires_at = now + timedelta(days=REFRESH_TOKEN_DAYS)
    Session.open(Session.new(username, session_id, _digest(secret), now=now, expires_at=expires_at))
    return _tokens(username, session_id, secret, now=now)


def refresh(refresh_token: str, *, now: datetime) -> Tokens:
    """Exchange a refresh token for a new pair. A token that was used before ends its session.

    Raises: NotAuthenticated, Banned.
    """
    username, session_id, secret = _parts(refresh_token)
    new_secret = secrets.token_urlsafe(32)
    login = (username, session_id)
    user, session = User.with_sessions([login])[login]
    if user is None or session is None or _is_over(session, now):
        raise NotAuthenticated(BAD_REFRESH_TOKEN)
    rules.check_not_banned(user.banned_until, now)
    try:
        Session.rotate(
            username,
            session_id,
            _digest(secret),
            _digest(new_secret),
            expires_at=now + timedelta(days=REFRESH_TOKEN_DAYS),
        )
    except ConditionFailed as refused:
        # Used before, by its owner or a thief: neither can be told apart, so both must log in.
        if refused.failed["item"] is not None:
            log_out(username, session_id)
        raise NotAuthenticated(BAD_REFRESH_TOKEN) from refused
    return _tokens(username, session_id, new_secret, now=now)


def log_out(username: str, session_id: str) -> None:
    """End one session; its tokens are dead, its sockets are closed."""
    Session.close(username, session_id)
    forget_identity(username)
    hints.sessions_changed(username)


def log_out_everywhere(username: str, *, but: str | None = None) -> None:
    """End all sessions of an account, except `but`."""
    for session in Session.all_of(username):
        if session.session_id != but:
            Session.close(username, session.session_id)
    forget_identity(username)
    hints.sessions_changed(username)


def authenticate(access_token: str, *, now: datetime) -> Identity:
    """Return who a token stands for: one BatchGetItem, at most every 5 s for each session.

    Raises: NotAuthenticated if token, session or account is gone; Banned.
    """
    claims = read_access_token(access_token)
    return identify(claims.username, claims.session_id, now=now)


def identify(
    username: str, session_id: str, *, now: datetime, consistent: bool = False
) -> Identity:
    """Return who a session belongs to, if it still stands; a socket outlives its access token.

    `consistent`: what is not known here is read strongly, right after a change.

    Raises: NotAuthenticated if session or account is gone; Banned.
    """
    key = (username, session_id)
    with _identities_lock:
        known = _identities.get(key)
    if known is None:
        known = _judge(*User.with_sessions([key], consistent=consistent)[key], now)
        with _identities_lock:
            _identities[key] = known
    identity, banned_until = known
    rules.check_not_banned(banned_until, now)
    return identity


def ended(
    logins: Collection[Login], *, now: datetime, consistent: bool = False
) -> dict[Login, NotAuthenticated | Banned]:
    """Return which of these (username, session id) stand no more, and why; read anew, together.

    Raises: TryAgain.
    """
    reasons: dict[Login, NotAuthenticated | Banned] = {}
    for login, found in User.with_sessions(logins, consistent=consistent).items():
        try:
            _judge(*found, now)
        except (NotAuthenticated, Banned) as reason:
            reasons[login] = reason
    return reasons


def cached_identity(access_token: str, *, now: datetime) -> Identity | None:
    """Return who a token stands for if this process knows; never does I/O.

    Raises: NotAuthenticated if the token is bad; Banned.
    """
    claims = read_access_token(access_token)
    with _identities_lock:
        known = _identities.get((claims.username, claims.session_id))
    if known is None:
        return None
    rules.check_not_banned(known[1], now)
    return known[0]


def forget_identity(username: str) -> None:
    """Drop what this process believes about an account, after a change or on a hint."""
    with _identities_lock:
        for key in [key for key in _identities if key[0] == username]:
            del _identities[key]


def _judge(
    user: User | None, session: Session | None, now: datetime
) -> tuple[Identity, datetime | None]:
    """Raises: NotAuthenticated, Banned."""
    if user is not None:
        # Before the session, which the ban has ended: the player is told why.
        rules.check_not_banned(user.banned_until, now)
    if user is None or session is None or _is_over(session, now):
        raise NotAuthenticated
    identity = Identity(user.username, user.display_name, user.role, session.session_id)
    return identity, user.banned_until


def _is_over(session: Session, now: datetime) -> bool:
    # TTL deletes up to two days late.
    return session.expires_at is None or session.expires_at <= now


def _tokens(username: str, session_id: str, secret: str, *, now: datetime) -> Tokens:
    return Tokens(
        access_token=issue_access_token(username, session_id, now=now),
        refresh_token=f"{username}.{session_id}.{secret}",
    )


def _parts(refresh_token: str) -> tuple[str, str, str]:
    parts = refresh_token.split(".")
    if len(parts) != 3 or not rules.USERNAME.fullmatch(parts[0]) or not 1 <= len(parts[1]) <= 64:
        raise NotAuthenticated(BAD_REFRESH_TOKEN)
    return parts[0], parts[1], parts[2]


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
