"""A user and what belongs to him, in one partition; devices point to him from their own."""

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
        return cls(
            *table.user_key(username),
            username=username,
            display_name=display_name,
            is_guest=is_guest,
            created_at=now,
            board=table.board_key(SEASON, table.shard_of(username)),
        )

    @classmethod
    @access_pattern("create profile")
    def create_with_credential(cls, user: Self, credential: "Credential") -> None:
        """Sign up: one TransactWrite, 4 WCU and 1 on LeaderboardIndex.

        Raises: ConditionFailed ("user", "credential") if the username is taken.
        """
        transact(user=user.put(), credential=credential.put())

    @classmethod
    @access_pattern("create guest")
    def create_with_device(cls, user: Self, device: "Device") -> None:
        """Create a guest: one TransactWrite, 4 WCU and 1 on LeaderboardIndex.

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
    def with_session(
        cls, username: str, session_id: str, *, consistent: bool = False
    ) -> tuple[Self | None, "Session | None"]:
        """Read an account and one of its sessions: one BatchGetItem, 1 RCU (2 if consistent)."""
        user: Self | None = None
        session: Session | None = None
        keys = [table.user_key(username), table.session_key(username, session_id)]
        for item in cls.read_many(keys, consistent=consistent):
            if isinstance(item, cls):
                user = item
            elif isinstance(item, Session):
                session = item
        return user, session

    @classmethod
    @access_pattern("upgrade guest")
    def upgrade(cls, username: str, display_name: str | None, credential: "Credential") -> None:
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
        """Delete an account: one TransactWrite, 4 WCU and 1 on LeaderboardIndex.

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


class Credential(Item, discriminator="CREDENTIAL"):
    """USER#{username} / #CREDENTIAL: the password's hash, apart from what clients may see."""

    password_hash = UnicodeAttribute()

    @classmethod
    def new(cls, username: str, password_hash: str) -> Self:
        """Return an unsaved credential."""
        return cls(*table.credential_key(username), password_hash=password_hash)

    @classmethod
    @access_pattern("read credential")
    def of(cls, username: str) -> Self | None:
        """Read a password hash: one consistent GetItem, 1 RCU."""
        return cls.read(table.credential_key(username), consistent=True)

    @classmethod
    @access_pattern("change password")
    def change_hash(cls, username: str, old_hash: str, new_hash: str) -> None:
        """Replace the hash if it is still the old one: one UpdateItem, 1 WCU.

        Raises: ConditionFailed if another change came first.
        """
        credential = cls.at(table.credential_key(username))
        condition = cls.password_hash.is_in(old_hash, new_hash)
        cls.update_one(credential.change([cls.password_hash.set(new_hash)], condition))


class Session(Item, discriminator="SESSION"):
    """USER#{username} / SESSION#{id}: one login; holds the digest of its current refresh token."""

    username = UnicodeAttribute()
    session_id = UnicodeAttribute()
    token_hash = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()

    @classmethod
    def new(
        cls, username: str, session_id: str, token_hash: str, *, now: datetime, expires_at: datetime
    ) -> Self:
        """Return an unsaved session."""
        return cls(
            *table.session_key(username, session_id),
            username=username,
            session_id=session_id,
            token_hash=token_hash,
            created_at=now,
            expires_at=expires_at,
        )

    @classmethod
    @access_pattern("open session")
    def open(cls, session: Self) -> None:
        """Store a login: one PutItem, 1 WCU. The id is random, so a repeat writes the same."""
        session.save()

    @classmethod
    @access_pattern("rotate refresh token")
    def rotate(
        cls, username: str, session_id: str, old_hash: str, new_hash: str, *, expires_at: datetime
    ) -> Self:
        """Replace the refresh token's digest: one UpdateItem, 1 WCU.

        Raises: ConditionFailed with the session as it stands (None: no such session).
        """
        session = cls.at(table.session_key(username, session_id))
        actions = [cls.token_hash.set(new_hash), cls.expires_at.set(expires_at)]
        # The new digest is accepted too: it is this very write, repeated after a lost answer.
        return cls.update_one(session.change(actions, cls.token_hash.is_in(old_hash, new_hash)))

    @classmethod
    @access_pattern("list sessions")
    def all_of(cls, username: str) -> list[Self]:
        """Read an account's sessions: one consistent Query, 1 RCU per 4 KB."""
        pk = table.user_key(username)[0]
        return cls.read_all(pk, cls.SK.startswith(table.SESSION_PREFIX), consistent=True)

    @classmethod
    @access_pattern("close session")
    def close(cls, username: str, session_id: str) -> None:
        """Delete a login: one DeleteItem, 1 WCU."""
        cls.delete_one(table.session_key(username, session_id))


class Device(Item, discriminator="DEVICE"):
    """DEVICE#{sha256 of the device id} / #METADATA: which guest account a device logs in to."""

    username = UnicodeAttribute()

    @classmethod
    def new(cls, device_hash: str, username: str) -> Self:
        """Return an unsaved device."""
        return cls(*table.device_key(device_hash), username=username)

    @classmethod
    @access_pattern("read device")
    def by_hash(cls, device_hash: str) -> Self | None:
        """Find a device's account: one consistent GetItem, 1 RCU."""
        return cls.read(table.device_key(device_hash), consistent=True)

    @classmethod
    @access_pattern("forget device")
    def forget(cls, device_hash: str) -> None:
        """Delete a device: one DeleteItem, 1 WCU."""
        cls.delete_one(table.device_key(device_hash))
