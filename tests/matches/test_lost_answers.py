"""Writes whose answer never came, came late, or was a 500 that had been done all the same."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gameserver.auth import Identity
from gameserver.errors import NotAlive, TryAgain
from matches.models import FINISHED, STARTED
from matches.services import find, leaving, lobby, play
from matches.services.check import check_table
from matches.services.lobby import GameOptions
from players.services import accounts, sessions
from settings_singleton.services import change, read_now
from tests.builders import (
    MAP,
    NOW,
    Api,
    APlayer,
    a_game,
    a_player,
    ok,
    players,
    refusal,
    stored,
)
from tests.faults.kinds import FirstOfEach, conflict, dropped, error_after, error_before, throttled
from tests.faults.layer import Clock, Fault, Faults

WRITES = ("TransactWriteItems", "UpdateItem", "PutItem", "DeleteItem")
LOST = pytest.mark.parametrize("fault", [dropped, error_after])


def spoil_writes(faults: Faults, fault: Fault, *, times: int | None = None) -> None:
    for operation in WRITES:
        faults.order(fault, operation, times=times)


def assert_sound() -> None:
    assert check_table(pause=lambda seconds: None).broken == []


@pytest.mark.parametrize("fault", [dropped, error_after, error_before, conflict, throttled])
def test_a_whole_game_comes_out_right_although_every_write_fails_once(
    faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-07, T-10, T-13, P-02
    host, ada, bob, cyd, dan = players("host", "ada", "bob", "cyd", "dan")
    first_attempts = FirstOfEach(fault)
    spoilt = WRITES if fault is not conflict else WRITES[:1]
    for operation in spoilt:
        faults.order(first_attempts, operation, times=None)
    options = GameOptions(MAP, max_players=5)
    game_id = lobby.create_game(host.identity, options, now=NOW, idempotency_key="k").game_id
    for guest in (ada, bob, cyd, dan):
        lobby.join_game(guest.identity, game_id, now=NOW)
    assert leaving.leave_game("host", game_id, now=NOW).host == "ada"
    assert leaving.kick_player("ada", game_id, "bob", now=NOW).player_count == 3
    assert lobby.start_game("ada", game_id, now=NOW).status == STARTED
    play.eliminate_player(ada.identity, game_id, "cyd", "ada", now=NOW)
    play.eliminate_player(dan.identity, game_id, "ada", "dan", now=NOW)
    game = stored(game_id)
    assert (game.status, game.winner, game.alive_count) == (FINISHED, "dan", 1)
    # created, four joins, leave, kick, start, two eliminations: each counted once.
    assert game.version == 10
    assert [player.user.games_played for player in (host, ada, bob, cyd, dan)] == [0, 1, 0, 1, 1]
    assert [player.user.kills for player in (ada, cyd, dan)] == [1, 0, 1]
    assert [player.user.wins for player in (ada, cyd, dan)] == [0, 0, 1]
    assert dan.user.coins > 0
    assert_sound()


@LOST
def test_a_rename_whose_answer_was_lost_is_told_as_done(
    faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-06
    ada = a_player("ada")
    spoil_writes(faults, fault, times=1)
    assert accounts.rename("ada", "Ada Lovelace").display_name == "Ada Lovelace"
    assert ada.user.display_name == "Ada Lovelace"


@LOST
def test_a_refresh_whose_answer_was_lost_is_no_theft(
    faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-06: the repeat finds its own new token in the session, which must not end it.
    ada = a_player("ada")
    spoil_writes(faults, fault, times=1)
    fresh = sessions.refresh(ada.tokens.refresh_token, now=timezone.now())
    faults.stop()
    assert sessions.refresh(fresh.refresh_token, now=timezone.now())


@LOST
def test_a_sign_up_whose_answer_was_lost_is_not_told_as_taken(
    faults: Faults, clock: Clock, cheap_passwords: None, fault: Fault
) -> None:
    # T-06
    spoil_writes(faults, fault, times=1)
    user, _ = accounts.sign_up("ada", "long enough", now=timezone.now())
    assert user.username == "ada"


@LOST
def test_a_settings_change_whose_answer_was_lost_is_one_revision(
    stored_flags: None, faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-06
    before = read_now()
    assert before is not None
    spoil_writes(faults, fault, times=1)
    done = change({"chat_enabled": False}, who="operator", why="test", now=NOW)
    after = read_now()
    assert after is not None
    assert done.revision == after.revision == before.revision + 1
    assert after.chat_enabled is False


@LOST
def test_a_start_whose_answer_was_lost_is_one_start(
    faults: Faults, clock: Clock, fault: Fault
) -> None:
    # L-05: its repeat fails its condition, and finds the game started by this very host.
    host, guest = players("host", "guest")
    game = a_game(host, guest)
    faults.order(fault, "UpdateItem")
    started_at = NOW + timedelta(minutes=1)
    first = lobby.start_game("host", game.game_id, now=started_at)
    again = lobby.start_game("host", game.game_id, now=timezone.now())
    assert (first.status, first.started_at, first.version) == (STARTED, started_at, 3)
    assert (again.started_at, again.version) == (started_at, 3)


@LOST
async def test_a_create_that_timed_out_and_is_repeated_made_one_game(
    api: Api, faults: Faults, clock: Clock, fault: Fault
) -> None:
    # L-09, T-08: every answer is lost, so the client is told to try again, with its key.
    ada = a_player("ada")
    faults.order(fault, "TransactWriteItems", times=None)

    async def create() -> Any:
        return await api.send(
            "POST", "/games", ada, json={"map": MAP}, headers={"Idempotency-Key": "mine"}
        )

    refusal(await create(), 503, "try_again")
    faults.stop()
    first, second = ok(await create(), 201), ok(await create(), 201)
    assert first["game_id"] == second["game_id"] == ada.user.current_game
    assert [game.game_id for game in find.open_games(None, limit=10).games] == [first["game_id"]]
    assert_sound()


@LOST
async def test_a_join_that_timed_out_and_is_repeated_took_one_seat(
    api: Api, faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-08, T-10
    host, guest = players("host", "guest")
    game = a_game(host)
    faults.order(fault, "TransactWriteItems", times=None)
    refusal(await api.post(f"/games/{game.game_id}/join", guest), 503, "try_again")
    faults.stop()
    for _ in range(2):
        joined = ok(await api.post(f"/games/{game.game_id}/join", guest))
        assert joined["player_count"] == 2
    assert_sound()


@LOST
def test_a_last_elimination_that_timed_out_and_is_repeated_pays_once(
    faults: Faults, clock: Clock, fault: Fault
) -> None:
    # T-08, P-02
    host, guest = players("host", "guest")
    game = a_game(host, guest, status=STARTED)

    def report(by: Identity) -> None:
        play.eliminate_player(by, game.game_id, "guest", "host", now=NOW)

    faults.order(fault, "TransactWriteItems", times=None)
    with pytest.raises(TryAgain):
        report(host.identity)
    faults.stop()
    coins = host.user.coins
    assert coins > 0
    with pytest.raises(Exception, match="finished, not running"):
        report(host.identity)
    assert (host.user.coins, host.user.wins, host.user.kills) == (coins, 1, 1)
    assert_sound()


def test_a_reported_elimination_that_is_repeated_counts_once(faults: Faults, clock: Clock) -> None:
    # T-08
    host, ada, bob = players("host", "ada", "bob")
    game = a_game(host, ada, bob, status=STARTED)
    play.eliminate_player(host.identity, game.game_id, "ada", "host", now=NOW)
    with pytest.raises(NotAlive):
        play.eliminate_player(host.identity, game.game_id, "ada", "host", now=NOW)
    assert stored(game).alive_count == 2


def test_a_game_of_fifty_ends_in_small_steps_that_can_be_resumed(
    faults: Faults, clock: Clock
) -> None:
    # T-14: the process dies after half of it, in the middle of a report.
    everyone = players(*(f"player{number:02d}" for number in range(50)))
    winner, others = everyone[0], everyone[1:]
    game = a_game(winner, *others, max_players=50, status=STARTED)
    faults.sent.clear()

    def eliminate(victims: list[APlayer]) -> None:
        for victim in victims:
            play.eliminate_player(
                winner.identity, game.game_id, victim.username, winner.username, now=NOW
            )

    eliminate(others[:25])
    faults.order(dropped, "TransactWriteItems", times=None)
    with pytest.raises(TryAgain):
        eliminate([others[25]])
    faults.stop()
    assert not next(
        seat for seat in lobby.load(game.game_id)[1] if seat.username == others[25].username
    ).is_alive
    eliminate(others[26:])
    sizes = [
        len(request.body["TransactItems"])
        for request in faults.sent
        if request.operation == "TransactWriteItems"
    ]
    assert max(sizes) == 5
    assert stored(game).status == FINISHED
    assert [player.user.games_played for player in everyone] == [1] * 50
    assert (winner.user.wins, winner.user.kills) == (1, 49)
    placements = sorted(int(seat.placement or 0) for seat in lobby.load(game.game_id)[1])
    assert placements == list(range(1, 51))
    assert_sound()
