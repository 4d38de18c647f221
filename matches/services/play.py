"""A running game: eliminations, and how they settle results."""

from datetime import datetime

from django.conf import settings
from prometheus_client import Counter

from gameserver import hints, retries
from gameserver.auth import Identity
from gameserver.errors import GameNotOpen, NotAlive
from gameserver.models import ConditionFailed, Write
from matches import rules
from matches.models import FINISHED, Game, UserGameMapping
from matches.services import lobby
from matches.services.idempotency import KeyedRequest
from players.models import User
from settings_singleton import counters
from settings_singleton.cache import flags

ELIMINATED = Counter("players_eliminated_total", "Players out of running games")


def eliminate_player(
    reporter: Identity,
    game_id: str,
    victim: str,
    killer: str | None,
    *,
    now: datetime,
    idempotency_key: str | None = None,
) -> tuple[Game, rules.Elimination]:
    """Record an elimination and, with the last one, the winner and his reward.

    `killer` is the reporter himself for players; a referee names one, or none. The same key and
    report again get the first answer.

    Raises: NotReferee, GameNotFound, GameNotOpen, NotInGame, NotAlive, ValidationFailed,
    IdempotencyKeyReused.
    """
    rules.check_can_report(settings.ELIMINATION_AUTHORITY, reporter.role, reporter.username, killer)
    report = {"game_id": game_id, "killer": killer, "victim": victim}
    request = KeyedRequest(reporter.username, idempotency_key, report)
    try:
        with retries.turn(game_id):
            return _take_out(game_id, victim, killer, request, now=now)
    except (NotAlive, GameNotOpen):
        if request.first(now=now) and (earlier := _earlier(game_id, victim)):
            return earlier
        raise


def take_out(game_id: str, victim: str, killer: str | None, *, now: datetime) -> Game:
    """Eliminate without asking who reports it: a player who leaves, or whom an operator removes.

    Raises: GameNotFound, GameNotOpen, NotInGame, NotAlive.
    """
    with retries.turn(game_id):
        return _take_out(game_id, victim, killer, None, now=now)[0]


def _take_out(
    game_id: str,
    victim: str,
    killer: str | None,
    request: KeyedRequest | None,
    *,
    now: datetime,
) -> tuple[Game, rules.Elimination]:
    claim = request.claim(game_id, now=now) if request else {}
    without: set[str] = set()
    for _ in retries.races():
        game, roster = lobby.load(game_id)
        result = rules.eliminate(game.state, [seat.state for seat in roster], victim, killer)
        try:
            _write(game, roster, victim, killer, result, claim=claim, without=without, now=now)
        except ConditionFailed as refused:
            if request:
                # Only another request under this key ends here: the same one finds its victim out.
                request.first_in(refused)
            # Somebody was faster: load and decide again. An account deleted meanwhile has no
            # stats to settle; its seat still gets its placement.
            without |= {name for name, item in refused.failed.items() if item is None}
            continue
        hints.game_changed(game_id, game.map)
        ELIMINATED.inc()
        counters.count("eliminations")
        if result.winner:
            counters.count("games_finished")
        game.alive_count = result.alive_count
        game.winner = result.winner
        if result.winner:
            game.status, game.ended_at = FINISHED, now
        game.version = int(game.version) + 1
        return game, result
    raise AssertionError("races() ends by raising")


def _earlier(game_id: str, victim: str) -> tuple[Game, rules.Elimination] | None:
    """Return what came of an elimination that was recorded before, by the victim's seat."""
    game, seat = Game.with_seat(game_id, victim)
    if game is None or seat is None or seat.placement is None or seat.is_alive:
        return None
    placement = int(seat.placement)
    # The runner-up's elimination was the one that ended the game.
    winner = game.winner if placement == 2 else None
    return game, rules.Elimination(placement, alive_count=placement - 1, winner=winner)


def _write(
    game: Game,
    roster: list[UserGameMapping],
    victim: str,
    killer: str | None,
    result: rules.Elimination,
    *,
    claim: dict[str, Write],
    without: set[str],
    now: datetime,
) -> None:
    """Write victim, killer, game and the victim's stats; the last one also the winner's."""
    seats = {seat.username: seat for seat in roster}
    out = seats[victim]
    players = {"victim": out.settle(placement=result.placement, eliminated_by=killer)}
    # In an imported game his pointer may be to another one.
    clear_pointer = not game.is_imported
    users: dict[str, Write] = {
        "victim_stats": User.settle(
            victim,
            kills=int(out.kills or 0),
            is_winner=False,
            coins=0,
            clear_pointer=clear_pointer,
        )
    }
    if result.winner is None:
        if killer is not None:
            players["killer"] = seats[killer].score_kill()
        Game.eliminate(game, players, _except(users, without) | claim)
        return
    last = seats[result.winner]
    kills = int(last.kills or 0) + (1 if killer == last.username else 0)
    players["winner"] = last.settle(placement=1, eliminated_by=None, kills=kills)
    users["winner_stats"] = User.settle(
        last.username,
        kills=kills,
        is_winner=True,
        coins=flags.win_reward_coins,
        clear_pointer=clear_pointer,
    )
    Game.finish(game, players, _except(users, without) | claim, winner=last.username, now=now)


def _except(users: dict[str, Write], without: set[str]) -> dict[str, Write]:
    return {name: write for name, write in users.items() if name not in without}
