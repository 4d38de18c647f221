"""How an import writes: users once, a game with its whole roster at once, results once."""

from collections.abc import Iterable, Sequence

from pynamodb.attributes import NumberAttribute

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item, Write, transact
from matches.models.game import Game
from matches.models.mapping import UserGameMapping
from players.models import User

# A transaction holds 100 items: a game and 50 seats, or the progress and these users, or the seats
# and the users of these results. Source: TransactWriteItems API reference.
USERS_AT_ONCE = 50
RESULTS_AT_ONCE = 50


class ImportProgress(Item, discriminator="IMPORT"):
    """IMPORT#{sha256 of the file} / #METADATA: through which line the file's users are created.

    It moves in the transaction that creates them, so that no later run creates one again whose
    account was deleted since.
    """

    users_through = NumberAttribute()

    @classmethod
    @access_pattern("read import progress")
    def through(cls, file_hash: str) -> int | None:
        """Read how far an import has come: one consistent GetItem, 1 RCU."""
        progress = cls.read(table.import_key(file_hash), consistent=True)
        return None if progress is None else int(progress.users_through)

    @classmethod
    @access_pattern("import users")
    def add_users(
        cls, file_hash: str, users: Iterable[User], *, seen: int | None, through: int
    ) -> None:
        """Create users and move on: one TransactWrite, 2 WCU a user and 2 more.

        1 on each of two indexes for each player.

        Raises: ConditionFailed ("progress" if another import moved, else the usernames that exist).
        """
        progress = cls(*table.import_key(file_hash), users_through=through)
        moved = cls.PK.does_not_exist() if seen is None else cls.users_through == seen
        writes = {"progress": progress.put(moved)}
        transact(**writes, **{_of(user.username): user.put() for user in users})

    @classmethod
    @access_pattern("import users, read")
    def users_there(cls, usernames: Iterable[str]) -> dict[str, User]:
        """Read which of these users exist: one consistent BatchGetItem per 100, 1 RCU each."""
        found = cls.read_many([table.user_key(name) for name in usernames], consistent=True)
        return {user.username: user for user in found if isinstance(user, User)}

    @classmethod
    @access_pattern("import game")
    def add_game(cls, game: Game, seats: Sequence[UserGameMapping]) -> None:
        """Create a game and its roster: ONE TransactWrite of up to 51 items, 2 WCU each.

        1 on GameListingIndex while it is current, 1 on MatchHistoryIndex for each seat.

        Raises: ConditionFailed ("game", or the username of a seat that exists).
        """
        transact(game=game.put(), **{_of(seat.username): seat.put() for seat in seats})

    @classmethod
    @access_pattern("import results")
    def settle(cls, game_id: str, results: dict[str, bool]) -> None:
        """Count memberships in their players' stats, once: one TransactWrite, 4 WCU a player.

        `results` maps usernames to whether they won; at most RESULTS_AT_ONCE.

        Raises: ConditionFailed with the usernames that are settled, or gone.
        """
        unsettled = (UserGameMapping.is_settled == False) & (  # noqa: E712
            UserGameMapping.is_deleted.does_not_exist()
        )
        writes: dict[str, Write] = {}
        for username, is_winner in results.items():
            seat = UserGameMapping.at(table.mapping_key(game_id, username))
            writes[f"seat:{username}"] = seat.change(
                [UserGameMapping.is_settled.set(True)], unsettled
            )
            writes[_of(username)] = User.settle(
                username, kills=0, is_winner=is_winner, coins=0, clear_pointer=False
            )
        transact(**writes)

    @staticmethod
    def refused(names: Iterable[str]) -> set[str]:
        """Return the usernames among the names of refused writes."""
        return {name.partition(":")[2] for name in names if ":" in name}


def _of(username: str) -> str:
    # No username has a colon, so no write's own name is one.
    return f"user:{username}"
