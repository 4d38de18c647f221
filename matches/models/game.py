"""The game item: its state, its listing, and every transition as one conditional write."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Self

from pynamodb.attributes import (
    BooleanAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
)
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action
from pynamodb.indexes import GlobalSecondaryIndex, IncludeProjection

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Found, Item, Page, Write, transact
from matches.models.mapping import UserGameMapping
from matches.rules import GameState, listing_state

OPEN, STARTED, FINISHED, CANCELLED = "OPEN", "STARTED", "FINISHED", "CANCELLED"


class GameListingIndex(GlobalSecondaryIndex["Game"]):
    """Current games by state and map; a game that ends leaves it. Carries all a list shows."""

    class Meta:
        index_name = "GameListingIndex"
        projection = IncludeProjection(
            [
                "kind",
                "game_id",
                "map",
                "status",
                "host",
                "player_count",
                "max_players",
                "min_players",
                "last_seat",
                "alive_count",
                "is_private",
                "is_imported",
                "auto_start",
                "version",
                "created_at",
                "started_at",
            ]
        )

    listing = UnicodeAttribute(hash_key=True)
    listed_at = UnicodeAttribute(range_key=True)


class Game(Item, discriminator="GAME"):
    """GAME#{game_id} / #METADATA#{game_id}: the state of one game.

    Every transition adds 1 to `version`. `last_seat` is `max_players - 1`: DynamoDB conditions
    cannot subtract. `alive_count` is null before the start. `last_joined_at` keeps a start from
    seeming older than a seat in it. `away` names players who dropped; those who hold no seat any
    more count for nothing. `listed_at` is "{created_at}#{game_id}", so every entry of the
    index differs.
    """

    game_id = UnicodeAttribute()
    map = UnicodeAttribute()
    status = UnicodeAttribute()
    host = UnicodeAttribute()
    player_count = NumberAttribute()
    max_players = NumberAttribute()
    min_players = NumberAttribute()
    last_seat = NumberAttribute()
    alive_count = NumberAttribute(null=True)
    is_private = BooleanAttribute(default=False)
    auto_start = BooleanAttribute(default=False)
    join_code = UnicodeAttribute(null=True)
    version = NumberAttribute()
    created_at = UTCDateTimeAttribute()
    last_joined_at = UTCDateTimeAttribute(null=True)
    started_at = UTCDateTimeAttribute(null=True)
    ended_at = UTCDateTimeAttribute(null=True)
    winner = UnicodeAttribute(null=True)
    is_imported = BooleanAttribute(null=True)
    away = UnicodeSetAttribute(null=True)
    listing = UnicodeAttribute(null=True)
    listed_at = UnicodeAttribute(null=True)

    by_listing = GameListingIndex()

    @property
    def state(self) -> GameState:
        """The plain state that the rules decide on."""
        return GameState(
            status=self.status,
            host=self.host,
            player_count=int(self.player_count),
            max_players=int(self.max_players),
            min_players=int(self.min_players),
            is_private=self.is_private,
            join_code=self.join_code,
        )

    @classmethod
    def new(
        cls,
        game_id: str,
        game_map: str,
        host: str,
        *,
        now: datetime,
        max_players: int,
        min_players: int,
        join_code: str | None = None,
        auto_start: bool = False,
    ) -> Self:
        """Return an unsaved lobby with its host seated."""
        game = cls(
            *table.game_key(game_id),
            game_id=game_id,
            map=game_map,
            status=OPEN,
            host=host,
            player_count=1,
            max_players=max_players,
            min_players=min_players,
            last_seat=max_players - 1,
            is_private=join_code is not None,
            join_code=join_code,
            auto_start=auto_start,
            version=1,
            created_at=now,
            listed_at=table.listed_at(now, game_id),
        )
        game.listing = game.listing_for(OPEN, 1)
        return game

    def listing_for(self, status: str, player_count: int) -> str:
        """Return the index key of this game while it is OPEN or STARTED."""
        state = listing_state(
            status, player_count, int(self.max_players), is_private=self.is_private
        )
        return table.listing_key(state, self.map, table.shard_of(self.game_id))

    @classmethod
    @access_pattern("read game")
    def by_id(cls, game_id: str, *, consistent: bool = False) -> Self | None:
        """Read one game: one GetItem, 0.5 RCU (1 if consistent)."""
        return cls.read(table.game_key(game_id), consistent=consistent)

    @classmethod
    @access_pattern("read game and players")
    def with_roster(
        cls, game_id: str, *, consistent: bool = False
    ) -> tuple[Self | None, list[UserGameMapping]]:
        """Read a game and its roster, longest-seated first: ONE Query, 0.5 RCU per 4 KB."""
        first, last = table.GAME_AND_ROSTER
        items = Item.read_all(
            table.game_key(game_id)[0], cls.SK.between(first, last), consistent=consistent
        )
        game = next((item for item in items if isinstance(item, cls)), None)
        roster = [item for item in items if isinstance(item, UserGameMapping)]
        return game, sorted(roster, key=lambda player: (player.joined_at, player.username))

    @classmethod
    @access_pattern("check game")
    def with_everything(cls, game_id: str) -> list[Found]:
        """Read a game and its roster as they lie there: ONE consistent Query, 1 RCU per 4 KB."""
        first, last = table.GAME_AND_ROSTER
        return cls.scan_partition(table.game_key(game_id)[0], cls.SK.between(first, last))

    @classmethod
    @access_pattern("read game and seat")
    def with_seat(cls, game_id: str, username: str) -> tuple[Self | None, UserGameMapping | None]:
        """Read a game and one seat of it: one consistent BatchGetItem, 2 RCU."""
        keys = [table.game_key(game_id), table.mapping_key(game_id, username)]
        found = cls.read_many(keys, consistent=True)
        game = next((item for item in found if isinstance(item, cls)), None)
        seat = next((item for item in found if isinstance(item, UserGameMapping)), None)
        return game, seat

    @classmethod
    @access_pattern("read games")
    def by_ids(cls, game_ids: Iterable[str], *, consistent: bool = False) -> dict[str, Self]:
        """Read several games: one BatchGetItem per 100, 0.5 RCU each (1 if consistent)."""
        keys = [table.game_key(game_id) for game_id in dict.fromkeys(game_ids)]
        found = cls.read_many(keys, consistent=consistent) if keys else []
        return {game.game_id: game for game in found if isinstance(game, cls)}

    @classmethod
    @access_pattern("list games")
    def listed(
        cls,
        state: str,
        game_map: str,
        shard: int,
        *,
        limit: int,
        after: str | None = None,
        before: str | None = None,
    ) -> Page[Self]:
        """Read one listing, oldest first: one Query, about 0.5 RCU per 4 KB; may lag behind.

        `after` and `before` bound `listed_at`, without themselves.
        """
        condition: Condition | None = None
        if after is not None and before is not None:
            # Keys allow one range only; both ends of BETWEEN are included, so skip past `after`.
            condition = cls.listed_at.between(f"{after}\0", before)
        elif after is not None:
            condition = cls.listed_at > after
        elif before is not None:
            condition = cls.listed_at < before
        listing = table.listing_key(state, game_map, shard)
        return cls.read_page(listing, condition, index="GameListingIndex", limit=limit)

    @classmethod
    @access_pattern("create game")
    def create(cls, game: Self, seat: UserGameMapping, user: Write, **more: Write) -> None:
        """Create a lobby and seat its host: ONE TransactWrite.

        6 WCU, 1 each on GameListingIndex and MatchHistoryIndex; 2 WCU more for each extra item
        (request record, quick-join pointer).

        Raises: ConditionFailed ("user", and the names of the extra writes).
        """
        transact(game=game.put(), seat=seat.put(), user=user, **more)

    @classmethod
    @access_pattern("join game")
    def take_seat(
        cls,
        game_id: str,
        seat: UserGameMapping,
        user: Write,
        *,
        join_code: str | None,
    ) -> None:
        """Take any seat but the last: ONE TransactWrite with no read before it.

        6 WCU, 1 each on GameListingIndex and MatchHistoryIndex.

        Raises: ConditionFailed ("seat", "game", "user").
        """
        game = cls.at(table.game_key(game_id)).change(
            [
                cls.player_count.add(1),
                cls.version.add(1),
                cls.last_joined_at.set(seat.joined_at),
                cls.away.delete({seat.username}),
            ],
            (cls.status == OPEN) & (cls.player_count < cls.last_seat) & _code_fits(join_code),
        )
        transact(seat=seat.put(), game=game, user=user)

    @classmethod
    @access_pattern("join game, last seat")
    def take_last_seat(
        cls, game: Self, seat: UserGameMapping, user: Write, *, now: datetime
    ) -> None:
        """Take the last seat, and leave the open list (or start) in the same write.

        6 WCU, 2 on GameListingIndex (the entry moves) and 1 on MatchHistoryIndex.
        The caller has checked the join code against `game`.

        Raises: ConditionFailed ("seat", "game", "user").
        """
        status = STARTED if game.auto_start else OPEN
        actions: list[Action] = [
            cls.player_count.add(1),
            cls.version.add(1),
            cls.last_joined_at.set(seat.joined_at),
            cls.away.delete({seat.username}),
            cls.listing.set(game.listing_for(status, int(game.max_players))),
        ]
        if game.auto_start:
            actions += [
                cls.status.set(STARTED),
                cls.started_at.set(game.not_before_joins(now)),
                cls.alive_count.set(int(game.max_players)),
            ]
        condition = (cls.status == OPEN) & (cls.player_count == cls.last_seat)
        transact(
            seat=seat.put(),
            game=cls.at(table.game_key(game.game_id)).change(actions, condition),
            user=user,
        )

    @classmethod
    @access_pattern("leave lobby")
    def free_seat(cls, seen: Self, seat: UserGameMapping, *, host: str, user: Write | None) -> None:
        """Give a seat back, and the host's role on: ONE TransactWrite, 6 WCU.

        1 on GameListingIndex (2 if the lobby was full), 1 on MatchHistoryIndex.

        Raises: ConditionFailed ("game" if it changed since `seen`, "seat", "user").
        """
        left = int(seen.player_count) - 1
        actions = [
            cls.player_count.set(left),
            cls.version.add(1),
            cls.host.set(host),
            cls.away.delete({seat.username}),
            cls.listing.set(seen.listing_for(OPEN, left)),
        ]
        writes = {"game": seen.if_unchanged(actions), "seat": seat.remove()}
        transact(**writes, **({"user": user} if user else {}))

    @classmethod
    @access_pattern("start game")
    def start(cls, seen: Self, *, now: datetime) -> Self:
        """Start: one UpdateItem, 1 WCU and 2 on GameListingIndex. Nobody joins afterwards.

        Raises: ConditionFailed with the game as it stands if it changed since `seen`.
        """
        actions: list[Action] = [
            cls.status.set(STARTED),
            cls.started_at.set(seen.not_before_joins(now)),
            cls.alive_count.set(int(seen.player_count)),
            cls.version.add(1),
            cls.listing.set(seen.listing_for(STARTED, int(seen.player_count))),
        ]
        return cls.update_one(seen.if_unchanged(actions))

    @classmethod
    @access_pattern("end game")
    def end(cls, seen: Self, status: str, *, now: datetime) -> Self:
        """End without a winner (cancelled, or timed out): one UpdateItem, 1 WCU and 1 on the index.

        Raises: ConditionFailed with the game as it stands if it changed since `seen`.
        """
        return cls.update_one(seen.if_unchanged(seen.ending(status, now=now)))

    @classmethod
    @access_pattern("leave lobby, last player")
    def cancel_empty(
        cls, seen: Self, seat: UserGameMapping, *, user: Write | None, now: datetime
    ) -> None:
        """The last player out cancels the lobby: ONE TransactWrite, 6 WCU and 1 on each index.

        Raises: ConditionFailed ("game" if it changed since `seen`, "seat", "user").
        """
        actions = [*seen.ending(CANCELLED, now=now), cls.player_count.set(0)]
        writes = {"game": seen.if_unchanged(actions), "seat": seat.remove()}
        transact(**writes, **({"user": user} if user else {}))

    @classmethod
    @access_pattern("eliminate")
    def eliminate(cls, seen: Self, players: dict[str, Write], others: dict[str, Write]) -> None:
        """Take one player out of a running game: ONE TransactWrite of 3 or 4 items, 6-8 WCU.

        `others` are the accounts' results, and a request record if there is a key (2 WCU more).

        Raises: ConditionFailed ("game" if it changed since `seen`, and the names given).
        """
        actions = [cls.alive_count.set(int(seen.alive_count or 0) - 1), cls.version.add(1)]
        transact(game=seen.if_unchanged(actions), **players, **others)

    @classmethod
    @access_pattern("eliminate, last")
    def finish(
        cls,
        seen: Self,
        players: dict[str, Write],
        others: dict[str, Write],
        *,
        winner: str,
        now: datetime,
    ) -> None:
        """The last elimination ends the game and settles its winner, too: 5 items, 10 WCU.

        `others` as in `eliminate`.

        Raises: ConditionFailed ("game" if it changed since `seen`, and the names given).
        """
        actions = [
            *seen.ending(FINISHED, now=now),
            cls.alive_count.set(1),
            cls.winner.set(winner),
        ]
        transact(game=seen.if_unchanged(actions), **players, **others)

    @classmethod
    @access_pattern("mark away")
    def mark_away(cls, game_id: str, usernames: set[str]) -> Self:
        """Note who dropped: one UpdateItem, 1 WCU (2 with many away), 1 on GameListingIndex.

        Raises: ConditionFailed if the game is over.
        """
        return cls._mark(game_id, cls.away.add(usernames))

    @classmethod
    @access_pattern("mark back")
    def mark_back(cls, game_id: str, usernames: set[str]) -> Self:
        """Note who is connected again: one UpdateItem, as above.

        Raises: ConditionFailed if the game is over.
        """
        return cls._mark(game_id, cls.away.delete(usernames))

    @classmethod
    def _mark(cls, game_id: str, mark: Action) -> Self:
        change = cls.at(table.game_key(game_id)).change(
            [mark, cls.version.add(1)], cls.status.is_in(OPEN, STARTED)
        )
        return cls.update_one(change)

    @classmethod
    @access_pattern("relist game")
    def relist(cls, seen: Self) -> Self:
        """Write a game's listing anew, as its state wants it: one UpdateItem, 1 WCU.

        1 or 2 more on GameListingIndex. The version stays: players see no difference.

        Raises: ConditionFailed with the game as it stands if it changed since `seen`.
        """
        actions: list[Action] = [cls.listing.remove(), cls.listed_at.remove()]
        if seen.status in {OPEN, STARTED}:
            listing = seen.listing_for(seen.status, int(seen.player_count))
            listed_at = table.listed_at(seen.created_at, seen.game_id)
            actions = [cls.listing.set(listing), cls.listed_at.set(listed_at)]
        return cls.update_one(seen.if_unchanged(actions))

    def not_before_joins(self, now: datetime) -> datetime:
        """Return when a start happens: requests reach the table in another order than they came."""
        return max(now, self.last_joined_at or now)

    def ending(self, status: str, *, now: datetime) -> list[Action]:
        """Return the changes that end a game; it leaves the listing index by losing its keys."""
        cls = type(self)
        return [
            cls.status.set(status),
            cls.ended_at.set(now),
            cls.version.add(1),
            cls.away.remove(),
            cls.listing.remove(),
            cls.listed_at.remove(),
        ]

    def if_unchanged(self, actions: Sequence[Action]) -> Write:
        """Return a change that only applies to the version that was seen."""
        return self.change(actions, type(self).version == int(self.version))


def _code_fits(join_code: str | None) -> Condition:
    """Hold for public games, and for private ones whose code this is."""
    public = Game.join_code.does_not_exist()
    return public if join_code is None else public | (Game.join_code == join_code)
