"""No crash, rerun or second run at the same time harms an import."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from gameserver import models as table_models
from matches.models import Game, ImportProgress, UserGameMapping
from matches.models import imports as import_models
from matches.services import leaving, lobby, play
from matches.services.departure import delete_account
from players.models import User
from players.services import accounts
from tests.builders import NOW
from tests.matches.dumps import (
    a_whole_dump,
    finished_game_line,
    seat_line,
    user_line,
    write_dump,
)
from tests.matches.imported import broken, everything, import_file, stats
from tests.servers import Process, server_environment


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
    leaving.leave_game("ben", "o", now=NOW)
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
