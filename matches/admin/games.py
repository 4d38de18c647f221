"""Games: listed by state and map, found by id, ended, repaired."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.html import format_html

from gameserver.errors import GameNotFound
from gameserver.table_admin import (
    Description,
    Filter,
    ItemAction,
    Listing,
    Panel,
    ReasonForm,
    TableAdmin,
    link,
)
from matches import rules
from matches.models import OPEN, STARTED, Game, UserGameMapping
from matches.services import check, find, lobby, operators

STATES = {
    "OPEN": "Open",
    "FULL": "Full, not started",
    "PRIVATE": "Private, not started",
    "STARTED": "Started",
}


class KickForm(ReasonForm):
    username = forms.CharField(max_length=20)


def _cancel(game_id: str, data: Mapping[str, Any], now: datetime) -> str:
    lobby.cancel_game(None, game_id, now=now)
    return "Lobby cancelled."


def _end(game_id: str, data: Mapping[str, Any], now: datetime) -> str:
    operators.end_without_winner(game_id, now=now)
    return "Game ended without a winner."


def _kick(game_id: str, data: Mapping[str, Any], now: datetime) -> str:
    operators.remove_player(game_id, data["username"], now=now)
    return f"Took {data['username']} out of the game."


def _relist(game_id: str, data: Mapping[str, Any], now: datetime) -> str:
    before, after = operators.relist(game_id)
    if before == after:
        return f"Listing written anew: {after or 'none, the game is over'}."
    return f"Listing corrected from {before or 'none'} to {after or 'none'}."


class GameAdmin(TableAdmin):
    """Games. The list is of current ones, since only they are in the listing index."""

    columns = ("Game", "Map", "Host", "Players", "Alive", "Created", "Started", "Version")
    filters = (
        Filter("state", "State", STATES),
        Filter("map", "Map", {"": "All maps", **rules.MAPS}),
    )
    search_label = "Game id"
    list_note = (
        "Current games, oldest first. A game that is over is found by its id, or by its players."
    )
    item_actions = (
        ItemAction(
            "cancel",
            "Cancel",
            "end_game",
            _cancel,
            "Closes the lobby; its players are free to join others.",
        ),
        ItemAction(
            "end",
            "End without winner",
            "end_game",
            _end,
            "Ends the running game now. Who is still in it gets no result and no reward.",
            asks_for_id=True,
        ),
        ItemAction(
            "kick",
            "Take a player out",
            "kick_from_game",
            _kick,
            "Frees a lobby's seat; in a running game the player is eliminated without a killer.",
            KickForm,
        ),
        ItemAction(
            "relist",
            "Requeue listing",
            "change_game",
            _relist,
            "Writes the game's entry in the list of current games anew, as its state wants it.",
        ),
    )

    def is_id(self, text: str) -> bool:
        return rules.GAME_ID.fullmatch(text) is not None

    def list_page(self, chosen: Mapping[str, str], cursor: str | None, limit: int) -> Listing:
        listed = find.open_games(
            chosen["map"] or None, limit=limit, cursor=cursor, state=chosen["state"]
        )
        rows = [
            (
                game.game_id,
                (
                    rules.MAPS.get(game.map, game.map),
                    link("players_player", game.host),
                    f"{game.player_count} / {game.max_players}",
                    game.alive_count,
                    game.created_at,
                    game.started_at,
                    game.version,
                ),
            )
            for game in listed.games
        ]
        return Listing(rows, listed.next_cursor)

    def find(self, text: str) -> str | None:
        return text if self.is_id(text) and Game.by_id(text) else None

    def describe(self, request: HttpRequest, object_id: str) -> Description:
        game, roster = Game.with_roster(object_id, consistent=True)
        if game is None:
            raise GameNotFound
        is_current = game.status in {OPEN, STARTED}
        facts: list[tuple[str, object]] = [
            ("Game", game.game_id),
            ("Map", rules.MAPS.get(game.map, game.map)),
            ("Status", game.status),
            ("Version", game.version),
            ("Players", f"{game.player_count} / {game.max_players}"),
            ("Needs", f"{game.min_players} to start"),
            ("Alive", game.alive_count),
            ("Host", link("players_player", game.host)),
            ("Winner", link("players_player", game.winner) if game.winner else None),
            ("Private", game.is_private),
            ("Starts when full", game.auto_start),
            ("Imported", bool(game.is_imported)),
            ("Created", game.created_at),
            ("Started", game.started_at),
            ("Ended", game.ended_at),
            ("Listed under", game.listing),
        ]
        actions = {"relist"}
        if game.status == OPEN:
            actions |= {"cancel", "kick"}
        if game.status == STARTED:
            actions |= {"end", "kick"}
        may_kick = is_current and request.user.has_perm("matches.kick_from_game")
        panels = [self._roster(game, roster, may_kick=may_kick)]
        is_check = "check" in request.GET
        if is_check:
            panels.insert(0, _checked(check.check_game(object_id)))
        return Description(
            game.game_id,
            facts,
            panels,
            sorted(actions),
            links=[("Check", "?check=1")],
            is_live=is_current and not is_check,
        )

    def _roster(self, game: Game, roster: Sequence[UserGameMapping], *, may_kick: bool) -> Panel:
        kick_url = self.url("action", game.game_id, "kick")
        rows = [
            (
                link("players_player", seat.username),
                seat.display_name,
                seat.joined_at,
                seat.is_alive,
                seat.kills,
                seat.placement,
                link("players_player", seat.eliminated_by) if seat.eliminated_by else None,
                seat.is_settled,
                format_html('<a href="{}?username={}">Take out</a>', kick_url, seat.username)
                if may_kick and seat.is_alive
                else " ",
            )
            for seat in sorted(roster, key=lambda seat: (int(seat.placement or 0), seat.joined_at))
        ]
        columns = (
            "Username",
            "Display name",
            "Joined",
            "Alive",
            "Kills",
            "Placement",
            "Eliminated by",
            "In stats",
            "",
        )
        return Panel("Players", columns, rows)


def _checked(report: check.Report) -> Panel:
    if report.broken:
        return Panel("Check", ("What is broken",), [(line,) for line in report.broken])
    note = f"Looked at the game and {report.players} players: nothing is broken."
    return Panel("Check", (), (), note=note)
