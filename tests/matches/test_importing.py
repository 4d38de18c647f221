"""A dump in the table: what the API answers from it, and that no crash or rerun harms it."""

import re
import sys
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from gameserver import models as table_models
from gameserver import table as keys
from gameserver.models import Item
from matches.management.commands.import_battle_royale import MAPPED
from matches.models import FINISHED, Game, ImportProgress, UserGameMapping
from matches.models import imports as import_models
from matches.services import check, lobby, play
from matches.services.departure import delete_account
from matches.services.imports import Imported, import_dump, read_dump
from players.models import Credential, User
from players.services import accounts
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
from tests.servers import Process, server_environment


def import_file(path: Path) -> Imported:
    return import_dump(read_dump(path), now=NOW, advance=lambda done: None)


def everything() -> dict[tuple[str, str], Any]:
    """The whole table, raw, but for the counters: they are written in the background."""
    response = Item._get_connection().scan()
    assert "LastEvaluatedKey" not in response
    items = [raw for raw in response["Items"] if raw["kind"]["S"] != "COUNTER"]
    return {(raw["PK"]["S"], raw["SK"]["S"]): raw for raw in items}


def broken() -> list[str]:
    return check.check_table(pause=lambda seconds: None).broken


def user(username: str) -> User:
    found = User.by_username(username, consistent=True)
    assert found is not None
    return found


def stats(username: str) -> tuple[float, ...]:
    one = user(username)
    return (one.games_played, one.wins, one.kills, one.deaths, one.coins, one.score)


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


def test_a_second_run_changes_nothing(table: None, tmp_path: Path) -> None:
    path = a_whole_dump(tmp_path)
    import_file(path)
    before = everything()

    again = import_file(path)

    assert everything() == before
    assert again.written == {}
    assert again.kept == {"users": 4, "games": 3, "memberships": 10}


def test_a_second_run_leaves_alone_what_has_lived_on(table: None, tmp_path: Path) -> None:
    path = a_whole_dump(tmp_path)
    import_file(path)
    accounts.rename("ada", "Countess")
    delete_account("cleo", now=NOW)
    lobby.leave_game("ben", "o", now=NOW)
    play.take_out("r", "dora", "ada", now=NOW)
    before = everything()

    again = import_file(path)

    assert everything() == before
    assert again.written == {}
    assert broken() == []


def test_one_file_is_imported_in_the_middle_of_another(table: None, tmp_path: Path) -> None:
    import_file(a_whole_dump(tmp_path))
    more = write_dump(
        tmp_path,
        *map(user_line, ("ada", "emil")),
        finished_game_line("f2", gold="ada", silver="emil"),
        seat_line("f2", "ada", place="gold"),
        seat_line("f2", "emil", place="silver"),
    )
    imported = import_file(more)
    assert imported.written == {"users": 1, "finished games": 1, "memberships": 2}
    assert stats("ada") == (2, 1, 0, 1, 0, 10)
    assert broken() == []


class Crashed(Exception):
    """The process dies here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, write: int, *, after: bool) -> None:
    """Let the import die in its n-th transaction, before or after it is done."""
    real: Callable[..., None] = table_models.transact
    done = 0

    def transact(**writes: Any) -> None:
        nonlocal done
        done += 1
        if done == write and not after:
            raise Crashed
        real(**writes)
        if done == write:
            raise Crashed

    monkeypatch.setattr(import_models, "transact", transact)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(1, 8))
def test_a_run_after_a_crash_completes(
    write: int, after: bool, table: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two batches of users, three games, two batches of results: seven transactions.
    monkeypatch.setattr("matches.services.imports.USERS_AT_ONCE", 2)
    monkeypatch.setattr("matches.services.imports.RESULTS_AT_ONCE", 2)
    path = a_whole_dump(tmp_path)
    with monkeypatch.context() as patched:
        crash_at(patched, write, after=after)
        with pytest.raises(Crashed):
            import_file(path)
    assert broken() == []

    import_file(path)

    assert broken() == []
    assert stats("ben") == (1, 1, 0, 0, 0, 10)
    assert stats("ada") == (1, 0, 0, 1, 0, 0)
    assert len(everything()) == 4 + 3 + 10 + 1
    after_one_more = everything()
    import_file(path)
    assert everything() == after_one_more


def test_an_account_deleted_between_two_runs_stays_deleted(
    table: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_whole_dump(tmp_path)
    with monkeypatch.context() as patched:
        crash_at(patched, 2, after=True)
        with pytest.raises(Crashed):
            import_file(path)
    delete_account("ben", now=NOW)

    imported = import_file(path)

    assert User.by_username("ben") is None
    why = "membership of ben, whose account was deleted since the import began"
    assert [(finding.line, finding.text) for finding in imported.findings] == [
        (11, why),
        (14, why),
    ]
    assert broken() == []
    # The lobby was there before he left; of the finished game's results his is unknown.
    assert lobby.existing_game("f").winner is None


def test_two_runs_at_once_share_the_work(
    table: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_whole_dump(tmp_path)
    real = ImportProgress.add_game
    raced: list[str] = []

    def add_game(game: Game, seats: list[UserGameMapping]) -> None:
        # The other run is done by the time this one writes its first game.
        if not raced:
            raced.append(game.game_id)
            import_file(path)
        real(game, seats)

    monkeypatch.setattr(ImportProgress, "add_game", add_game)
    imported = import_file(path)

    assert imported.written == {"users": 4}
    assert imported.kept == {"users": 0, "games": 3, "memberships": 10}
    assert broken() == []


def test_two_runs_at_once_create_users_once(
    table: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_whole_dump(tmp_path)
    real = ImportProgress.through
    raced: list[str] = []

    def through(file_hash: str) -> int | None:
        seen = real(file_hash)
        if not raced:
            raced.append(file_hash)
            import_file(path)
        return seen

    monkeypatch.setattr(ImportProgress, "through", through)
    imported = import_file(path)

    assert imported.written == {}
    assert imported.kept == {"users": 4, "games": 3, "memberships": 10}
    assert broken() == []


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
    lobby.leave_game("user-3", "g", now=NOW)
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
    lobby.leave_game("dora", "o", now=NOW)
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
    assert running["started_at"] == f"{LATER}Z"
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


def test_a_killed_import_completes_when_it_is_run_again(table: None, tmp_path: Path) -> None:
    names = [f"user-{number}" for number in range(20)]
    games = [f"game-{number}" for number in range(40)]
    path = write_dump(
        tmp_path,
        *map(user_line, names),
        *(finished_game_line(game, 20, creator="user-0", gold="user-1") for game in games),
        *(seat_line(game, name) for game in games for name in names),
    )
    environment = server_environment(
        tmp_path / "data",
        DYNAMODB_ENDPOINT_URL=settings.DYNAMODB_ENDPOINT_URL,
        DYNAMODB_TABLE=settings.DYNAMODB_TABLE,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
        SECRET_KEY=settings.SECRET_KEY,
    )
    command = [sys.executable, "manage.py", "import_battle_royale", str(path)]
    process = Process(command, environment)
    while process.poll() is None and Game.by_id(games[4], consistent=True) is None:
        pass
    assert process.poll() is None, process.output
    process.kill()
    process.close()
    assert Game.by_id(games[-1], consistent=True) is None
    assert broken() == []

    imported = import_file(path)

    assert 0 < imported.written["finished games"] < 36
    assert broken() == []
    assert stats("user-1") == (40, 40, 0, 0, 0, 400)
