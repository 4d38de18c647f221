"""Look for broken invariants, in one game or in the whole table, beside running servers."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, groupby

from gameserver import table
from gameserver.errors import GameNotFound
from gameserver.models import Found, Item
from matches import checks, rules
from matches.checks import Career, Standing
from matches.models import Game, UserGameMapping
from players.models import User

# Waits between the looks at what seems broken. A read of several items can fall into the middle of
# a transaction, and an index lags; what is still wrong in every look is broken.
PAUSES_SECONDS = (0.1, 0.3, 1.0)
PAGE = 100

Pause = Callable[[float], None]


@dataclass(frozen=True)
class Report:
    """How much was checked, and what is broken, one line each."""

    games: int
    players: int
    broken: list[str]


def check_table(*, pause: Pause = time.sleep) -> Report:
    """Check every game and every player: one Scan, then strong reads of what seems broken.

    Holds one partition and a few numbers per player in memory, whatever the table's size.
    """
    games: set[str] = set()
    suspects: set[str] = set()
    standings: dict[str, Standing] = {}
    careers: dict[str, Career] = defaultdict(Career)
    players: set[str] = set()
    broken: list[str] = []
    everything = chain.from_iterable(Item.scan_pages())
    for pk, group in groupby(everything, key=lambda found: found.key[0]):
        partition = list(group)
        broken += _unreadable(partition)
        items = [found.item for found in partition]
        for user in items:
            if isinstance(user, User):
                standings[user.username] = checks.standing_of(user)
        game, roster = _game_and_roster(items)
        for seat in roster:
            careers[seat.username].add(seat, game)
        if game or roster:
            game_id = table.id_in(pk)
            games.add(game_id)
            if checks.broken_game(game_id, game, roster):
                suspects.add(game_id)
                # The scan may have seen half of it, so what it says of its players is in doubt.
                players |= {seat.username for seat in roster}
    for username in standings.keys() | careers.keys():
        if checks.broken_user(username, standings.get(username), careers[username]):
            players.add(username)
    broken += _still_broken(_look_at_game, suspects, pause)
    broken += _still_broken(_look_at_player, players, pause)
    return Report(len(games), len(standings), list(dict.fromkeys(broken)))


def check_game(game_id: str, *, pause: Pause = time.sleep) -> Report:
    """Check one game and the stats and pointers of its players.

    Raises: GameNotFound if nothing lies under this id.
    """
    rules.check_game_id(game_id)
    partition = Game.with_everything(game_id)
    if not partition:
        raise GameNotFound
    _, roster = _game_and_roster(found.item for found in partition)
    players = {seat.username for seat in roster if not seat.is_deleted}
    broken = _still_broken(_look_at_game, {game_id}, pause)
    broken += _still_broken(_look_at_player, players, pause)
    return Report(1, len(players), broken)


def _still_broken(
    look: Callable[[str], list[str]], suspects: Iterable[str], pause: Pause
) -> list[str]:
    lines = {suspect: look(suspect) for suspect in sorted(suspects)}
    for seconds in PAUSES_SECONDS:
        lines = {suspect: broken for suspect, broken in lines.items() if broken}
        if not lines:
            return []
        pause(seconds)
        lines = {suspect: look(suspect) for suspect in lines}
    return [*chain.from_iterable(lines.values())]


def _look_at_game(game_id: str) -> list[str]:
    partition = Game.with_everything(game_id)
    # What cannot be read is missing from every count; the rest can be judged once it is mended.
    if unreadable := _unreadable(partition):
        return unreadable
    game, roster = _game_and_roster(found.item for found in partition)
    return checks.broken_game(game_id, game, roster)


def _look_at_player(username: str) -> list[str]:
    user = User.by_username(username, consistent=True)
    game_ids = [] if user is None or user.current_game is None else [str(user.current_game)]
    start_key = None
    while True:
        page = UserGameMapping.history(username, limit=PAGE, start_key=start_key)
        game_ids += [seat.game_id for seat in page.items]
        start_key = page.last_key
        if start_key is None:
            break
    # The index only tells where to look: it may lag.
    seats = UserGameMapping.of(username, game_ids)
    games = Game.by_ids((seat.game_id for seat in seats), consistent=True)
    career = Career()
    for seat in seats:
        career.add(seat, games.get(seat.game_id))
    return checks.broken_user(username, checks.standing_of(user) if user else None, career)


def _unreadable(partition: Iterable[Found]) -> list[str]:
    return [
        f"item {found.key[0]} / {found.key[1]}: cannot be read ({found.error})"
        for found in partition
        if found.item is None
    ]


def _game_and_roster(items: Iterable[Item | None]) -> tuple[Game | None, list[UserGameMapping]]:
    game: Game | None = None
    roster: list[UserGameMapping] = []
    for item in items:
        if isinstance(item, Game):
            game = item
        elif isinstance(item, UserGameMapping):
            roster.append(item)
    return game, roster
