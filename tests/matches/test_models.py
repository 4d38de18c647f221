"""The losing side of every condition on games and seats: what is refused changes nothing."""

from collections.abc import Callable

import pytest

from gameserver import table
from gameserver.models import Item, Write
from matches.access_patterns.scenario import (
    NOW,
    a_lobby,
    a_new_game,
    a_player,
    a_running_game,
    a_seat,
)
from matches.models import CANCELLED, OPEN, STARTED, Game, UserGameMapping
from players.models import User
from tests.raw import delete_raw, refusals, set_raw

pytestmark = pytest.mark.usefixtures("table")


def join(game_id: str, username: str, *, join_code: str | None = None) -> None:
    user = User.seat(username, game_id)
    Game.take_seat(game_id, a_seat(game_id, username), user, join_code=join_code)


def join_last(game: Game, username: str) -> None:
    user = User.seat(username, game.game_id)
    Game.take_last_seat(game, a_seat(game.game_id, username), user, now=NOW)


def read(game_id: str) -> Game:
    game = Game.by_id(game_id, consistent=True)
    assert game is not None
    return game


def game_in(refused: dict[str, Item | None]) -> Game:
    game = refused["game"]
    assert isinstance(game, Game)
    return game


def settled(username: str, *, is_winner: bool = False) -> Write:
    return User.settle(username, kills=0, is_winner=is_winner, coins=0, clear_pointer=True)


def test_a_host_in_another_game_creates_none() -> None:
    a_lobby("mine", 1)
    user = User.seat("mine-1", "other")
    game = a_new_game("other", "mine-1")
    refused = refusals(lambda: Game.create(game, a_seat("other", "mine-1"), user))
    assert set(refused) == {"user"}
    assert isinstance(refused["user"], User)


def test_a_game_id_is_used_once() -> None:
    a_lobby("mine", 1)
    a_player("ada")
    game = a_new_game("mine", "ada")
    refused = refusals(lambda: Game.create(game, a_seat("mine", "ada"), User.seat("ada", "mine")))
    assert set(refused) == {"game"}


def test_a_seated_player_takes_no_second_seat() -> None:
    a_lobby("mine", 2)
    refused = refusals(lambda: join("mine", "mine-2"))
    assert set(refused) == {"seat", "user"}
    assert isinstance(refused["seat"], UserGameMapping)


def test_a_missing_game_is_no_game_and_gets_no_seat() -> None:
    # O-09, J-07: an update of what is not there would have created it.
    a_player("ada")
    assert refusals(lambda: join("nowhere", "ada")) == {"game": None}


def test_a_missing_account_takes_no_seat() -> None:
    a_lobby("mine", 1)
    assert refusals(lambda: join("mine", "nobody")) == {"user": None}


def test_the_last_seat_is_not_taken_as_any_seat() -> None:
    a_lobby("mine", 1, max_players=2)
    a_player("ada")
    game = game_in(refusals(lambda: join("mine", "ada")))
    assert game.player_count == game.last_seat


def test_a_full_game_seats_nobody() -> None:
    game = a_lobby("mine", 2, max_players=2)
    a_player("ada")
    assert game_in(refusals(lambda: join("mine", "ada"))).player_count == 2
    assert game_in(refusals(lambda: join_last(game, "ada"))).player_count == 2


def test_a_seat_that_is_not_the_last_is_not_taken_as_the_last() -> None:
    game = a_lobby("mine", 1, max_players=3)
    a_player("ada")
    assert set(refusals(lambda: join_last(game, "ada"))) == {"game"}


@pytest.mark.parametrize("status", [STARTED, CANCELLED])
def test_nobody_joins_a_game_that_is_no_lobby(status: str) -> None:
    lobby = a_lobby("mine", 2, max_players=3)
    if status == STARTED:
        Game.start(lobby, now=NOW)
    else:
        Game.end(lobby, CANCELLED, now=NOW)
    a_player("ada")
    assert game_in(refusals(lambda: join("mine", "ada"))).status == status
    assert game_in(refusals(lambda: join_last(lobby, "ada"))).status == status


def test_a_private_game_seats_who_knows_its_code() -> None:
    a_lobby("mine", 1)
    set_raw(table.game_key("mine"), join_code={"S": "c0de"}, is_private={"BOOL": True})
    a_player("ada")
    assert set(refusals(lambda: join("mine", "ada"))) == {"game"}
    assert set(refusals(lambda: join("mine", "ada", join_code="wrong"))) == {"game"}
    join("mine", "ada", join_code="c0de")


def test_the_code_of_another_game_does_not_close_a_public_one() -> None:
    a_lobby("mine", 1)
    a_player("ada")
    join("mine", "ada", join_code="whatever")
    assert read("mine").player_count == 2


def test_the_last_seat_moves_the_lobby_out_of_the_open_list_and_starts_it_if_asked() -> None:
    game = a_lobby("mine", 1, max_players=2)
    a_player("ada")
    game.auto_start = True
    join_last(game, "ada")
    after = read("mine")
    assert (after.status, after.alive_count, after.started_at) == (STARTED, 2, NOW)
    assert Game.listed("OPEN", game.map, 0, limit=10).items == []
    assert [one.game_id for one in Game.listed("STARTED", game.map, 0, limit=10).items] == ["mine"]


def stale_transitions(seen: Game) -> dict[str, Callable[[], object]]:
    seat = a_seat("mine", "mine-2")
    user = User.unseat("mine-2", "mine")
    return {
        "start": lambda: Game.start(seen, now=NOW),
        "end": lambda: Game.end(seen, CANCELLED, now=NOW),
        "leave": lambda: Game.free_seat(seen, seat, host=seen.host, user=user),
        "cancel": lambda: Game.cancel_empty(seen, seat, user=user, now=NOW),
    }


@pytest.mark.parametrize("transition", ["start", "end", "leave", "cancel"])
def test_a_transition_of_a_lobby_that_changed_is_refused(transition: str) -> None:
    # O-01: each carries the version that was seen.
    seen = a_lobby("mine", 2)
    a_player("ada")
    join("mine", "ada")
    refused = refusals(stale_transitions(seen)[transition])
    assert set(refused) <= {"game", "item"}
    [game] = refused.values()
    assert isinstance(game, Game)
    assert game.version == seen.version + 1


@pytest.mark.parametrize("transition", ["start", "end"])
def test_a_transition_of_a_game_that_is_gone_creates_none(transition: str) -> None:
    # O-09
    seen = a_lobby("mine", 2)
    delete_raw(table.game_key("mine"))
    assert refusals(stale_transitions(seen)[transition]) == {"item": None}


def test_a_seat_is_given_back_once() -> None:
    # J-05
    stale_transitions(a_lobby("mine", 2))["leave"]()
    refused = refusals(stale_transitions(read("mine"))["leave"])
    assert set(refused) == {"seat", "user"}
    assert read("mine").player_count == 1


def an_elimination(
    game: Game, seats: dict[str, UserGameMapping], victim: str, killer: str
) -> Callable[[], None]:
    placement = int(game.alive_count or 0)
    players = {
        "victim": seats[victim].settle(placement=placement, eliminated_by=killer),
        "killer": seats[killer].score_kill(),
    }
    return lambda: Game.eliminate(game, players, {"stats": settled(victim)})


def test_two_eliminations_that_saw_the_same_game_do_not_both_count() -> None:
    game, seats = a_running_game("g", 4)
    an_elimination(game, seats, "g-1", "g-2")()
    assert set(refusals(an_elimination(game, seats, "g-3", "g-4"))) == {"game"}


def test_who_is_out_is_neither_eliminated_again_nor_kills() -> None:
    game, seats = a_running_game("g", 4)
    an_elimination(game, seats, "g-1", "g-2")()
    now = read("g")
    assert set(refusals(an_elimination(now, seats, "g-1", "g-3"))) == {"victim"}
    assert set(refusals(an_elimination(now, seats, "g-3", "g-1"))) == {"killer"}


def test_a_result_is_settled_with_the_kills_that_were_seen() -> None:
    # He scored between the read and the write: his stats would miss that kill.
    game, seats = a_running_game("g", 4)
    an_elimination(game, seats, "g-1", "g-2")()
    assert set(refusals(an_elimination(read("g"), seats, "g-2", "g-3"))) == {"victim"}


def test_the_stats_of_a_deleted_account_are_not_created() -> None:
    # O-09
    game, seats = a_running_game("g", 3)
    delete_raw(table.user_key("g-1"))
    assert refusals(an_elimination(game, seats, "g-1", "g-2")) == {"stats": None}


def test_a_game_is_won_once() -> None:
    # P-01
    game, seats = a_running_game("g", 2)

    def finish(victim: str, winner: str) -> None:
        players = {
            "victim": seats[victim].settle(placement=2, eliminated_by=winner),
            "winner": seats[winner].settle(placement=1, eliminated_by=None, kills=1),
        }
        users = {"lost": settled(victim), "won": settled(winner, is_winner=True)}
        Game.finish(game, players, users, winner=winner, now=NOW)

    finish("g-1", "g-2")
    refused = refusals(lambda: finish("g-2", "g-1"))
    assert set(refused) == {"game", "victim", "winner"}
    assert game_in(refused).winner == "g-2"


def test_only_an_existing_seat_is_anonymised() -> None:
    a_lobby("mine", 1)
    assert refusals(lambda: UserGameMapping.anonymise("mine", "nobody")) == {"item": None}
    UserGameMapping.anonymise("mine", "mine-1")
    assert UserGameMapping.history("mine-1", limit=10).items == []


def test_a_private_lobby_is_not_in_the_open_list() -> None:
    game = Game.new(
        "secret", "juicy-jungle", "ada", now=NOW, max_players=4, min_players=2, join_code="c0de"
    )
    a_player("ada")
    Game.create(game, a_seat("secret", "ada"), User.seat("ada", "secret"))
    assert Game.listed(OPEN, "juicy-jungle", 0, limit=10).items == []
    [listed] = Game.listed("PRIVATE", "juicy-jungle", 0, limit=10).items
    assert listed.join_code is None
