"""What every write to a game keeps: its version rises, and what it does not know stays."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from gameserver import table as keys
from gameserver.errors import GameNotFound, NotAuthenticated, PlayerNotFound
from matches.models import CANCELLED, STARTED, UserGameMapping
from matches.services import find, leaving, lobby, play, sweep
from players.services import accounts
from settings_singleton.models import read_flags
from settings_singleton.services import change
from tests.builders import MAP, NOW, a_game, a_player, players, stored
from tests.faults.layer import Faults
from tests.raw import delete_raw, get_raw, scan_raw, set_raw
from tests.servers import ROOT

UNKNOWN = {"favourite_colour": {"S": "of a newer release"}}
LONG_AGO = NOW - timedelta(days=30)


def writes_in(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [next(iter(one.values())) for one in body.get("TransactItems", [])] or [body]


def test_every_transition_adds_one_to_the_version(table: None, faults: Faults) -> None:
    # O-01
    host, ada, bob, cyd = players("host", "ada", "bob", "cyd")
    game_id = lobby.create_game(
        host.identity, lobby.GameOptions(MAP, max_players=4), now=NOW
    ).game_id
    transitions: list[Callable[[], object]] = [
        lambda: lobby.join_game(ada.identity, game_id, now=NOW),
        lambda: lobby.join_game(bob.identity, game_id, now=NOW),
        lambda: lobby.join_game(cyd.identity, game_id, now=NOW),
        lambda: leaving.leave_game("ada", game_id, now=NOW),
        lambda: leaving.kick_player("host", game_id, "bob", now=NOW),
        lambda: lobby.join_game(bob.identity, game_id, now=NOW),
        lambda: lobby.start_game("host", game_id, now=NOW),
        lambda: play.eliminate_player(host.identity, game_id, "cyd", "host", now=NOW),
        lambda: leaving.leave_game("bob", game_id, now=NOW),
    ]
    for version, transition in enumerate(transitions, 2):
        transition()
        assert stored(game_id).version == version
    # A figure that is set could be an old one; what is only added to never falls.
    for part in [part for request in faults.sent for part in writes_in(request.body)]:
        names = part.get("ExpressionAttributeNames", {})
        for placeholder in [name for name, what in names.items() if what == "version"]:
            assert f"{placeholder} :" in part["UpdateExpression"].partition("ADD")[2]
            assert f"{placeholder} =" not in part["UpdateExpression"]


@pytest.mark.parametrize("end", ["cancel", "sweep"])
def test_an_end_without_a_winner_adds_one_to_the_version(table: None, end: str) -> None:
    # O-01
    game = a_game(a_player("host"), now=LONG_AGO)
    if end == "cancel":
        lobby.cancel_game("host", game.game_id, now=NOW)
    else:
        assert sweep.sweep(now=NOW).cancelled == 1
    assert (stored(game).status, stored(game).version) == (CANCELLED, 2)


def test_what_a_newer_release_stored_survives_every_write_to_a_game(table: None) -> None:
    # O-05
    host, ada, bob = players("host", "ada", "bob")
    game = a_game(host, max_players=3)
    stale = a_game(a_player("idle"), now=LONG_AGO)
    set_raw(keys.game_key(game.game_id), **UNKNOWN)
    set_raw(keys.game_key(stale.game_id), **UNKNOWN)
    for guest in (ada, bob):
        lobby.join_game(guest.identity, game.game_id, now=NOW)
    leaving.kick_player("host", game.game_id, "bob", now=NOW)
    lobby.join_game(bob.identity, game.game_id, now=NOW)
    seats = [keys.mapping_key(game.game_id, name) for name in ("host", "ada", "bob")]
    for seat in seats:
        set_raw(seat, **UNKNOWN)
    lobby.start_game("host", game.game_id, now=NOW)
    play.eliminate_player(host.identity, game.game_id, "ada", "host", now=NOW)
    play.eliminate_player(host.identity, game.game_id, "bob", "host", now=NOW)
    UserGameMapping.anonymise(game.game_id, "ada")
    sweep.sweep(now=NOW)
    for key in (keys.game_key(game.game_id), keys.game_key(stale.game_id), *seats):
        assert get_raw(key)["favourite_colour"] == UNKNOWN["favourite_colour"]


def test_what_a_newer_release_stored_survives_a_change_of_the_settings(stored_flags: None) -> None:
    # O-05
    set_raw(keys.flags_key(), **UNKNOWN)
    change({"chat_enabled": False}, who="operator", why="test", now=NOW)
    [item] = read_flags().values()
    assert item["favourite_colour"] == UNKNOWN["favourite_colour"]


def test_nothing_brings_a_deleted_game_or_account_back(table: None) -> None:
    # O-09
    host, ada = players("host", "ada")
    game = a_game(host)
    delete_raw(keys.game_key(game.game_id))
    delete_raw(keys.mapping_key(game.game_id, "host"))
    before = len(scan_raw())
    writes: list[Callable[[], object]] = [
        lambda: lobby.join_game(ada.identity, game.game_id, now=NOW),
        lambda: leaving.leave_game("host", game.game_id, now=NOW),
        lambda: lobby.start_game("host", game.game_id, now=NOW),
        lambda: lobby.cancel_game("host", game.game_id, now=NOW),
        lambda: leaving.kick_player("host", game.game_id, "ada", now=NOW),
        lambda: play.eliminate_player(host.identity, game.game_id, "ada", "host", now=NOW),
    ]
    for write in writes:
        with pytest.raises(GameNotFound):
            write()
    delete_raw(keys.user_key("ada"))
    with pytest.raises(PlayerNotFound):
        accounts.rename("ada", "Back again")
    with pytest.raises(NotAuthenticated):
        lobby.create_game(ada.identity, lobby.GameOptions(MAP), now=NOW)
    assert len(scan_raw()) == before - 1


def test_a_stale_pointer_to_a_game_that_is_gone_does_not_lock_a_player_out(table: None) -> None:
    host = a_player("host")
    lost = a_game(host)
    delete_raw(keys.game_key(lost.game_id))
    game, is_new = find.quick_join(host.identity, MAP, now=NOW)
    assert is_new
    assert host.user.current_game == game.game_id


IN_KATHMANDU = """
import json, os, sys, time
import django
os.environ["TZ"] = "Asia/Kathmandu"
time.tzset()
django.setup()
os.environ["TZ"] = "Asia/Kathmandu"
time.tzset()
from datetime import datetime
from django.utils import timezone
from matches.services import lobby, sweep
from settings_singleton.testing import override_flags
from tests.builders import a_game, a_player, stored
assert datetime.now().astimezone().utcoffset().total_seconds() == 20_700
now = timezone.now()
with override_flags(match_timeout_seconds=3600):
    game = a_game(a_player("host"), now=now)
    lobby.join_game(a_player("guest").identity, game.game_id, now=timezone.now())
    lobby.start_game("host", game.game_id, now=timezone.now())
    early = sweep.sweep(now=timezone.now())
print(json.dumps({
    "now": now.isoformat(), "created_at": stored(game).created_at.isoformat(),
    "started_at": stored(game).started_at.isoformat(), "id": game.game_id, "ended": early.ended,
}))
"""


def test_times_are_the_same_instants_in_every_time_zone(table: None) -> None:
    # O-12: created in Kathmandu, started there, read and timed out here.
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "gameserver.settings",
        "ENVIRONMENT": "test",
        "DYNAMODB_ENDPOINT_URL": settings.DYNAMODB_ENDPOINT_URL,
        "PYTHONPATH": str(ROOT),
    }
    before = datetime.now(UTC)
    run = subprocess.run(
        [sys.executable, "-c", IN_KATHMANDU],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    there = json.loads(run.stdout.splitlines()[-1])
    assert there["created_at"] == there["now"]
    assert there["ended"] == 0
    game = stored(there["id"])
    assert game.status == STARTED
    assert before <= game.created_at <= (game.started_at or before) <= datetime.now(UTC)
    assert game.created_at.isoformat() == there["now"]
    assert game.listed_at == keys.listed_at(game.created_at, game.game_id)
    assert sweep.sweep(now=datetime.now(UTC) + timedelta(days=7)).ended == 1
