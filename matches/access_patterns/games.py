"""Scenarios of games, their transitions and lists, and of the small items around them."""

from datetime import timedelta

from gameserver.models import transact
from matches.access_patterns.scenario import (
    NOW,
    Call,
    Scenario,
    a_lobby,
    a_new_game,
    a_player,
    a_running_game,
    a_seat,
)
from matches.models import (
    CANCELLED,
    OPEN,
    Game,
    Lease,
    QuickJoinPointer,
    RequestRecord,
    UserGameMapping,
)
from players.models import User

LATER = NOW + timedelta(days=1)


def create_game() -> Call:
    a_player("founder")
    game = a_new_game("created", "founder")
    return lambda: Game.create(game, a_seat("created", "founder"), User.seat("founder", "created"))


def read_game() -> Call:
    a_lobby("read", 1)
    return lambda: Game.by_id("read")


def read_game_and_players() -> Call:
    a_lobby("crowd", 50)
    return lambda: Game.with_roster("crowd")


def read_game_and_seat() -> Call:
    a_lobby("pointed", 1)
    return lambda: Game.with_seat("pointed", "pointed-1")


def check_game() -> Call:
    a_lobby("checked", 50)
    return lambda: Game.with_everything("checked")


def check_seats() -> Call:
    ids = [f"seated{number}" for number in range(20)]
    for game_id in ids:
        a_lobby(game_id, 1)
    return lambda: UserGameMapping.of("seated0-1", ids)


def read_games() -> Call:
    ids = [f"several{number}" for number in range(20)]
    for game_id in ids:
        a_lobby(game_id, 1)
    return lambda: Game.by_ids(ids)


def list_games() -> Call:
    for number in range(20):
        a_lobby(f"listed{number}", 1, game_map="open-ocean")
    return lambda: Game.listed(OPEN, "open-ocean", 0, limit=20)


def join_game() -> Call:
    a_lobby("joined", 1)
    a_player("joiner")
    seat, user = a_seat("joined", "joiner"), User.seat("joiner", "joined")
    return lambda: Game.take_seat("joined", seat, user, join_code=None)


def join_game_last_seat() -> Call:
    game = a_lobby("filled", 1, max_players=2)
    a_player("last")
    seat, user = a_seat("filled", "last"), User.seat("last", "filled")
    return lambda: Game.take_last_seat(game, seat, user, now=NOW)


def leave_lobby() -> Call:
    game = a_lobby("left", 3)
    seat, user = a_seat("left", "left-3"), User.unseat("left-3", "left")
    return lambda: Game.free_seat(game, seat, host=game.host, user=user)


def leave_lobby_last_player() -> Call:
    game = a_lobby("emptied", 1)
    seat, user = a_seat("emptied", "emptied-1"), User.unseat("emptied-1", "emptied")
    return lambda: Game.cancel_empty(game, seat, user=user, now=NOW)


def start_game() -> Call:
    game = a_lobby("started", 2)
    return lambda: Game.start(game, now=NOW)


def end_game() -> Call:
    game = a_lobby("ended", 2)
    return lambda: Game.end(game, CANCELLED, now=NOW)


def eliminate() -> Call:
    game, seats = a_running_game("shrinking", 3)
    victim, killer = seats["shrinking-2"], seats["shrinking-1"]
    players = {
        "victim": victim.settle(placement=3, eliminated_by=killer.username),
        "killer": killer.score_kill(),
    }
    stats = User.settle(victim.username, kills=0, is_winner=False, coins=0, clear_pointer=True)
    return lambda: Game.eliminate(game, players, {"victim_stats": stats})


def eliminate_last() -> Call:
    game, seats = a_running_game("final", 2)
    victim, winner = seats["final-2"], seats["final-1"]
    players = {
        "victim": victim.settle(placement=2, eliminated_by=winner.username),
        "winner": winner.settle(placement=1, eliminated_by=None, kills=1),
    }
    users = {
        "victim_stats": User.settle(
            victim.username, kills=0, is_winner=False, coins=0, clear_pointer=True
        ),
        "winner_stats": User.settle(
            winner.username, kills=1, is_winner=True, coins=100, clear_pointer=True
        ),
    }
    return lambda: Game.finish(game, players, users, winner=winner.username, now=NOW)


def mark_away() -> Call:
    a_lobby("dropped", 3)
    return lambda: Game.mark_away("dropped", {"dropped-2", "dropped-3"})


def mark_back() -> Call:
    a_lobby("returned", 3)
    Game.mark_away("returned", {"returned-2", "returned-3"})
    return lambda: Game.mark_back("returned", {"returned-2"})


def match_history() -> Call:
    a_player("veteran")
    pointer: str | None = None
    for number in range(20):
        # Each time his pointer to the one before is stale, so one account gets 20 seats.
        game_id = f"past{number}"
        a_lobby(game_id, 1)
        user = User.seat("veteran", game_id, instead_of=pointer)
        Game.take_seat(game_id, a_seat(game_id, "veteran"), user, join_code=None)
        pointer = game_id
    return lambda: UserGameMapping.history("veteran", limit=20)


def anonymise_seat() -> Call:
    a_lobby("erased", 1)
    return lambda: UserGameMapping.anonymise("erased", "erased-1")


def read_quick_join_pointer() -> Call:
    a_player("swapper")
    game = a_new_game("swapped", "swapper")
    seat, user = a_seat("swapped", "swapper"), User.seat("swapper", "swapped")
    Game.create(game, seat, user, pointer=QuickJoinPointer.swap(game.map, None, "swapped"))
    return lambda: QuickJoinPointer.on_map(game.map)


def read_request_record() -> Call:
    record = RequestRecord.new("asker", "key", "h" * 64, "asked", expires_at=LATER)
    transact(request=record.claim(now=NOW))
    return lambda: RequestRecord.of("asker", "key", now=NOW)


def take_lease() -> Call:
    until = NOW + timedelta(minutes=1)
    return lambda: Lease.take("measured", "this-process", now=NOW, until=until)


SCENARIOS = (
    Scenario("create game", create_game),
    Scenario("list games", list_games, "20 games"),
    Scenario("read game", read_game),
    Scenario("read game and players", read_game_and_players, "50 players"),
    Scenario("read game and seat", read_game_and_seat),
    Scenario("check game", check_game, "50 players"),
    Scenario("check seats", check_seats, "20 games"),
    Scenario("read games", read_games, "20 games"),
    Scenario("join game", join_game),
    Scenario("join game, last seat", join_game_last_seat),
    Scenario("leave lobby", leave_lobby),
    Scenario("leave lobby, last player", leave_lobby_last_player),
    Scenario("start game", start_game),
    Scenario("end game", end_game),
    Scenario("mark away", mark_away, "2 players"),
    Scenario("mark back", mark_back),
    Scenario("eliminate", eliminate, "a killer"),
    Scenario("eliminate, last", eliminate_last, "a killer"),
    Scenario("match history", match_history, "20 games"),
    Scenario("anonymise seat", anonymise_seat),
    Scenario("read quick-join pointer", read_quick_join_pointer),
    Scenario("read request record", read_request_record),
    Scenario("take lease", take_lease),
)
