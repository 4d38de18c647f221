"""What must hold in the table, as pure functions: items in, broken invariants out, one line each.

Two kinds of items follow rules of their own:

- A seat of a deleted account (`is_deleted`) keeps its place in its game's counts and placements. It
  is in nobody's history, stats or pointer. An account whose deletion was interrupted is reported
  until it is deleted again.
- An imported game (`is_imported`) may seat people who sit in other games, so no pointer has to lead
  to it. One that had ended before the import is a record: it has no `alive_count`, its placements
  may be incomplete, and its results may still be on their way into the stats.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gameserver import table
from matches.models import CANCELLED, FINISHED, OPEN, STARTED, Game, UserGameMapping
from players.models import SCORE_PER_KILL, SCORE_PER_WIN, User


class Standing(NamedTuple):
    """What a user's own item says of his games."""

    games_played: int
    wins: int
    kills: int
    deaths: int
    coins: int
    score: int
    current_game: str | None


@dataclass(slots=True)
class Career:
    """What a user's memberships say of his games; `active` are the ids of those he is in now."""

    memberships: int = 0
    games_played: int = 0
    wins: int = 0
    kills: int = 0
    deaths: int = 0
    active: list[str] = field(default_factory=list)

    def add(self, seat: UserGameMapping, game: Game | None) -> None:
        """Count one membership; a deleted account's belongs to nobody."""
        if seat.is_deleted:
            return
        self.memberships += 1
        if seat.is_settled:
            is_winner = seat.placement == 1
            self.games_played += 1
            self.wins += is_winner
            self.deaths += not is_winner
            self.kills += int(seat.kills or 0)
        if game and seat.is_alive and game.status in {OPEN, STARTED} and not game.is_imported:
            self.active.append(game.game_id)


def standing_of(user: User) -> Standing:
    """Return what a user's item says of his games, with what operators took off his stats."""
    reset_wins, reset_kills = int(user.reset_wins or 0), int(user.reset_kills or 0)
    return Standing(
        games_played=int(user.games_played) + int(user.reset_games_played or 0),
        wins=int(user.wins) + reset_wins,
        kills=int(user.kills) + reset_kills,
        deaths=int(user.deaths) + int(user.reset_deaths or 0),
        coins=int(user.coins),
        score=int(user.score) + SCORE_PER_WIN * reset_wins + SCORE_PER_KILL * reset_kills,
        current_game=user.current_game,
    )


def broken_user(username: str, standing: Standing | None, career: Career) -> list[str]:
    """Compare a user's stats and pointer with his memberships; `standing` is None without a user.

    Stats = settled memberships, score = 10 a win and 1 a kill, coins >= 0, and at most one current
    game, to which he points.
    """
    if standing is None:
        if career.memberships == 0:
            return []
        return [f"player {username}: {career.memberships} memberships, but no such user"]
    lines = []
    for name in ("games_played", "wins", "kills", "deaths"):
        stored, counted = getattr(standing, name), getattr(career, name)
        if stored != counted:
            lines.append(f"{name} is {stored}, but the settled memberships say {counted}")
    score = SCORE_PER_WIN * career.wins + SCORE_PER_KILL * career.kills
    if standing.score != score:
        lines.append(
            f"score is {standing.score}, but {career.wins} wins and {career.kills} kills"
            f" make {score}"
        )
    if standing.coins < 0:
        lines.append(f"coins is {standing.coins}, below 0")
    if len(career.active) > 1:
        lines.append(f"sits in {len(career.active)} games at once: {_names(career.active)}")
    elif career.active and standing.current_game != career.active[0]:
        lines.append(
            f"sits in game {career.active[0]}, but current_game is {standing.current_game}"
        )
    return [f"player {username}: {line}" for line in lines]


def broken_game(game_id: str, game: Game | None, roster: Sequence[UserGameMapping]) -> list[str]:
    """Compare a game with its roster; `game` is None if only memberships lie there."""
    if game is None:
        if not roster:
            return []
        lines = [f"{len(roster)} memberships ({_names(s.username for s in roster)}), but no game"]
    elif game.status not in {OPEN, STARTED, FINISHED, CANCELLED}:
        lines = [f"status is {game.status!r}"]
    else:
        lines = [*_counts(game, roster), *_listing(game), *_seats(game_id, game, roster)]
        if game.status in {OPEN, CANCELLED}:
            lines += _lobby(game, roster)
        elif _is_record(game):
            lines += _record(roster)
        else:
            lines += _results(game, roster)
        lines += _winner(game, roster)
    return [f"game {game_id}: {line}" for line in lines]


def _is_record(game: Game) -> bool:
    return bool(game.is_imported) and game.status == FINISHED and game.alive_count is None


def _counts(game: Game, roster: Sequence[UserGameMapping]) -> list[str]:
    lines = []
    count, most = int(game.player_count), int(game.max_players)
    if count != len(roster):
        lines.append(f"player_count is {count}, but {len(roster)} are seated")
    if not 0 <= count <= most:
        lines.append(f"player_count is {count}, outside 0..{most}")
    if game.last_seat != most - 1:
        lines.append(f"last_seat is {int(game.last_seat)}, but max_players is {most}")
    alive = sum(seat.is_alive for seat in roster)
    if game.status in {OPEN, CANCELLED}:
        if game.alive_count is not None:
            lines.append(f"alive_count is {int(game.alive_count)}, but it never started")
    elif not _is_record(game) and game.alive_count != alive:
        lines.append(f"alive_count is {_shown(game.alive_count)}, but {alive} are alive")
    return lines


def _listing(game: Game) -> list[str]:
    listing = listed_at = None
    if game.status in {OPEN, STARTED}:
        listing = game.listing_for(game.status, int(game.player_count))
        listed_at = table.listed_at(game.created_at, game.game_id)
    wanted = {"listing": listing, "listed_at": listed_at}
    return [
        f"{name} is {_shown(getattr(game, name))}, should be {_shown(value)} while {game.status}"
        for name, value in wanted.items()
        if getattr(game, name) != value
    ]


def _seats(game_id: str, game: Game, roster: Sequence[UserGameMapping]) -> list[str]:
    """Compare each seat with its key, its history entry, and the kills that others report."""
    lines = []
    if game.game_id != game_id:
        lines.append(f"its item says it is game {game.game_id}")
    seated = {seat.username for seat in roster}
    named = Counter(seat.eliminated_by for seat in roster if seat.eliminated_by is not None)
    lines += [f"{name} eliminated a player, but is not seated" for name in named.keys() - seated]
    for seat in roster:
        key = table.mapping_key(seat.game_id, seat.username)
        if seat.game_id != game_id or key != (seat.PK, seat.SK):
            lines.append(f"the seat {seat.SK} says it is {seat.username}'s in {seat.game_id}")
        history_of = None if seat.is_deleted else seat.username
        if seat.history_of != history_of:
            lines.append(
                f"{seat.username}'s history_of is {_shown(seat.history_of)},"
                f" should be {_shown(history_of)}"
            )
        if int(seat.kills or 0) != named[seat.username]:
            lines.append(
                f"{seat.username}'s kills is {_shown(seat.kills)},"
                f" but {named[seat.username]} eliminations name him"
            )
    return lines


def _lobby(game: Game, roster: Sequence[UserGameMapping]) -> list[str]:
    lines = []
    if game.status == OPEN and game.host not in {seat.username for seat in roster}:
        lines.append(f"host {game.host} is not seated")
    lines += [
        f"{seat.username} has a result, but it never started"
        for seat in roster
        if not seat.is_alive or seat.is_settled or seat.placement is not None
    ]
    return lines


def _record(roster: Sequence[UserGameMapping]) -> list[str]:
    known = sorted(int(seat.placement) for seat in roster if seat.placement is not None)
    if len(set(known)) != len(known) or not set(known) <= set(range(1, len(roster) + 1)):
        return [f"placements are {known}, should differ and lie in 1..{len(roster)}"]
    return []


def _results(game: Game, roster: Sequence[UserGameMapping]) -> list[str]:
    """Compare the results of a game that was played here with who is alive."""
    lines = []
    alive = [seat for seat in roster if seat.is_alive]
    if game.status == STARTED and len(alive) < 2 and not game.is_imported:
        lines.append(f"{len(alive)} alive, but it has not ended")
    if game.winner is not None and [seat.username for seat in alive] != [game.winner]:
        lines.append(f"{_names(s.username for s in alive)} alive, but {game.winner} has won")
    placements = [seat.placement for seat in roster if not seat.is_alive]
    known = sorted(int(placement) for placement in placements if placement is not None)
    if len(known) < len(placements) or known != [*range(len(alive) + 1, len(roster) + 1)]:
        lines.append(
            f"placements of the {len(placements)} eliminated are {known},"
            f" should be each of {len(alive) + 1}..{len(roster)}"
        )
    for seat in roster:
        has_result = not seat.is_alive or seat.username == game.winner
        if has_result and not seat.is_settled:
            lines.append(f"{seat.username} has a result that is not settled")
        if not has_result and seat.is_settled:
            lines.append(f"{seat.username} is settled, but still in")
        if not has_result and seat.placement is not None:
            lines.append(f"{seat.username} has placement {int(seat.placement)}, but is still in")
    return lines


def _winner(game: Game, roster: Sequence[UserGameMapping]) -> list[str]:
    if game.status != FINISHED:
        return [f"winner is {game.winner} while {game.status}"] if game.winner is not None else []
    first = [seat.username for seat in roster if seat.placement == 1]
    if first == ([] if game.winner is None else [game.winner]):
        return []
    return [f"winner is {_shown(game.winner)}, but placement 1 has {_names(first)}"]


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nobody"


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    return str(int(value)) if isinstance(value, float) else str(value)
