"""The user: public profile, stats, and where he plays."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Self

from django.conf import settings
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
from gameserver.models import Item, Page, RawItem, Write, transact
from players.models.login import Credential, Device, Login, Session

SEASON = "all-time"
SCORE_PER_WIN = 10
SCORE_PER_KILL = 1


class LeaderboardIndex(GlobalSecondaryIndex["User"]):
    """Users by score: the leaderboard, and the operators' list of players."""

    class Meta:
        index_name = "LeaderboardIndex"
        projection = IncludeProjection(
            ["kind", "username", "display_name", "is_guest", "wins", "kills", "games_played"]
        )

    board = UnicodeAttribute(hash_key=True)
    score = NumberAttribute(range_key=True)


class User(Item, discriminator="USER"):
    """USER#{username} / #METADATA#{username}: public profile, stats, and where he plays.

    `score` = 10 a win and 1 a kill. `banned_until` is a time, far in the future for good.
    `current_game` may be stale (that game is over, or he was thrown out): joins find out.
    """

    username = UnicodeAttribute()
    display_name = UnicodeAttribute()
    is_guest = BooleanAttribute(default=False)
    role = UnicodeAttribute(default="player")
    created_at = UTCDateTimeAttribute()
    banned_until = UTCDateTimeAttribute(null=True)
    ban_reason = UnicodeAttribute(null=True)
    current_game = UnicodeAttribute(null=True)
    games_played = NumberAttribute(default=0)
    wins = NumberAttribute(default=0)
    kills = NumberAttribute(default=0)
    deaths = NumberAttribute(default=0)
    coins = NumberAttribute(default=0)
    is_imported = BooleanAttribute(null=True)
    board = UnicodeAttribute(null=True)
    score = NumberAttribute(default=0)
    # The games' listing index, lent for the operators' list of the newest players.
    listing = UnicodeAttribute(null=True)
    listed_at = UnicodeAttribute(null=True)
    # What operators took off the stats, so that memberships still add up to both together.
    reset_games_played = NumberAttribute(null=True)
    reset_wins = NumberAttribute(null=True)
    reset_kills = NumberAttribute(null=True)
    reset_deaths = NumberAttribute(null=True)

    leaderboard = LeaderboardIndex()

    STATS = ("games_played", "wins", "kills", "deaths", "coins", "score")

    @classmethod
    def new(
        cls, username: str, display_name: str, *, now: datetime, is_guest: bool = False
    ) -> Self:
        """Return an unsaved user with empty stats, on the leaderboard with score 0."""
        shard = table.shard_of(username)
        return cls(
            *table.user_key(username),
            username=username,
            display_name=display_name,
            is_guest=is_guest,
            created_at=now,
            board=table.board_key(SEASON, shard),
            listing=table.newest_key(shard),
            listed_at=table.listed_at(now, username),
        )

    @classmethod
    @access_pattern("create profile")
    def create_with_credential(cls, user: Self, credential: Credential) -> None:
        """Sign up: one TransactWrite, 4 WCU and 1 on each of two indexes.

        Raises: ConditionFailed ("user", "credential") if the username is taken.
        """
        transact(user=user.put(), credential=credential.put())

    @classmethod
    @access_pattern("create guest")
    def create_with_device(cls, user: Self, device: Device) -> None:
        """Create a guest: one TransactWrite, 4 WCU and 1 on each of two indexes.

        Raises: ConditionFailed ("user" or "device").
        """
        transact(user=user.put(), device=device.put())

    @classmethod
    @access_pattern("update profile")
    def update_profile(cls, username: str, display_name: str) -> Self:
        """Rename: one UpdateItem, 1 WCU and 1 on LeaderboardIndex.

        Raises: ConditionFailed if there is no such user.
        """
        user = cls.at(table.user_key(username))
        return cls.update_one(user.change([cls.display_name.set(display_name)]))

    @classmethod
    @access_pattern("change account")
    def change_account(cls, username: str, actions: list[Action]) -> Self:
        """Set role or ban: one UpdateItem, 1 WCU.

        Raises: ConditionFailed if there is no such user.
        """
        return cls.update_one(cls.at(table.user_key(username)).change(actions))

    @classmethod
    @access_pattern("read profile")
    def by_username(cls, username: str, *, consistent: bool = False) -> Self | None:
        """Read a profile: one GetItem, 0.5 RCU (1 if consistent)."""
        return cls.read(table.user_key(username), consistent=consistent)

    @classmethod
    @access_pattern("authenticate")
    def with_sessions(
        cls, logins: Collection[Login], *, consistent: bool = False
    ) -> dict[Login, tuple[Self | None, Session | None]]:
        """Read accounts and a session of each: one BatchGetItem per 50, 1 RCU each (2)."""
        keys = {table.user_key(username) for username, _ in logins}
        keys |= {table.session_key(*login) for login in logins}
        users: dict[str, Self] = {}
        sessions: dict[Login, Session] = {}
        for item in cls.read_many(list(keys), consistent=consistent):
            if isinstance(item, cls):
                users[item.username] = item
            elif isinstance(item, Session):
                sessions[item.username, item.session_id] = item
        return {login: (users.get(login[0]), sessions.get(login)) for login in logins}

    @classmethod
    @access_pattern("upgrade guest")
    def upgrade(cls, username: str, display_name: str | None, credential: Credential) -> None:
        """Give a guest a password: one TransactWrite, 4 WCU.

        Raises: ConditionFailed ("user" if he is no guest).
        """
        actions: list[Action] = [cls.is_guest.set(False)]
        if display_name is not None:
            actions.append(cls.display_name.set(display_name))
        transact(
            user=cls.at(table.user_key(username)).change(actions, cls.is_guest == True),  # noqa: E712
            credential=credential.put(),
        )

    @classmethod
    @access_pattern("leaderboard")
    def top(cls, limit: int) -> list[Self]:
        """Read the best players: one Query per shard, 0.5 RCU per 4 KB each."""
        users: list[Self] = []
        for shard in range(settings.LISTING_SHARDS):
            board = table.board_key(SEASON, shard)
            users += cls.read_page(
                board, index="LeaderboardIndex", limit=limit, forward=False
            ).items
        return sorted(users, key=lambda user: (-user.score, user.username))[:limit]

    @classmethod
    @access_pattern("list players")
    def on_board(
        cls, shard: int, limit: int, *, after: tuple[int, str] | None = None
    ) -> Page[Self]:
        """Read a part of one shard, best first: one Query, 0.5 RCU per 4 KB; may lag behind.

        `after` is the score and name of the last one read. Equal scores are in the table's order.
        """
        board = table.board_key(SEASON, shard)
        start_key: RawItem | None = None
        if after is not None:
            pk, sk = table.user_key(after[1])
            start_key = {
                "PK": {"S": pk},
                "SK": {"S": sk},
                "board": {"S": board},
                "score": {"N": str(after[0])},
            }
        return cls.read_page(
            board, index="LeaderboardIndex", limit=limit, start_key=start_key, forward=False
        )

    @classmethod
    @access_pattern("list newest players")
    def newest(cls, shard: int, limit: int, *, before: str | None = None) -> list[str]:
        """Read the names of one shard's newest players: one Query, 0.5 RCU per 4 KB; may lag.

        In the index of game listings: users carry its keys, too, and nothing that is projected
        there ever changes, so it costs no write but the first. `before` bounds `listed_at`.
        """
        page = cls.read_page(
            table.newest_key(shard),
            cls.listed_at < before if before is not None else None,
            index="GameListingIndex",
            limit=limit,
            forward=False,
        )
        return [table.id_in(user.PK) for user in page.items]

    @classmethod
    @access_pattern("read profiles")
    def by_usernames(cls, usernames: Sequence[str]) -> list[Self]:
        """Read several profiles: one BatchGetItem per 100, 0.5 RCU each; order is not kept."""
        keys = [table.user_key(username) for username in usernames]
        return [user for user in cls.read_many(keys) if isinstance(user, cls)] if keys else []

    @classmethod
    @access_pattern("reset stats")
    def reset_stats(cls, username: str) -> Self:
        """Set all stats and the score to 0: one UpdateItem, 1 WCU and 2 on LeaderboardIndex.

        DynamoDB adds up what it takes away, so a repeat adds nothing and no settlement is lost.

        Raises: ConditionFailed if there is no such user.
        """
        actions: list[Action] = [getattr(cls, name).set(0) for name in cls.STATS]
        for name in ("games_played", "wins", "kills", "deaths"):
            taken = getattr(cls, f"reset_{name}")
            actions.append(taken.set((taken | 0) + getattr(cls, name)))
        return cls.update_one(cls.at(table.user_key(username)).change(actions))

    @classmethod
    @access_pattern("delete profile")
    def delete_with_credential(cls, username: str, *, over: str | None = None) -> None:
        """Delete an account: one TransactWrite, 4 WCU and 1 on each of two indexes.

        `over` is a game he may still point to, because it is over for him.

        Raises: ConditionFailed ("user") if he sits in a game or was deleted already.
        """
        user = cls.at(table.user_key(username))
        seated_nowhere = cls.current_game.does_not_exist()
        if over is not None:
            seated_nowhere |= cls.current_game == over
        credential = Credential.at(table.credential_key(username))
        transact(
            user=user.remove(cls.PK.exists() & seated_nowhere),
            # A guest has none, and deleting what is not there is fine.
            credential=credential.remove_if_there(),
        )

    @classmethod
    def seat(cls, username: str, game_id: str, *, instead_of: str | None = None) -> Write:
        """Point to the game he joins, if he points to none (or to the stale `instead_of`)."""
        condition = cls.current_game.does_not_exist()
        if instead_of is not None:
            condition |= cls.current_game == instead_of
        return cls.at(table.user_key(username)).change([cls.current_game.set(game_id)], condition)

    @classmethod
    def unseat(cls, username: str, game_id: str) -> Write:
        """Clear the pointer, if it is to this game."""
        user = cls.at(table.user_key(username))
        return user.change([cls.current_game.remove()], cls.current_game == game_id)

    @classmethod
    def settle(
        cls, username: str, *, kills: int, is_winner: bool, coins: int, clear_pointer: bool
    ) -> Write:
        """Add one finished membership to his stats; the caller's transaction makes it once."""
        actions: list[Action] = [
            cls.games_played.add(1),
            cls.kills.add(kills),
            cls.wins.add(int(is_winner)),
            cls.deaths.add(int(not is_winner)),
            cls.coins.add(coins),
            cls.score.add(SCORE_PER_WIN * is_winner + SCORE_PER_KILL * kills),
        ]
        if clear_pointer:
            actions.append(cls.current_game.remove())
        return cls.at(table.user_key(username)).change(actions)
