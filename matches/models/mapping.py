"""The membership: one player's seat in one game, and his result."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.update import Action
from pynamodb.indexes import GlobalSecondaryIndex, IncludeProjection

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item, Page, RawItem, Write
from matches.rules import PlayerState


class MatchHistoryIndex(GlobalSecondaryIndex["UserGameMapping"]):
    """A player's memberships by time."""

    class Meta:
        index_name = "MatchHistoryIndex"
        projection = IncludeProjection(
            [
                "kind",
                "game_id",
                "username",
                "display_name",
                "is_alive",
                "kills",
                "placement",
                "is_settled",
            ]
        )

    history_of = UnicodeAttribute(hash_key=True)
    joined_at = UTCDateTimeAttribute(range_key=True)


class UserGameMapping(Item, discriminator="USER_GAME"):
    """GAME#{game_id} / USER#{username}: one player's seat, and his result once he is out.

    `placement` is 1 for the winner. `is_settled`: his stats have counted this membership, in the
    same transaction. `kills` and `placement` are null where an imported game did not know them.
    Readable as history through `history_of`, which deleting the account removes.
    """

    game_id = UnicodeAttribute()
    username = UnicodeAttribute()
    display_name = UnicodeAttribute()
    joined_at = UTCDateTimeAttribute()
    history_of = UnicodeAttribute(null=True)
    is_alive = BooleanAttribute(default=True)
    kills = NumberAttribute(null=True)
    placement = NumberAttribute(null=True)
    eliminated_by = UnicodeAttribute(null=True)
    is_settled = BooleanAttribute(default=False)
    is_deleted = BooleanAttribute(null=True)

    by_player = MatchHistoryIndex()

    @classmethod
    def new(cls, game_id: str, username: str, display_name: str, *, now: datetime) -> Self:
        """Return an unsaved seat."""
        return cls(
            *table.mapping_key(game_id, username),
            game_id=game_id,
            username=username,
            display_name=display_name,
            joined_at=now,
            history_of=username,
            kills=0,
        )

    @property
    def state(self) -> PlayerState:
        """The plain state that the rules decide on."""
        return PlayerState(self.username, self.joined_at, self.is_alive)

    @classmethod
    @access_pattern("match history")
    def history(cls, username: str, *, limit: int, start_key: RawItem | None = None) -> Page[Self]:
        """Read a player's memberships, newest first: ONE Query, 0.5 RCU per 4 KB; may lag."""
        return cls.read_page(
            username, index="MatchHistoryIndex", limit=limit, start_key=start_key, forward=False
        )

    @classmethod
    @access_pattern("check seats")
    def of(cls, username: str, game_ids: Iterable[str]) -> list[Self]:
        """Read a player's seats in several games: one consistent BatchGetItem per 100.

        1 RCU each.
        """
        keys = [table.mapping_key(game_id, username) for game_id in dict.fromkeys(game_ids)]
        found = cls.read_many(keys, consistent=True) if keys else []
        return [seat for seat in found if isinstance(seat, cls)]

    @classmethod
    @access_pattern("anonymise seat")
    def anonymise(cls, game_id: str, username: str) -> None:
        """Take a deleted account's membership out of its history: one UpdateItem.

        1 WCU and 1 on MatchHistoryIndex.

        Raises: ConditionFailed if there is no such seat.
        """
        cls.update_one(
            cls.at(table.mapping_key(game_id, username)).change(
                [cls.is_deleted.set(True), cls.history_of.remove()]
            )
        )

    def score_kill(self) -> Write:
        """Count a kill for a player who is still in the game."""
        cls = type(self)
        return self.change([cls.kills.add(1)], cls.is_alive == True)  # noqa: E712

    def settle(
        self, *, placement: int, eliminated_by: str | None, kills: int | None = None
    ) -> Write:
        """Write the result of a player who is still in; `kills` if the same write adds one.

        The condition holds his kills still: they go into his stats in the same transaction.
        """
        cls = type(self)
        actions: list[Action] = [cls.placement.set(placement), cls.is_settled.set(True)]
        if placement > 1:
            actions.append(cls.is_alive.set(False))
        if eliminated_by is not None:
            actions.append(cls.eliminated_by.set(eliminated_by))
        if kills is not None:
            actions.append(cls.kills.set(kills))
        seen = cls.kills.does_not_exist() if self.kills is None else cls.kills == int(self.kills)
        return self.change(actions, (cls.is_alive == True) & seen)  # noqa: E712
