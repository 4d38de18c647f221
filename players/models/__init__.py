"""A user and what belongs to him, in one partition; devices point to him from their own."""

from players.models.login import Credential, Device, Login, Session
from players.models.user import SCORE_PER_KILL, SCORE_PER_WIN, LeaderboardIndex, User

__all__ = [
    "SCORE_PER_KILL",
    "SCORE_PER_WIN",
    "Credential",
    "Device",
    "LeaderboardIndex",
    "Login",
    "Session",
    "User",
]
