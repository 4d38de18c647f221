"""Operators on games: lists, one game's page, and every action with its trace in the log."""

from datetime import UTC, datetime

import pytest

from gameserver import table
from matches.models import CANCELLED, FINISHED, OPEN, STARTED, Game
from matches.services import lobby, play
from tests.admin.operators import GAMES, PARTITIONS, Operator, admin_log, an_operator
from tests.builders import MAP, a_game, a_player, players, stored


def page_of(game: Game) -> str:
    return f"{GAMES}{game.game_id}/change/"


def test_lists_are_by_state_and_map(boss: Operator) -> None:
    a, b, c, d, e, f = players("ann", "bea", "cid", "dan", "eva", "fay")
    shown = {
        "OPEN": a_game(a),
        "FULL": a_game(b, c, max_players=2),
        "PRIVATE": a_game(d, is_private=True),
        "STARTED": a_game(e, f, status=STARTED),
    }
    for state, game in shown.items():
        for game_map in ("", MAP):
            page = boss.page(GAMES, state=state, map=game_map)
            assert [game.game_id in page for game in shown.values()].count(True) == 1
            assert game.game_id in page
        assert game.game_id not in boss.page(GAMES, state=state, map="juicy-jungle")


def test_a_game_is_found_by_its_id_even_after_its_end(boss: Operator) -> None:
    game = a_game(a_player(), status=CANCELLED)
    assert boss.get(GAMES, q=game.game_id)["Location"] == page_of(game)
    for text in ("nothing", "a#b", "x" * 99):
        assert "There is no game" in boss.page(GAMES, q=text)
    assert boss.get(f"{GAMES}nothing/change/").status_code == 404
    assert boss.get(f"{GAMES}a%23b/change/").status_code == 404


def test_a_page_shows_roster_kills_placements_and_version(boss: Operator) -> None:
    alice, bob, carol = players("alice", "bob", "carol")
    game = a_game(alice, bob, carol, status=STARTED)
    now = datetime.now(UTC)
    play.eliminate_player(alice.identity, game.game_id, "carol", "alice", now=now)
    response = boss.get(page_of(game))
    facts = dict(response.context_data["facts"])
    assert facts["Version"] == stored(game).version
    assert (facts["Status"], facts["Alive"]) == (STARTED, 2)
    ((_, rows),) = response.context_data["panels"]
    kills_and_placements = {row[1]: (row[4], row[5]) for row in rows}
    assert kills_and_placements["Alice"][0] == 1
    assert kills_and_placements["Carol"] == (0, 3)


def test_a_live_page_changes_with_the_game_and_ends_with_it(boss: Operator) -> None:
    alice, bob = players("alice", "bob")
    game = a_game(alice)
    before = boss.page(page_of(game), live="1")
    assert "<html" not in before
    lobby.join_game(bob.identity, game.game_id, now=datetime.now(UTC))
    after = boss.page(page_of(game), live="1")
    assert "bob" in after
    assert "bob" not in before
    lobby.cancel_game(None, game.game_id, now=datetime.now(UTC))
    assert "admin_live.js" not in boss.page(page_of(game))


def test_cancel_closes_a_lobby(boss: Operator) -> None:
    game = a_game(a_player())
    assert boss.act(GAMES, game.game_id, "cancel").status_code == 302
    assert stored(game).status == CANCELLED
    assert admin_log() == [("boss", game.game_id, "Lobby cancelled. Reason: Because of a test")]


def test_a_started_game_is_not_cancelled_but_ended_without_a_winner(boss: Operator) -> None:
    game = a_game(*players("alice", "bob"), status=STARTED)
    assert boss.act(GAMES, game.game_id, "cancel").status_code == 409
    assert boss.act(GAMES, game.game_id, "end", typed_id=game.game_id).status_code == 302
    ended = stored(game)
    assert ended.status == FINISHED
    assert ended.winner is None
    assert ended.listing is None
    assert len(admin_log()) == 1


def test_a_lobby_is_not_ended(boss: Operator) -> None:
    game = a_game(a_player())
    assert boss.act(GAMES, game.game_id, "end", typed_id=game.game_id).status_code == 409
    assert stored(game).status == OPEN


def test_taking_a_player_out_frees_a_seat_or_eliminates(boss: Operator) -> None:
    alice, bob, carol = players("alice", "bob", "carol")
    game = a_game(alice, bob, carol)
    boss.act(GAMES, game.game_id, "kick", username="alice")
    assert (stored(game).player_count, stored(game).host) == (2, "bob")
    lobby.start_game("bob", game.game_id, now=datetime.now(UTC))
    boss.act(GAMES, game.game_id, "kick", username="bob")
    assert (stored(game).status, stored(game).winner) == (FINISHED, "carol")
    refused = boss.act(GAMES, game.game_id, "kick", username="carol")
    assert refused.status_code == 409
    assert [line.split(".")[0] for _, _, line in admin_log()] == [
        "Took bob out of the game",
        "Took alice out of the game",
    ]


def test_the_form_to_take_a_player_out_knows_his_name(boss: Operator) -> None:
    game = a_game(*players("alice", "bob"))
    form = boss.page(f"{GAMES}{game.game_id}/action/kick/", username="bob")
    assert 'value="bob"' in form


def test_a_lost_listing_is_found_by_the_check_and_written_anew(boss: Operator) -> None:
    game = a_game(a_player())
    Game.update_one(game.change([Game.listing.remove(), Game.listed_at.remove()]))
    assert game.game_id not in boss.page(GAMES)
    assert "listing" in boss.page(page_of(game), check="1")
    boss.act(GAMES, game.game_id, "relist")
    assert game.game_id in boss.page(GAMES)
    assert "nothing is broken" in boss.page(page_of(game), check="1")
    assert stored(game).version == game.version
    assert "from none to OPEN" in admin_log()[0][2]


def test_an_ended_game_that_is_still_listed_leaves_the_list(boss: Operator) -> None:
    game = a_game(a_player())
    listing, listed_at = game.listing, game.listed_at
    lobby.cancel_game(None, game.game_id, now=datetime.now(UTC))
    ended = stored(game)
    Game.update_one(ended.change([Game.listing.set(listing), Game.listed_at.set(listed_at)]))
    boss.act(GAMES, game.game_id, "relist")
    assert game.game_id not in boss.page(GAMES)


def test_two_operators_at_once_end_a_game_once(boss: Operator) -> None:
    other = an_operator("other", is_superuser=True)
    game = a_game(*players("alice", "bob"), status=STARTED)
    form = f"{GAMES}{game.game_id}/action/end/"
    assert boss.get(form).status_code == other.get(form).status_code == 200
    for operator in (boss, other):
        response = operator.act(GAMES, game.game_id, "end", typed_id=game.game_id)
        assert response.status_code == 302
    assert stored(game).version == game.version + 1


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("kind", {"S": "FUTURE"}),
        ("created_at", {"S": "yesterday"}),
        ("max_players", {"NULL": True}),
    ],
)
def test_one_item_that_cannot_be_read_costs_only_its_own_line(
    boss: Operator, attribute: str, value: dict[str, object]
) -> None:
    """O-08 and O-13: 20 games, one of them odd."""
    games = [a_game(a_player(f"host-{number:02d}")) for number in range(20)]
    odd = games[7]
    _damage((odd.PK, odd.SK), attribute, value)
    page = boss.page(GAMES)
    assert [game.game_id in page for game in games].count(True) == 19
    assert odd.game_id not in page
    assert boss.get(page_of(odd)).status_code == 404
    # The browser by key shows what no model can read.
    assert odd.SK in boss.page(PARTITIONS, pk=odd.PK)


def test_an_unknown_item_in_a_roster_is_left_out(boss: Operator) -> None:
    game = a_game(*players("alice", "bob"))
    _damage(table.mapping_key(game.game_id, "bob"), "kind", {"S": "FUTURE"})
    page = boss.page(page_of(game))
    assert "alice" in page
    assert "bob" not in page
    assert "FUTURE" in boss.page(page_of(game), check="1")


def _damage(key: table.Key, attribute: str, value: dict[str, object]) -> None:
    """Change an item past the models, as a newer release or a faulty script would."""
    Game._get_connection().connection._make_api_call(
        "UpdateItem",
        {
            "TableName": Game.Meta.table_name,
            "Key": {"PK": {"S": key[0]}, "SK": {"S": key[1]}},
            "UpdateExpression": "SET #a = :v",
            "ExpressionAttributeNames": {"#a": attribute},
            "ExpressionAttributeValues": {":v": value},
        },
    )
