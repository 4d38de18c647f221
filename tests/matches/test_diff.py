"""The story that changes tell is the state: applied to the first snapshot, they give the last."""

from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matches import diff
from matches.diff import View

NAMES = ("ada", "ben", "cleo", "dora", "emil")
MOVES = st.one_of(
    st.tuples(st.sampled_from(["join", "leave", "fall", "drop_or_return"]), st.sampled_from(NAMES)),
    st.tuples(st.just("kill"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.sampled_from([("start",), ("start",), ("time_out",), ("cancel",)]),
)
GAMES = st.lists(MOVES, max_size=40)


def a_view(*usernames: str) -> View:
    game = {"game_id": "g", "status": "OPEN", "host": usernames[0], "player_count": 0}
    game |= {"alive_count": None, "started_at": None, "winner": None, "version": 1}
    view = {"version": 1, "game": game, "players": [], "away": []}
    for second, username in enumerate(usernames):
        seat(view, username, second)
    return view


def seat(view: View, username: str, second: int) -> None:
    # Whole seconds are written without a fraction, as pydantic does.
    fraction = "" if second % 2 else ".500000"
    view["players"].append(
        {
            "username": username,
            "joined_at": f"2026-01-01T00:{second // 60:02}:{second % 60:02}{fraction}Z",
            "is_alive": True,
            "kills": 0,
            "placement": None,
            "eliminated_by": None,
        }
    )
    view["game"]["player_count"] = len(view["players"])


def is_done(view: View, move: tuple[str, ...]) -> bool:
    """Make a move the way the services do; False if the rules do not allow it."""
    if not is_allowed(view, move):
        return False
    view["away"] = sorted(playing(view).intersection(view["away"]))
    view["version"] += 1
    view["game"]["version"] = view["version"]
    return True


def is_allowed(view: View, move: tuple[str, ...]) -> bool:
    game, players = view["game"], {one["username"]: one for one in view["players"]}
    alive = [name for name, one in players.items() if one["is_alive"]]
    match move:
        case ("join", name) if game["status"] == "OPEN" and name not in players:
            seat(view, name, view["version"])
        case ("leave", name) if game["status"] == "OPEN" and name in players and len(players) > 1:
            view["players"].remove(players[name])
            game["player_count"] -= 1
            if game["host"] == name:
                game["host"] = view["players"][0]["username"]
        case ("start",) if game["status"] == "OPEN" and len(players) > 1:
            game |= {"status": "STARTED", "alive_count": len(players), "started_at": "then"}
        case ("fall", name) if game["status"] == "STARTED" and name in alive:
            take_out(view, players, name, None)
        case ("kill", killer, name) if game["status"] == "STARTED" and killer != name:
            if killer not in alive or name not in alive:
                return False
            take_out(view, players, name, killer)
        case ("drop_or_return", name) if name in playing(view):
            view["away"] = sorted({name}.symmetric_difference(view["away"]))
        case _:
            return ends(game, move)
    return True


def ends(game: dict[str, Any], move: tuple[str, ...]) -> bool:
    match (*move, game["status"]):
        case ("time_out", "STARTED"):
            game["status"] = "FINISHED"
        case ("cancel", "OPEN"):
            game["status"] = "CANCELLED"
        case _:
            return False
    return True


def take_out(view: View, players: dict[str, dict[str, Any]], name: str, killer: str | None) -> None:
    game = view["game"]
    players[name] |= {"is_alive": False, "placement": game["alive_count"], "eliminated_by": killer}
    if killer is not None:
        players[killer]["kills"] += 1
    game["alive_count"] -= 1
    if game["alive_count"] == 1:
        winner = next(one for one in view["players"] if one["is_alive"])
        winner["placement"] = 1
        game |= {"status": "FINISHED", "winner": winner["username"]}


def playing(view: View) -> set[str]:
    is_on = view["game"]["status"] in {"OPEN", "STARTED"}
    return {one["username"] for one in view["players"] if one["is_alive"] and is_on}


def story(moves: list[tuple[str, ...]]) -> list[View]:
    """Return every state of a game, the first one included."""
    view = a_view("ada")
    later = (deepcopy(view) for move in moves if is_done(view, move))
    return [deepcopy(view), *later]


def event_types(old: View, new: View) -> list[str]:
    changed = diff.change(old, new)
    assert changed is not None
    return [event["type"] for event in changed["events"]]


@given(moves=GAMES, data=st.data())
def test_changes_applied_to_the_first_snapshot_give_the_last_state(
    moves: list[tuple[str, ...]], data: st.DataObject
) -> None:
    states = story(moves)
    # A feed reads now and then, so it sees some of the states.
    is_read = data.draw(st.lists(st.booleans(), min_size=len(states), max_size=len(states)))
    read = [state for state, seen in zip(states, is_read, strict=True) if seen] or [states[0]]
    known = read[0]
    for old, new in pairwise(read):
        changed = diff.change(old, new)
        if changed is None:
            known = new
            continue
        assert changed["from_version"] == known["version"]
        known = diff.apply(known, changed)
        assert known == new
    assert known == read[-1]


@given(moves=GAMES)
def test_a_step_by_step_story_never_needs_a_new_snapshot(moves: list[tuple[str, ...]]) -> None:
    for old, new in pairwise(story(moves)):
        changed = diff.change(old, new)
        assert changed is not None
        assert len(changed["events"]) in {1, 2}


@given(moves=GAMES)
def test_a_whole_game_in_one_change_is_told_by_events(moves: list[tuple[str, ...]]) -> None:
    states = story(moves)
    if len(states) > 1:
        assert diff.change(states[0], states[-1]) is not None


def test_events_are_told_in_an_order_in_which_they_can_have_happened() -> None:
    view = a_view("ada", "ben")
    before = deepcopy(view)
    for move in (("join", "cleo"), ("leave", "ada"), ("start",), ("kill", "ben", "cleo")):
        assert is_done(view, move)
    assert event_types(before, view) == [
        "player_left",
        "player_joined",
        "host_changed",
        "game_started",
        "player_eliminated",
        "game_finished",
    ]


def test_a_player_who_left_and_came_back_between_two_reads_is_told_as_both() -> None:
    view = a_view("ada", "ben")
    before = deepcopy(view)
    for move in (("leave", "ben"), ("join", "ben")):
        assert is_done(view, move)
    assert event_types(before, view) == ["player_left", "player_joined"]


def test_a_player_who_left_while_away_is_not_told_as_back() -> None:
    view = a_view("ada", "ben")
    assert is_done(view, ("drop_or_return", "ben"))
    before = deepcopy(view)
    for move in (("leave", "ben"), ("join", "ben")):
        assert is_done(view, move)
    assert event_types(before, view) == ["player_left", "player_joined"]
    assert is_done(view, ("drop_or_return", "ben"))
    assert event_types(before, view) == ["player_left", "player_joined", "player_away"]


@pytest.mark.parametrize("version", [1, 0])
def test_a_version_that_does_not_rise_needs_a_new_snapshot(version: int) -> None:
    before, after = a_view("ada"), a_view("ada", "ben")
    after["version"] = version
    assert diff.change(before, after) is None


def test_what_no_event_tells_needs_a_new_snapshot() -> None:
    before, after = a_view("ada", "ben"), a_view("ada", "ben")
    after["version"] = 2
    after["players"][1]["username"] = after["players"][1]["display_name"] = "deleted-player"
    after["players"].append(dict(after["players"][1]))
    assert diff.change(before, after) is None
