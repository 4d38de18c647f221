"""`check_table` on healthy tables, beside running servers, and as a command."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from gameserver import table as keys
from gameserver.errors import GameNotFound
from gameserver.models import Found, Item
from matches.models import CANCELLED, FINISHED, STARTED, Game
from matches.services import check, leaving, play
from matches.services.departure import delete_account
from players.models import User
from tests.builders import NOW, a_game, a_player, players
from tests.matches.tampering import (
    a_finished_game,
    a_running_game,
    broken_in_table,
    change,
    game_item,
    no_pause,
    put_raw,
    user,
)
from tests.servers import ROOT


def test_an_empty_table_is_healthy(table: None) -> None:
    assert check.check_table() == check.Report(0, 0, [])


def test_games_in_every_state_are_healthy(table: None) -> None:
    a_finished_game()
    a_running_game("dora", "emil", "finn")
    a_game(*players("gina", "hugo"))
    a_game(*players("ida", "jon"), status=CANCELLED)
    a_game(*players("kim", "leo"), max_players=2)
    a_game(a_player("mia"), is_private=True)
    empty = a_game(a_player("nora"))
    leaving.leave_game("nora", empty.game_id, now=NOW)
    timed_out, _ = a_running_game("olga", "paul", "quin")
    Game.end(game_item(timed_out), FINISHED, now=NOW)

    report = check.check_table(pause=no_pause)

    assert report.broken == []
    assert (report.games, report.players) == (8, 17)


def test_deleted_accounts_leave_healthy_games(table: None) -> None:
    a_finished_game()
    a_running_game("dora", "emil", "finn", "gina")
    for username in ("ada", "cleo", "emil", "finn"):
        delete_account(username, now=NOW)
    assert broken_in_table() == []


def test_an_account_that_points_to_an_ended_game_can_be_deleted(table: None) -> None:
    a_game(*players("ada", "ben"), status=CANCELLED)
    delete_account("ben", now=NOW)
    assert User.by_username("ben") is None
    assert broken_in_table() == []


def test_items_that_cannot_be_read_are_reported(table: None) -> None:
    game = a_game(*players("ada", "ben"), status=CANCELLED)
    put_raw(keys.mapping_key(game.game_id, "cleo"))
    put_raw(keys.user_key("dora"), kind="USER", username="dora")
    put_raw(keys.session_key("emil", "1"), kind="PET")
    assert sorted(broken_in_table()) == [
        f"item GAME#{game.game_id} / USER#cleo: cannot be read (no kind)",
        "item USER#dora / #METADATA#dora: cannot be read (no created_at, display_name)",
        "item USER#emil / SESSION#1: cannot be read (Unknown discriminator value: PET)",
    ]
    assert check.check_game(game.game_id, pause=no_pause).broken == [
        f"item GAME#{game.game_id} / USER#cleo: cannot be read (no kind)"
    ]


def test_one_game_can_be_checked_alone(table: None) -> None:
    broken, _ = a_running_game("ada", "ben", "cleo")
    change(game_item(broken), alive_count=3)
    change(user("ada"), coins=-5)
    other = a_game(*players("dora", "emil"))

    assert check.check_game(other.game_id) == check.Report(1, 2, [])
    assert check.check_game(broken.game_id, pause=no_pause) == check.Report(
        1,
        3,
        [
            f"game {broken.game_id}: alive_count is 3, but 2 are alive",
            "player ada: coins is -5, below 0",
        ],
    )


def test_what_heals_before_the_last_look_is_no_finding(table: None) -> None:
    game, _ = a_running_game("ada", "ben", "cleo")
    change(game_item(game), alive_count=3)
    change(user("ben"), deaths=7)
    looks: list[float] = []

    def heal_late(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == len(check.PAUSES_SECONDS):
            change(game_item(game), alive_count=2)
        if len(looks) == 2 * len(check.PAUSES_SECONDS):
            change(user("ben"), deaths=1)

    assert check.check_table(pause=heal_late).broken == []
    assert looks == [*check.PAUSES_SECONDS, *check.PAUSES_SECONDS]


def test_a_partition_that_comes_in_two_pieces_is_no_finding(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_running_game("ada", "ben", "cleo")
    whole = [found for page in Item.scan_pages() for found in page]

    def in_pieces() -> Iterator[list[Found]]:
        # Every second item first: a game and half of its roster, other things, the other half.
        yield whole[::2]
        yield whole[1::2]

    monkeypatch.setattr(Item, "scan_pages", in_pieces)
    assert check.check_table(pause=no_pause).broken == []


def test_a_running_server_gives_no_false_alarms(table: None) -> None:
    seated = players("ada", "ben", "cleo", "dora")
    failures: list[BaseException] = []
    stop = threading.Event()

    def play_on() -> None:
        try:
            while not stop.is_set():
                game = a_game(*seated, status=STARTED)
                for victim in ("dora", "cleo", "ben"):
                    play.take_out(game.game_id, victim, "ada", now=NOW)
        except BaseException as error:  # noqa: BLE001 (told below)
            failures.append(error)

    player = threading.Thread(target=play_on)
    player.start()
    try:
        reports = [check.check_table() for _ in range(5)]
    finally:
        stop.set()
        player.join()
    assert failures == []
    assert [report.broken for report in reports] == [[]] * 5
    assert check.check_table().games >= 1


def run_command(*args: str) -> str:
    out = StringIO()
    call_command("check_table", *args, stdout=out)
    return out.getvalue()


def test_the_command_tells_what_it_checked(table: None) -> None:
    game = a_finished_game()
    assert run_command() == "1 games, 3 players: nothing broken.\n"
    assert run_command(game.game_id) == "1 games, 3 players: nothing broken.\n"


def test_the_command_fails_with_a_count(table: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PAUSES_SECONDS", ())
    a_finished_game()
    change(user("ada"), coins=-1, score=0)
    out = StringIO()
    with pytest.raises(CommandError) as failure:
        call_command("check_table", stdout=out)
    assert str(failure.value) == "1 games, 3 players: 2 broken."
    assert failure.value.returncode == 1
    assert out.getvalue().splitlines() == [
        "player ada: score is 0, but 1 wins and 2 kills make 12",
        "player ada: coins is -1, below 0",
    ]


@pytest.mark.parametrize("game_id", ["none-such", "a#b", ""])
def test_an_unknown_game_cannot_be_checked(game_id: str, table: None) -> None:
    with pytest.raises(GameNotFound):
        check.check_game(game_id)
    with pytest.raises(CommandError, match="There is no such game"):
        run_command(game_id)


def test_a_command_knows_the_kinds_that_a_server_writes() -> None:
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for app in ("gameserver", "players", "matches", "settings_singleton")
        for path in [ROOT / app / "models.py", *(ROOT / app / "models").glob("[!_]*.py")]
        if path.exists()
    }
    code = f"import django, sys; django.setup(); print(*({modules} - sys.modules.keys()))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []
