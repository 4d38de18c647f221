"""One's own account over HTTP; here, above `players`, because it says where one plays."""

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Schema, Status
from pydantic import Field

from gameserver.blocking import run_blocking
from matches.services import departure
from players.api import OwnProfile, own_profile_of
from players.bearer import identity_of
from players.services import accounts

router = Router()


class ProfileIn(Schema):
    display_name: str = Field(max_length=100)


def _own_profile(username: str) -> OwnProfile:
    user = accounts.own_profile(username)
    return own_profile_of(user, departure.current_game(user))


@router.get("/players/me", response=OwnProfile)
async def get_me(request: HttpRequest) -> OwnProfile:
    """Read one's own profile; `current_game` is the game one is in."""
    return await run_blocking(_own_profile, identity_of(request).username)


@router.patch("/players/me", response=OwnProfile)
async def rename_me(request: HttpRequest, body: ProfileIn) -> OwnProfile:
    """Change the display name."""
    user = await run_blocking(accounts.rename, identity_of(request).username, body.display_name)
    return own_profile_of(user, await run_blocking(departure.current_game, user))


@router.delete("/players/me", response={204: None})
async def delete_me(request: HttpRequest) -> Status[None]:
    """Delete the account: leaves its game, keeps old games whole, without the name."""
    username = identity_of(request).username
    await run_blocking(departure.delete_account, username, now=timezone.now())
    return Status(204, None)
