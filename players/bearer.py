"""The API's authentication: `Authorization: Bearer <access token>`; public operations opt out."""

from typing import cast

from django.http import HttpRequest
from django.utils import timezone
from ninja.security import HttpBearer

from gameserver.auth import Identity
from gameserver.blocking import run_blocking
from players.services import sessions


class Bearer(HttpBearer):
    """Turn an access token into the request's `Identity`."""

    async def authenticate(self, request: HttpRequest, token: str) -> Identity:
        """Raises: NotAuthenticated, Banned."""
        now = timezone.now()
        known = sessions.cached_identity(token, now=now)
        if known is not None:
            return known
        return await run_blocking(sessions.authenticate, token, now=now)


bearer = Bearer()


def identity_of(request: HttpRequest) -> Identity:
    """Return who sent an authenticated request."""
    return cast(Identity, request.auth)  # type: ignore[attr-defined]  # set by ninja
