"""Operators on players: find, read, and every action with its trace in the log."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from gameserver import capacity, hints
from gameserver.errors import Banned, NotAuthenticated
from matches.models import CANCELLED, FINISHED, STARTED, Game
from matches.services import check, lobby, play
from players.models import Session, User
from players.services import accounts, sessions
from tests.admin.operators import PLAYERS, REASON, Operator, admin_log, an_operator
from tests.builders import NOW, APlayer, a_game, a_player, logged_in, stored

ALICE = f"{PLAYERS}alice/change/"


def authenticate(player: APlayer) -> None:
    sessions.authenticate(player.tokens.access_token, now=datetime.now(UTC))


def a_finished_game(winner: APlayer, loser: APlayer) -> Game:
    game = a_game(winner, loser, status=STARTED)
    now = datetime.now(UTC)
    play.eliminate_player(winner.identity, game.game_id, loser.username, winner.username, now=now)
    return stored(game)


def test_the_list_shows_the_best_players_first(boss: Operator) -> None:
    a_finished_game(a_player("winner"), a_player("loser"))
    page = boss.page(PLAYERS)
    assert page.index("winner") < page.index("loser")


def test_players_are_found_by_their_exact_name_in_any_spelling(boss: Operator) -> None:
    a_player("alice")
    assert boss.get(PLAYERS, q=" ALICE ")["Location"] == ALICE
    assert "There is no player" in boss.page(PLAYERS, q="alic")
    assert "There is no player" in boss.page(PLAYERS, q="a#b")


def test_a_page_shows_profile_stats_current_game_and_sessions(boss: Operator) -> None:
    alice, bob = a_player("alice"), a_player("bob")
    finished = a_finished_game(alice, bob)
    game = a_game(alice)
    page = boss.page(ALICE)
    for text in ("Alice", "11", game.game_id, finished.game_id, alice.identity.session_id[:6]):
        assert text in page
    assert Session.all_of("alice")[0].token_hash not in page


def test_a_player_who_is_not_there_is_a_404(boss: Operator) -> None:
    assert boss.get(f"{PLAYERS}ghost/change/").status_code == 404
    assert boss.get(f"{PLAYERS}x%23METADATA/change/").status_code == 404
    assert boss.act(PLAYERS, "ghost", "sign-out").status_code == 404
    assert boss.act(PLAYERS, "ghost", "ban", hours="24").status_code == 404
    assert User.by_username("ghost") is None


def test_a_ban_ends_all_sessions_and_sockets_at_once(boss: Operator) -> None:
    devices = [a_player("alice"), logged_in("alice"), logged_in("alice")]
    given: list[hints.Hint] = []
    stop = hints.listen(given.append)
    response = boss.act(PLAYERS, "alice", "ban", hours="24")
    stop()
    assert response["Location"] == ALICE
    for device in devices:
        with pytest.raises((Banned, NotAuthenticated)):
            authenticate(device)
    # Sockets close on this hint.
    assert hints.SessionsChanged("alice") in given
    user = devices[0].user
    assert user.ban_reason == REASON["reason"]
    assert timedelta(hours=23) < user.banned_until - datetime.now(UTC) <= timedelta(hours=24)
    assert Session.all_of("alice") == []
    assert admin_log() == [
        ("boss", "alice", "Banned 1 day, sessions ended. Reason: Because of a test")
    ]


def test_a_ban_for_good_is_shown_and_can_be_lifted(boss: Operator) -> None:
    a_player("alice")
    boss.act(PLAYERS, "alice", "ban", hours="forever")
    page = boss.page(ALICE)
    assert "for good" in page
    assert "Lift ban" in page
    boss.act(PLAYERS, "alice", "unban")
    authenticate(logged_in("alice"))


@pytest.mark.parametrize("hours", ["", "0", "-1", "25", "for good"])
def test_a_ban_without_a_known_duration_is_not_made(boss: Operator, hours: str) -> None:
    alice = a_player("alice")
    assert boss.act(PLAYERS, "alice", "ban", hours=hours).status_code == 422
    authenticate(alice)


def test_a_change_without_a_reason_is_not_made(boss: Operator) -> None:
    alice = a_player("alice")
    for reason in ("", "   ", "\n\t"):
        assert boss.act(PLAYERS, "alice", "ban", hours="24", reason=reason).status_code == 422
    authenticate(alice)
    assert admin_log() == []


def test_a_reason_cannot_forge_a_line_of_the_log(boss: Operator) -> None:
    a_player("alice")
    boss.act(PLAYERS, "alice", "unban", reason="ok\r\nboss deleted everything")
    assert admin_log() == [("boss", "alice", "Ban lifted. Reason: ok boss deleted everything")]


def test_sign_out_everywhere_ends_sessions_without_a_ban(boss: Operator) -> None:
    alice = a_player("alice")
    boss.act(PLAYERS, "alice", "sign-out")
    with pytest.raises(NotAuthenticated):
        authenticate(alice)
    authenticate(logged_in("alice"))


def test_a_rename_logs_both_names_and_keeps_the_rules(boss: Operator) -> None:
    alice = a_player("alice")
    boss.act(PLAYERS, "alice", "rename", display_name="Queen Alice")
    assert alice.user.display_name == "Queen Alice"
    assert "from “Alice” to “Queen Alice”" in admin_log()[0][2]
    refused = boss.act(PLAYERS, "alice", "rename", display_name="\u200b")
    assert refused.status_code == 422
    assert alice.user.display_name == "Queen Alice"


def test_names_are_shown_as_text(boss: Operator) -> None:
    alice = a_player("alice")
    boss.act(PLAYERS, "alice", "rename", display_name="<script>alert(1)</script>")
    game = a_game(logged_in("alice"))
    for page in (PLAYERS, ALICE, f"/admin/matches/game/{game.game_id}/change/"):
        assert "<script>alert" not in boss.page(page)
    assert alice.user.display_name == "<script>alert(1)</script>"


def test_reset_stats_leaves_a_table_that_adds_up(boss: Operator) -> None:
    alice, bob = a_player("alice"), a_player("bob")
    game = a_finished_game(alice, bob)
    response = boss.act(PLAYERS, "alice", "reset-stats", typed_id="alice")
    assert response.status_code == 302
    assert (alice.user.wins, alice.user.score, alice.user.coins) == (0, 0, 0)
    assert "wins 1, kills 1" in admin_log()[0][2]
    a_finished_game(alice, bob)
    assert alice.user.wins == 1
    boss.act(PLAYERS, "alice", "reset-stats", typed_id="alice")
    assert alice.user.reset_wins == 2
    assert check.check_game(game.game_id, pause=lambda seconds: None).broken == []


def test_what_cannot_be_taken_back_asks_for_the_name(boss: Operator) -> None:
    alice = a_player("alice")
    for action in ("reset-stats", "make-referee", "delete"):
        for typed in ("", "bob", "alice2"):
            assert boss.act(PLAYERS, "alice", action, typed_id=typed).status_code == 422
    assert alice.user.role == "player"


def test_referees_are_appointed_and_dismissed(boss: Operator) -> None:
    alice = a_player("alice")
    boss.act(PLAYERS, "alice", "make-referee", typed_id="alice")
    assert sessions.authenticate(alice.tokens.access_token, now=datetime.now(UTC)).role == "referee"
    boss.act(PLAYERS, "alice", "dismiss-referee")
    assert alice.user.role == "player"


def test_an_export_holds_everything_but_secrets(boss: Operator) -> None:
    alice, bob = a_player("alice"), a_player("bob")
    finished = a_finished_game(alice, bob)
    current = a_game(alice)
    response = boss.act(PLAYERS, "alice", "export")
    assert response["Content-Disposition"] == 'attachment; filename="alice.json"'
    body = json.loads(response.content)
    assert body["profile"]["username"] == "alice"
    assert body["profile"]["wins"] == 1
    assert {game["game_id"] for game in body["games"]} == {finished.game_id, current.game_id}
    assert len(body["sessions"]) == 1
    text = response.content.decode()
    assert "hash" not in text
    assert Session.all_of("alice")[0].token_hash not in text
    assert admin_log()[0][2].startswith("Exported all data.")


def test_deleting_a_player_leaves_no_seat_role_or_session_behind(boss: Operator) -> None:
    """D-02: she hosts one lobby, and played in a finished game."""
    alice, bob = a_player("alice"), a_player("bob")
    finished = a_finished_game(alice, bob)
    game = a_game(alice, bob)
    given: list[hints.Hint] = []
    stop = hints.listen(given.append)
    response = boss.act(PLAYERS, "alice", "delete", typed_id="alice")
    stop()
    assert response["Location"] == PLAYERS
    left = stored(game)
    assert (left.host, left.player_count, left.status) == ("bob", 1, "OPEN")
    assert User.by_username("alice", consistent=True) is None
    with pytest.raises(NotAuthenticated):
        authenticate(alice)
    assert hints.SessionsChanged("alice") in given
    assert hints.GameChanged(game.game_id, game.map) in given
    for game_id in (finished.game_id, game.game_id):
        assert check.check_game(game_id, pause=lambda seconds: None).broken == []
    assert admin_log()[0][:2] == ("boss", "alice")
    assert "There is no player" in boss.page(PLAYERS, q="alice")


def test_deleting_the_last_player_cancels_his_lobby_and_a_running_game_goes_on(
    boss: Operator,
) -> None:
    alice, bob, carol = a_player("alice"), a_player("bob"), a_player("carol")
    lonely = a_game(alice)
    boss.act(PLAYERS, "alice", "delete", typed_id="alice")
    assert stored(lonely).status == CANCELLED
    running = a_game(bob, carol, status=STARTED)
    boss.act(PLAYERS, "bob", "delete", typed_id="bob")
    assert stored(running).status == FINISHED
    assert stored(running).winner == "carol"
    assert lobby.existing_game(running.game_id).alive_count == 1


def test_a_second_operator_who_deletes_the_same_player_gets_a_clear_answer(
    boss: Operator,
) -> None:
    a_player("alice")
    other = an_operator("other", is_superuser=True)
    assert other.get(f"{PLAYERS}alice/action/delete/").status_code == 200
    boss.act(PLAYERS, "alice", "delete", typed_id="alice")
    response = other.act(PLAYERS, "alice", "delete", typed_id="alice")
    assert response.status_code == 404
    assert "no such player" in response.content.decode()


@pytest.mark.parametrize("shards", [1, 4])
def test_pages_of_the_list_miss_nobody_and_show_nobody_twice(
    boss: Operator, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    monkeypatch.setattr(settings, "LISTING_SHARDS", shards)
    monkeypatch.setattr("gameserver.table_admin.pages.PAGE_SIZE", 7)
    names = [f"player-{number:02d}" for number in range(30)]
    for number, name in enumerate(names):
        player = a_player(name)
        User.update_one(player.user.change([User.score.set(number % 3)]))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        with capacity.measure() as meter:
            response = boss.get(PLAYERS, **({"after": cursor} if cursor else {}))
        assert meter.round_trips == shards
        seen += [link.split(">")[1].split("<")[0] for link, _ in response.context_data["rows"]]
        cursor = response.context_data["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == names


@pytest.mark.parametrize("shards", [1, 4])
def test_the_newest_players_come_first_when_asked_for(
    boss: Operator, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    monkeypatch.setattr(settings, "LISTING_SHARDS", shards)
    monkeypatch.setattr("gameserver.table_admin.pages.PAGE_SIZE", 7)
    names = [f"player-{number:02d}" for number in range(15)]
    for number, name in enumerate(names):
        a_player(name, now=NOW + timedelta(seconds=number))
    accounts.rename("player-14", "Still the newest")
    seen: list[str] = []
    params = {"order": "newest"}
    while True:
        with capacity.measure() as meter:
            response = boss.get(PLAYERS, **params)
        assert meter.round_trips == shards + 1
        rows = response.context_data["rows"]
        seen += [link.split(">")[1].split("<")[0] for link, _ in rows]
        if response.context_data["next_cursor"] is None:
            break
        params["after"] = response.context_data["next_cursor"]
    assert seen == names[::-1]
    assert boss.get(PLAYERS, order="score", after=params["after"]).status_code == 400


def test_a_forged_position_is_refused(boss: Operator) -> None:
    assert boss.get(PLAYERS, after="forged").status_code == 400
