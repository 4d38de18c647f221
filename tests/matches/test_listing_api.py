from datetime import timedelta
from typing import Any

import pytest
from django.core import signing
from pytest_django import Settings

from gameserver.models import Item, transact
from matches.models import CANCELLED, STARTED, Game
from matches.rules import MAPS
from matches.services import leaving
from tests.builders import (
    GAME_FIELDS,
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


async def ids(api: Api, by: APlayer, **params: Any) -> list[str]:
    return [game["game_id"] for game in ok(await api.get("/games", by, **params))["items"]]


async def test_the_catalogue_is_public(api: Api) -> None:
    assert ok(await api.get("/maps")) == [
        {"id": "green-grasslands", "title": "Green Grasslands"},
        {"id": "dirty-desert", "title": "Dirty Desert"},
        {"id": "juicy-jungle", "title": "Juicy Jungle"},
        {"id": "urban-underground", "title": "Urban Underground"},
        {"id": "open-ocean", "title": "Open Ocean"},
    ]


async def test_open_games_are_listed_oldest_first_with_all_that_a_list_shows(api: Api) -> None:
    hosts = players("alice", "bob", "cat")
    maps = ("open-ocean", MAP, "open-ocean")
    games = [
        a_game(host, game_map=game_map, now=NOW - timedelta(minutes=n))
        for n, (host, game_map) in enumerate(zip(hosts, maps, strict=True))
    ]
    viewer = a_player("viewer")

    page = ok(await api.get("/games", viewer))

    assert page.keys() == {"items", "next_cursor"}
    assert [item["game_id"] for item in page["items"]] == [game.game_id for game in games[::-1]]
    assert page["next_cursor"] is None
    for item in page["items"]:
        assert item.keys() == GAME_FIELDS
        detail = ok(await api.get(f"/games/{item['game_id']}", viewer))
        del detail["players"]
        assert item == detail
    assert await ids(api, viewer, map="open-ocean") == [games[2].game_id, games[0].game_id]
    assert await ids(api, viewer, map="juicy-jungle") == []


async def test_a_game_is_listed_exactly_while_it_has_a_free_seat(api: Api) -> None:
    alice, bob, cat = players("alice", "bob", "cat")
    game = a_game(alice, bob, max_players=3)
    path = f"/games/{game.game_id}"
    seen = []

    for action, by in [
        ("join", cat),
        ("leave", bob),
        ("join", bob),
        ("leave", cat),
        ("start", alice),
    ]:
        before = await ids(api, cat)
        ok(await api.post(f"{path}/{action}", by))
        seen.append((bool(before), action, bool(await ids(api, cat))))

    assert seen == [
        (True, "join", False),
        (False, "leave", True),
        (True, "join", False),
        (False, "leave", True),
        (True, "start", False),
    ]


async def test_another_players_game_leaves_the_first_lobby_alone(api: Api) -> None:
    alice, bob, viewer = players("alice", "bob", "viewer")
    first = a_game(alice)
    second = a_game(bob)

    refusal(await api.post("/games", alice, map=MAP), 409, "already_in_game")

    assert set(await ids(api, viewer)) == {first.game_id, second.game_id}
    assert stored(first).serialize() == first.serialize()


@pytest.mark.parametrize("ending", [STARTED, CANCELLED, "FINISHED"])
def test_a_game_that_ends_loses_its_index_keys_and_nothing_becomes_null(
    table: None, ending: str
) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob, status=CANCELLED if ending == CANCELLED else STARTED)
    if ending == "FINISHED":
        leaving.leave_game("bob", game.game_id, now=NOW)

    connection = Item._get_connection()
    raw = connection.get_item(game.PK, range_key=game.SK)["Item"]

    is_listed = ending == STARTED
    assert ("listing" in raw, "listed_at" in raw) == (is_listed, is_listed)
    assert not any("NULL" in value or value == {"S": ""} for value in raw.values())


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("limit", [1, 7, 50, 100])
async def test_paging_gives_every_game_once_and_ends(
    api: Api, settings: Settings, limit: int, shards: int
) -> None:
    settings.LISTING_SHARDS = shards
    everything = []
    for n in range(30):
        host = a_player(f"host{n:02d}")
        # Two at a time, so that pages end between games of the same moment.
        when = NOW + timedelta(seconds=n // 2)
        game_map = list(MAPS)[n % 3]
        everything.append(a_game(host, game_map=game_map, now=when))
    viewer = a_player("viewer")

    for wanted_map in (None, "dirty-desert"):
        wanted = [game for game in everything if wanted_map in (None, game.map)]
        seen: list[dict[str, Any]] = []
        params: dict[str, Any] = {"limit": limit} | ({"map": wanted_map} if wanted_map else {})
        for _ in range(len(wanted) + 5):
            page = ok(await api.get("/games", viewer, **params))
            assert len(page["items"]) <= limit
            seen += page["items"]
            if page["next_cursor"] is None:
                break
            params["cursor"] = page["next_cursor"]
        assert page["next_cursor"] is None
        assert [item["created_at"] for item in seen] == sorted(item["created_at"] for item in seen)
        assert sorted(item["game_id"] for item in seen) == sorted(game.game_id for game in wanted)


async def test_300_games_of_other_maps_do_not_hide_the_one(api: Api) -> None:
    others = [
        Game.new(f"g{n}", "open-ocean", "nobody", now=NOW, max_players=50, min_players=2)
        for n in range(300)
    ]
    for start in range(0, 300, 100):
        transact(**{game.game_id: game.put() for game in others[start : start + 100]})
    alice = a_player("alice")
    game = a_game(alice, game_map="juicy-jungle", now=NOW + timedelta(hours=1))

    page = ok(await api.get("/games", alice, map="juicy-jungle", limit=10))

    assert [item["game_id"] for item in page["items"]] == [game.game_id]


async def test_a_cursor_belongs_to_its_query_and_is_never_altered(api: Api) -> None:
    for n in range(3):
        a_game(a_player(f"host{n}"))
    viewer = a_player("viewer")
    cursor = ok(await api.get("/games", viewer, limit=1))["next_cursor"]
    assert cursor

    forged = signing.dumps("2020#x", salt="cursor:games:PRIVATE:*", key="another key")
    bad = [
        *("x", "bm90aGluZw==", "....", "\U0001f600", "\0", "x" * 5000, "."),
        *(cursor[:-1], cursor[1:], cursor + "x", cursor.swapcase(), forged),
    ]
    for text in bad:
        refusal(await api.get("/games", viewer, limit=1, cursor=text), 400, "invalid_cursor")
    for path in ("/games?map=dirty-desert", "/players/viewer/games", "/players/host0/games"):
        joint = "&" if "?" in path else "?"
        answer = await api.get(f"{path}{joint}cursor={cursor}", viewer)
        refusal(answer, 400, "invalid_cursor")


@pytest.mark.parametrize("path", ["/games", "/leaderboard", "/players/alice/games"])
@pytest.mark.parametrize("limit", ["100000", "101", "0", "-1", "1e9", "x", "", "1.5", "9" * 5000])
async def test_a_limit_is_1_to_100(api: Api, path: str, limit: str) -> None:
    refusal(await api.get(path, a_player(), limit=limit), 422, "validation_error")


async def test_of_repeated_parameters_the_last_one_counts(api: Api) -> None:
    hosts = players("alice", "bob")
    for host in hosts:
        a_game(host)

    many = "&".join(f"limit={n}" for n in range(100, 0, -10))
    page = ok(await api.get(f"/games?{many}&limit=1", hosts[0]))

    assert len(page["items"]) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a OR attribute_exists(PK)",
        "dirty-desert#0",
        "*",
        "OPEN",
        "",
        "x" * 5000,
        "\0",
        "\U0001f600",
    ],
)
async def test_a_filter_is_data_never_an_expression(api: Api, text: str) -> None:
    refusal(await api.get("/games", a_player(), map=text), 422, "validation_error")


async def test_parameters_that_do_not_exist_change_nothing(api: Api) -> None:
    alice = a_player()
    a_game(alice, is_private=True)
    plain = ok(await api.get("/games", alice))

    extra = {"sort": "password", "state": "PRIVATE", "shard": "7", "filter": "PK", "after": "x"}

    assert ok(await api.get("/games", alice, **extra)) == plain
