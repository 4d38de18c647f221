"""Lists that lag, lists with a broken item in them, and every page of a long one."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from gameserver import table as keys
from gameserver.errors import GameFull, GameNotOpen
from gameserver.models import SKIPPED, transact
from matches.models import OPEN, Game
from matches.rules import MAPS
from matches.services import find, leaving, lobby
from tests.builders import MAP, NOW, Api, a_game, a_player, ok, players, refusal
from tests.faults.kinds import StaleIndex
from tests.faults.layer import Faults
from tests.raw import get_raw, put_raw, set_raw


def store_games(count: int, *, maps: list[str] | None = None) -> list[Game]:
    """Store lobbies a second apart, each third at the moment of the one before it."""
    maps = maps or list(MAPS)
    games = []
    for number in range(count):
        created_at = NOW + timedelta(seconds=number - (number % 3 == 2))
        game_map = maps[number % len(maps)]
        game = Game.new(
            f"g{number:03d}", game_map, "host", now=created_at, max_players=50, min_players=2
        )
        games.append(game)
    for start in range(0, count, 100):
        transact(**{game.game_id: game.put() for game in games[start : start + 100]})
    return games


def pages(game_map: str | None, limit: int) -> Iterator[list[Game]]:
    cursor: str | None = None
    while True:
        page = find.open_games(game_map, limit=limit, cursor=cursor)
        yield page.games
        cursor = page.next_cursor
        if cursor is None:
            return


@pytest.mark.usefixtures("table")
def test_pages_of_any_size_give_95_games_once_each_in_order() -> None:
    # O-10
    everything = store_games(95)
    for game_map in (None, MAP):
        expected = [game for game in everything if game_map in {None, game.map}]
        expected.sort(key=lambda game: str(game.listed_at))
        for limit in (1, 7, 50, 100):
            read = list(pages(game_map, limit))
            assert [game.game_id for page in read for game in page] == [
                game.game_id for game in expected
            ]
            assert max(map(len, read)) <= limit
            # The last one may be empty, when the one before it just fitted.
            assert len(read) <= len(expected) // limit + 1


@pytest.mark.usefixtures("table")
def test_95_games_of_one_map_are_paged_over_all_maps_as_well() -> None:
    # O-10: four of five queries come back empty.
    store_games(95, maps=[MAP])
    for limit in (1, 7, 50, 100):
        assert len([game for page in pages(None, limit) for game in page]) == 95


@pytest.mark.parametrize(
    "broken",
    [
        {"created_at": {"S": "yesterday"}},
        {"created_at": {"NULL": True}},
        {"player_count": {"S": "two"}},
        {"kind": {"S": "FUTURE"}},
    ],
    ids=str,
)
async def test_one_broken_game_hides_itself_not_the_other_19(
    api: Api, broken: dict[str, dict[str, object]]
) -> None:
    # O-13, O-08
    games = store_games(20, maps=[MAP])
    set_raw(keys.game_key("g007"), **broken)
    before = SKIPPED.labels("unreadable")._value.get()
    viewer = a_player("viewer")
    with capture_logs() as logs:
        listed = ok(await api.get("/games", viewer, map=MAP, limit=100))["items"]
    expected = {game.game_id for game in games} - {"g007"}
    assert {item["game_id"] for item in listed} == expected
    assert SKIPPED.labels("unreadable")._value.get() == before + 1
    [report] = [line for line in logs if line["event"] == "item_unreadable"]
    assert report["pk"] == {"S": "GAME#g007"}
    # The game itself is as good as gone, but no error of the server.
    refusal(await api.get("/games/g007", viewer), 404, "game_not_found")
    refusal(await api.post("/games/g007/join", viewer), 404, "game_not_found")


@pytest.mark.usefixtures("table")
def test_a_page_of_broken_games_is_empty_and_says_that_there_is_more() -> None:
    #
    store_games(12, maps=[MAP])
    for number in range(11):
        set_raw(keys.game_key(f"g{number:03d}"), created_at={"NULL": True})
    read = list(pages(MAP, 10))
    assert [[game.game_id for game in page] for page in read] == [[], ["g011"]]


def test_only_games_are_listed_whatever_shares_their_index_key(table: None) -> None:
    # O-07
    game = a_game(a_player("host"))
    set_raw(
        keys.user_key("host"),
        listing={"S": game.listing},
        listed_at={"S": keys.listed_at(NOW, "a")},
    )
    put_raw(
        PK={"S": "SOMETHING#new"},
        SK={"S": "#METADATA"},
        kind={"S": "FUTURE"},
        listing={"S": game.listing},
        listed_at={"S": keys.listed_at(NOW, "b")},
    )
    [listed] = find.open_games(MAP, limit=10).games
    assert type(listed) is Game
    assert listed.game_id == game.game_id


async def test_joining_what_an_old_list_shows_is_decided_on_the_game(
    api: Api, faults: Faults
) -> None:
    #
    hosts = players("host-a", "host-b", "host-c")
    filled, started, gone = (a_game(host, max_players=2) for host in hosts)
    late = a_player("late")
    faults.order(StaleIndex(), "Query", times=None)
    old = ok(await api.get("/games", late, map=MAP))["items"]
    lobby.join_game(a_player("second").identity, filled.game_id, now=NOW)
    lobby.join_game(a_player("third").identity, started.game_id, now=NOW)
    lobby.start_game("host-b", started.game_id, now=NOW)
    lobby.cancel_game("host-c", gone.game_id, now=NOW)

    assert ok(await api.get("/games", late, map=MAP))["items"] == old
    assert {item["game_id"] for item in old} == {game.game_id for game in (filled, started, gone)}
    for game, code in ((filled, "game_full"), (started, "game_not_open"), (gone, "game_not_open")):
        refusal(await api.post(f"/games/{game.game_id}/join", late), 409, code)

    faults.stop()
    assert ok(await api.get("/games", late, map=MAP))["items"] == []


def test_quick_join_does_not_trust_an_old_list(table: None, faults: Faults) -> None:
    #
    host, first, second = players("host", "first", "second")
    listed = a_game(host, max_players=2)
    faults.order(StaleIndex(), "Query", times=None)
    assert find.quick_join(first.identity, MAP, now=NOW)[0].game_id == listed.game_id
    game, is_new = find.quick_join(second.identity, MAP, now=NOW)
    assert is_new
    assert game.game_id != listed.game_id


def test_a_game_leaves_and_enters_the_index_by_whole_attributes(table: None) -> None:
    # absent, never null or empty, whatever happens to a game.
    host, guest, third = players("host", "guest", "third")
    game = a_game(host, max_players=2)

    def listing() -> str | None:
        raw = get_raw(keys.game_key(game.game_id))
        assert not any(value in ({"NULL": True}, {"S": ""}) for value in raw.values())
        assert ("listing" in raw) == ("listed_at" in raw)
        return str(raw["listing"]["S"]).partition("#")[0] if "listing" in raw else None

    assert listing() == OPEN
    lobby.join_game(guest.identity, game.game_id, now=NOW)
    assert listing() == "FULL"
    with pytest.raises(GameFull):
        lobby.join_game(third.identity, game.game_id, now=NOW)
    leaving.leave_game("guest", game.game_id, now=NOW)
    assert listing() == OPEN
    lobby.join_game(third.identity, game.game_id, now=NOW)
    lobby.start_game("host", game.game_id, now=NOW)
    assert listing() == "STARTED"
    leaving.leave_game("third", game.game_id, now=NOW)
    assert listing() is None
    with pytest.raises(GameNotOpen):
        lobby.join_game(guest.identity, game.game_id, now=NOW)
