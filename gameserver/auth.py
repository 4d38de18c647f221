"""Access tokens: short-lived JWTs that name an account and one of its sessions."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

import jwt
from django.conf import settings

from gameserver.errors import NotAuthenticated

ACCESS_TOKEN_SECONDS = 15 * 60
ALGORITHM = "HS256"


@dataclass(frozen=True)
class Identity:
    """Who asks: an account as it stands, and the session his token belongs to."""

    username: str
    display_name: str
    role: str
    session_id: str


@dataclass(frozen=True)
class Claims:
    """What a valid access token says."""

    username: str
    session_id: str


def issue_access_token(username: str, session_id: str, *, now: datetime) -> str:
    """Return a JWT that is good for ACCESS_TOKEN_SECONDS."""
    claims = {
        "sub": username,
        "sid": session_id,
        "iat": now,
        "exp": now + timedelta(seconds=ACCESS_TOKEN_SECONDS),
    }
    return jwt.encode(claims, _key(settings.SECRET_KEY), algorithm=ALGORITHM)


def read_access_token(token: str) -> Claims:
    """Verify a JWT; a token signed with a fallback key (after a rotation) is good, too.

    Raises: NotAuthenticated (`not_authenticated`).
    """
    for secret in [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]:
        try:
            claims = jwt.decode(
                token,
                _key(secret),
                algorithms=[ALGORITHM],
                options={"require": ["exp", "sub", "sid"]},
            )
        except jwt.InvalidSignatureError:
            continue
        except jwt.InvalidTokenError as error:
            raise NotAuthenticated from error
        return Claims(str(claims["sub"]), str(claims["sid"]))
    raise NotAuthenticated


def _key(secret: str) -> bytes:
    # A key of its own, so that nothing else Django signs can pass for a token.
    return hmac.digest(secret.encode(), b"gameserver access token", hashlib.sha256)
