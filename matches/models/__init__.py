"""A game, its roster, and the small items around them; one module per entity."""

from matches.models.game import CANCELLED, FINISHED, OPEN, STARTED, Game
from matches.models.imports import ImportProgress
from matches.models.mapping import UserGameMapping
from matches.models.presence import Heartbeat, Presence
from matches.models.support import ANY_MAP, Lease, QuickJoinPointer, RequestRecord

__all__ = [
    "ANY_MAP",
    "CANCELLED",
    "FINISHED",
    "OPEN",
    "STARTED",
    "Game",
    "Heartbeat",
    "ImportProgress",
    "Lease",
    "Presence",
    "QuickJoinPointer",
    "RequestRecord",
    "UserGameMapping",
]
