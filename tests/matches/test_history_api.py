from datetime import timedelta
from typing import Any

from matches.models import CANCELLED, STARTED
from matches.services import leaving, play
from tests.builders import MAP, NOW, Api, a_game, a_player, ok, players, refusal

ITEM_FIELDS = {"game_id", "map", "status", "joined_at", "kills", "placement", "is_winner"}


async def test_a_history_tells_results_newest_first(api: Api) -> None:
    alice, bob = players("alice", "bob")
    won = a_game(alice, bob, status=STARTED, now=NOW - timedelta(hours=3))
    play.take_out(won.game_id, "bob", "alice", now=NOW)
    cancelled = a_game(alice, bob, status=CANCELLED, now=NOW - timedelta(hours=2))
    current = a_game(alice, bob, game_map="open-ocean", now=NOW - timedelta(hours=1))

    page = ok(await api.get("/players/alice/games", bob))

    assert page["next_cursor"] is None
    items = page["items"]
    assert all(item.keys() == ITEM_FIELDS for item in items)
    assert [
        tuple(item[name] for name in sorted(ITEM_FIELDS - {"joined_at"})) for item in items
    ] == [
        (current.game_id, False, 0, "open-ocean", None, "OPEN"),
        (cancelled.game_id, False, 0, MAP, None, "CANCELLED"),
        (won.game_id, True, 1, MAP, 1, "FINISHED"),
    ]
    loser = ok(await api.get("/players/BOB/games", bob))["items"][-1]
    assert (loser["placement"], loser["kills"], loser["is_winner"]) == (2, 0, False)


async def test_a_lobby_that_was_left_is_not_in_the_history(api: Api) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice, bob)

    leaving.leave_game("bob", game.game_id, now=NOW)

    assert ok(await api.get("/players/bob/games", bob))["items"] == []
    assert len(ok(await api.get("/players/alice/games", bob))["items"]) == 1


async def test_paging_gives_every_game_of_a_player_once(api: Api) -> None:
    alice = a_player()
    played = [
        a_game(alice, status=CANCELLED, now=NOW - timedelta(minutes=n)).game_id for n in range(25)
    ]

    seen: list[dict[str, Any]] = []
    params: dict[str, Any] = {"limit": 7}
    for _ in range(6):
        page = ok(await api.get("/players/alice/games", alice, **params))
        seen += page["items"]
        if page["next_cursor"] is None:
            break
        params["cursor"] = page["next_cursor"]

    assert [item["game_id"] for item in seen] == played
    assert len(ok(await api.get("/players/alice/games", alice))["items"]) == 20


async def test_another_players_cursor_is_refused(api: Api) -> None:
    alice, bob = players("alice", "bob")
    for player in (alice, bob):
        for n in range(3):
            a_game(player, status=CANCELLED, now=NOW - timedelta(minutes=n))
    cursor = ok(await api.get("/players/alice/games", alice, limit=1))["next_cursor"]

    stolen = await api.get("/players/bob/games", bob, limit=1, cursor=cursor)

    refusal(stolen, 400, "invalid_cursor")


async def test_nobody_has_no_history(api: Api) -> None:
    refusal(await api.get("/players/nobody/games", a_player()), 404, "player_not_found")
    refusal(await api.get("/players/a%23b/games", a_player("bob")), 404, "player_not_found")
