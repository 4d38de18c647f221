"""A dump in the table: what it holds, what the API answers, how its games go on."""

import re
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from gameserver import table as keys
from matches.management.commands.import_battle_royale import MAPPED
from matches.models import FINISHED, Game
from matches.services import leaving, lobby, play
from matches.services.departure import delete_account
from players.models import Credential
from settings_singleton.cache import flags
from tests.builders import NOW, Api, a_player, logged_in, ok
from tests.matches.dumps import (
    LATER,
    a_whole_dump,
    finished_game_line,
    game_line,
    seat_line,
    user_line,
    write_dump,
)
from tests.matches.imported import broken, everything, import_file, stats, user


def test_a_dump_is_imported_whole(table: None, tmp_path: Path) -> None:
    imported = import_file(a_whole_dump(tmp_path))

    assert imported.findings == []
    assert +imported.kept == {}
    assert imported.written == {
        "users": 4,
        "open games": 1,
        "started games": 1,
        "finished games": 1,
        "memberships": 10,
    }
    assert broken() == []
    assert [stats(name) for name in ("ada", "ben", "cleo", "dora")] == [
        (1, 0, 0, 1, 0, 0),
        (1, 1, 0, 0, 0, 10),
        (1, 0, 0, 1, 0, 0),
        (1, 0, 0, 1, 0, 0),
    ]
    assert user("ada").is_imported
    assert user("ada").current_game is None


def test_nothing_personal_enters_the_table(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    stored = str(everything())
    assert "Ada Smith" in stored
    for forbidden in ("example.org", "1970-01-01", "Street", "email", "birthdate", "address"):
        assert forbidden not in stored


def test_imported_users_have_no_credential(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    assert Credential.of("ada") is None


def test_a_name_that_another_account_has_is_not_given_away(table: None, tmp_path: Path) -> None:
    a_player("ben")
    before = everything()[keys.user_key("ben")]

    imported = import_file(a_whole_dump(tmp_path))

    assert everything()[keys.user_key("ben")] == before
    assert [str(finding) for finding in imported.findings] == [
        "line 2: left out: the username ben belongs to another account here",
        *(
            f"line {line}: left out: membership of ben, whose name another account has here"
            for line in (9, 11, 14)
        ),
    ]
    assert lobby.existing_game("o").player_count == 1
    assert lobby.existing_game("f").winner is None
    assert broken() == []
    assert import_file(tmp_path / "dump.jsonl").written == {}


def test_a_game_of_strangers_is_left_out(table: None, tmp_path: Path) -> None:
    a_player("ada")
    path = write_dump(tmp_path, user_line("ada"), game_line("g", 1), seat_line("g", "ada"))
    imported = import_file(path)
    assert [finding.text for finding in imported.findings] == [
        "the username ada belongs to another account here",
        "has no member with an account here",
        "membership of ada, whose name another account has here",
    ]
    assert imported.written == {}
    assert Game.by_id("g") is None


def test_a_full_lobby_is_listed_as_full(table: None, tmp_path: Path) -> None:
    names = [f"user-{number}" for number in range(50)]
    import_file(
        write_dump(
            tmp_path,
            *map(user_line, names),
            game_line("g", 50, creator="user-3"),
            *(seat_line("g", name) for name in names),
        )
    )
    game = lobby.existing_game("g")
    assert (game.status, game.player_count, game.listing) == (
        "OPEN",
        50,
        "FULL#green-grasslands#0",
    )
    assert broken() == []
    leaving.leave_game("user-3", "g", now=NOW)
    assert lobby.existing_game("g").listing == "OPEN#green-grasslands#0"
    assert broken() == []


def test_a_finished_game_of_fifty_is_settled(table: None, tmp_path: Path) -> None:
    names = [f"user-{number}" for number in range(50)]
    import_file(
        write_dump(
            tmp_path,
            *map(user_line, names),
            finished_game_line("g", 50, creator="user-0", gold="user-7"),
            *(seat_line("g", name) for name in names),
        )
    )
    assert stats("user-7") == (1, 1, 0, 0, 0, 10)
    assert {stats(name) for name in names if name != "user-7"} == {(1, 0, 0, 1, 0, 0)}
    assert broken() == []


def test_an_imported_lobby_is_played_to_its_end(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    newcomer = a_player("newcomer")
    lobby.join_game(newcomer.identity, "o", now=NOW)
    lobby.join_game(logged_in("dora").identity, "o", now=NOW)
    assert broken() == []
    leaving.leave_game("dora", "o", now=NOW)
    assert broken() == []
    lobby.start_game("ada", "o", now=NOW)
    assert broken() == []
    play.take_out("o", "ben", "newcomer", now=NOW)
    assert broken() == []
    play.take_out("o", "ada", "newcomer", now=NOW + timedelta(seconds=1))

    game = lobby.existing_game("o")
    assert (game.status, game.winner) == (FINISHED, "newcomer")
    assert stats("newcomer")[:4] == (1, 1, 2, 0)
    assert broken() == []


def test_an_imported_running_game_is_played_to_its_end(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    for victim in ("dora", "cleo", "ben"):
        play.take_out("r", victim, "ada", now=NOW)
        assert broken() == []
    assert lobby.existing_game("r").winner == "ada"
    assert stats("ada") == (2, 1, 3, 1, flags.win_reward_coins, 13)


def test_imported_accounts_can_be_deleted(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    for username in ("ada", "ben", "cleo"):
        delete_account(username, now=NOW)
        assert broken() == []
    assert lobby.existing_game("r").winner == "dora"


async def test_the_api_answers_from_an_imported_dump(api: Api, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    viewer = a_player("viewer")

    open_games = ok(await api.get("/games", viewer))["items"]
    assert [(g["game_id"], g["map"], g["player_count"], g["max_players"]) for g in open_games] == [
        ("o", "green-grasslands", 2, 50)
    ]
    on_map = ok(await api.get("/games", viewer, map="green-grasslands"))["items"]
    assert [game["game_id"] for game in on_map] == ["o"]
    assert ok(await api.get("/games", viewer, map="dirty-desert"))["items"] == []

    running = ok(await api.get("/games/r", viewer))
    assert (running["status"], running["player_count"], running["alive_count"]) == ("STARTED", 4, 4)
    assert running["host"] == "ada"
    assert running["started_at"] == f"{LATER}.000000Z"
    assert [(p["username"], p["display_name"], p["kills"]) for p in running["players"]] == [
        ("ada", "Ada Smith", None),
        ("ben", "Ben Smith", None),
        ("cleo", "Cleo Smith", None),
        ("dora", "Dora Smith", None),
    ]

    finished = ok(await api.get("/games/f", viewer))
    assert (finished["status"], finished["winner"]) == ("FINISHED", "ben")
    assert {p["username"]: p["placement"] for p in finished["players"]} == {
        "ada": 2,
        "ben": 1,
        "cleo": None,
        "dora": 3,
    }

    history = ok(await api.get("/players/ada/games", viewer))["items"]
    assert {(h["game_id"], h["status"], h["placement"], h["is_winner"]) for h in history} == {
        ("o", "OPEN", None, False),
        ("r", "STARTED", None, False),
        ("f", "FINISHED", 2, False),
    }
    board = ok(await api.get("/leaderboard", viewer))["items"]
    assert (board[0]["username"], board[0]["wins"]) == ("ben", 1)


def run_command(path: Path, *options: str) -> str:
    out = StringIO()
    call_command("import_battle_royale", str(path), *options, stdout=out)
    return out.getvalue()


def test_the_command_reports_and_draws_a_bar(
    table: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_dump(tmp_path, user_line("ada"), game_line("g", 3), "[]", seat_line("g", "ada"))
    lines = run_command(path).splitlines()
    assert lines[0] == "Imported: 1 users, 1 open games, 1 memberships."
    assert lines[1:5] == MAPPED.splitlines()
    assert lines[5:] == [
        "Dropped: 1 address, 1 birthdate, 1 email.",
        "Taken as UTC: 2 times without a zone.",
        "In several games, so without a current one: 0 users.",
        "Lines left out: 1. Inconsistencies: 1.",
        "line 2: people is 3, but 1 memberships could be taken",
        "line 3: left out: not a JSON object",
    ]
    assert "3/3" in capsys.readouterr().err
    again = run_command(path, "--verbosity", "0").splitlines()
    assert again[:2] == [
        "Imported: nothing.",
        "Already there, left as they are: 1 users, 1 games, 1 memberships.",
    ]
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_read_is_one_line(table: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.jsonl cannot be read: No such file"):
        run_command(tmp_path / "none.jsonl")
    with pytest.raises(CommandError, match=re.escape(f"{tmp_path} cannot be read: Is a directory")):
        run_command(tmp_path)
