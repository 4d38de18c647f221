"""What operators do with accounts and players cannot: list them all, reset stats."""

from dataclasses import dataclass

from django.conf import settings

from gameserver import cursors
from gameserver.errors import PlayerNotFound
from gameserver.models import ConditionFailed
from players.models import User

_LIST, _NEWEST = "operators:players", "operators:newest"


@dataclass(frozen=True)
class Players:
    """A page of players; `next_cursor` is None on the last one."""

    users: list[User]
    next_cursor: str | None


def list_players(*, limit: int, cursor: str | None = None) -> Players:
    """List all players, best first: one Query per shard, merged.

    Raises: InvalidCursor.
    """
    # Where each shard goes on: the score and name of the last player shown of it.
    position: dict[str, list[int | str]] = cursors.load(_LIST, cursor) if cursor else {}
    found: list[tuple[str, User]] = []
    has_more = False
    for shard in range(settings.LISTING_SHARDS):
        after = position.get(str(shard))
        page = User.on_board(shard, limit, after=(int(after[0]), str(after[1])) if after else None)
        found += [(str(shard), user) for user in page.items]
        has_more = has_more or page.last_key is not None
    # Stable: within a shard, players of equal score keep the table's order, so cursors hold.
    found.sort(key=lambda entry: -int(entry[1].score))
    for shard_name, user in found[:limit]:
        position[shard_name] = [int(user.score), user.username]
    has_more = has_more or len(found) > limit
    return Players(
        [user for _, user in found[:limit]], cursors.dump(_LIST, position) if has_more else None
    )


def list_newest(*, limit: int, cursor: str | None = None) -> Players:
    """List all players, newest first: one Query per shard, merged, and one BatchGetItem.

    Raises: InvalidCursor.
    """
    before = cursors.load(_NEWEST, cursor) if cursor else None
    names = [
        name
        for shard in range(settings.LISTING_SHARDS)
        for name in User.newest(shard, limit, before=before)
    ]
    users = sorted(User.by_usernames(names), key=lambda user: str(user.listed_at), reverse=True)
    shown = users[:limit]
    # A full page may be the last one; then the next is empty.
    is_last = len(names) < limit or not shown
    return Players(shown, None if is_last else cursors.dump(_NEWEST, str(shown[-1].listed_at)))


def reset_stats(username: str) -> User:
    """Set a player's stats and score to 0. His finished games keep their results.

    Raises: PlayerNotFound.
    """
    try:
        return User.reset_stats(username)
    except ConditionFailed as refused:
        raise PlayerNotFound from refused
