"""Accounts over HTTP: sign up, log in, public profiles, leaderboard."""

from typing import Annotated

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router, Schema
from ninja.responses import Status
from pydantic import Field

from gameserver.blocking import run_blocking
from gameserver.times import Timestamp
from players.bearer import identity_of
from players.models import User
from players.services import accounts, sessions
from players.services.sessions import Tokens

router = Router()

Limit = Annotated[int, Query(20, ge=1, le=100)]


class SignUpIn(Schema):
    username: str = Field(max_length=100)
    password: str = Field(max_length=200)
    display_name: str | None = Field(None, max_length=100)


class GuestIn(Schema):
    device_id: str = Field(max_length=200)


class CredentialsIn(Schema):
    username: str = Field(max_length=100)
    password: str = Field(max_length=200)


class RefreshIn(Schema):
    refresh_token: str = Field(max_length=200)


class LogoutIn(Schema):
    everywhere: bool = Field(False, strict=True)


class PasswordIn(Schema):
    old_password: str = Field(max_length=200)
    new_password: str = Field(max_length=200)


class UpgradeIn(Schema):
    password: str = Field(max_length=200)
    username: str | None = Field(None, max_length=100)
    display_name: str | None = Field(None, max_length=100)


class Stats(Schema):
    games_played: int
    wins: int
    kills: int
    deaths: int
    coins: int


class Profile(Schema):
    username: str
    display_name: str
    is_guest: bool
    created_at: Timestamp
    stats: Stats


class OwnProfile(Profile):
    current_game: str | None
    role: str


class TokensOut(Schema):
    access_token: str
    refresh_token: str
    expires_in: int


class SignedUp(TokensOut):
    player: OwnProfile


class Leader(Schema):
    rank: int
    username: str
    display_name: str
    wins: int
    kills: int
    games_played: int
    score: int


class Leaderboard(Schema):
    items: list[Leader]


def profile_of(user: User) -> Profile:
    """Shape a public profile."""
    return Profile(
        username=user.username,
        display_name=user.display_name,
        is_guest=user.is_guest,
        created_at=user.created_at,
        stats=Stats(
            games_played=int(user.games_played),
            wins=int(user.wins),
            kills=int(user.kills),
            deaths=int(user.deaths),
            coins=int(user.coins),
        ),
    )


def own_profile_of(user: User, current_game: str | None) -> OwnProfile:
    """Shape one's own profile."""
    return OwnProfile(**profile_of(user).model_dump(), current_game=current_game, role=user.role)


def _signed_up(user: User, tokens: Tokens) -> SignedUp:
    return SignedUp(player=own_profile_of(user, user.current_game), **vars(tokens))


@router.post("/players", auth=None, response={201: SignedUp})
async def sign_up(request: HttpRequest, body: SignUpIn) -> Status[SignedUp]:
    """Create an account and log it in."""
    user, tokens = await run_blocking(
        accounts.sign_up, body.username, body.password, body.display_name, now=timezone.now()
    )
    return Status(201, _signed_up(user, tokens))


@router.post("/players/guest", auth=None, response={200: SignedUp, 201: SignedUp})
async def guest_login(request: HttpRequest, body: GuestIn) -> Status[SignedUp]:
    """Create (201) or resume (200) the guest account of a device."""
    user, tokens, is_new = await run_blocking(
        accounts.guest_login, body.device_id, now=timezone.now()
    )
    return Status(201 if is_new else 200, _signed_up(user, tokens))


@router.post("/auth/token", auth=None, response=TokensOut)
async def log_in(request: HttpRequest, body: CredentialsIn) -> TokensOut:
    """Log in with username and password."""
    tokens = await run_blocking(sessions.log_in, body.username, body.password, now=timezone.now())
    return TokensOut(**vars(tokens))


@router.post("/auth/refresh", auth=None, response=TokensOut)
async def refresh(request: HttpRequest, body: RefreshIn) -> TokensOut:
    """Exchange a refresh token for a new pair; each is good once."""
    tokens = await run_blocking(sessions.refresh, body.refresh_token, now=timezone.now())
    return TokensOut(**vars(tokens))


@router.post("/auth/logout", response={204: None})
async def log_out(request: HttpRequest, body: LogoutIn | None = None) -> Status[None]:
    """End this session, or all of the account's."""
    me = identity_of(request)
    if body is not None and body.everywhere:
        await run_blocking(sessions.log_out_everywhere, me.username)
    else:
        await run_blocking(sessions.log_out, me.username, me.session_id)
    return Status(204, None)


@router.put("/players/me/password", response={204: None})
async def change_password(request: HttpRequest, body: PasswordIn) -> Status[None]:
    """Change the password; ends all other sessions."""
    me = identity_of(request)
    await run_blocking(
        accounts.change_password, me.username, me.session_id, body.old_password, body.new_password
    )
    return Status(204, None)


@router.post("/players/me/upgrade", response=OwnProfile)
async def upgrade_guest(request: HttpRequest, body: UpgradeIn) -> OwnProfile:
    """Give a guest account a password, so that it can log in anywhere; the username stays."""
    user = await run_blocking(
        accounts.upgrade_guest,
        identity_of(request).username,
        body.password,
        body.display_name,
        username=body.username,
    )
    return own_profile_of(user, user.current_game)


@router.get("/players/{username}", response=Profile)
async def get_profile(request: HttpRequest, username: str) -> Profile:
    """Read a public profile."""
    return profile_of(await run_blocking(accounts.profile, username))


@router.get("/leaderboard", response=Leaderboard)
async def leaderboard(request: HttpRequest, limit: Limit) -> Leaderboard:
    """List the best players: 10 points a win, 1 a kill."""
    users = await run_blocking(User.top, limit)
    return Leaderboard(
        items=[
            Leader(
                rank=rank,
                username=user.username,
                display_name=user.display_name,
                wins=int(user.wins or 0),
                kills=int(user.kills or 0),
                games_played=int(user.games_played or 0),
                score=int(user.score),
            )
            for rank, user in enumerate(users, 1)
        ]
    )
