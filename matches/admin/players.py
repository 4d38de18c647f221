"""The page on a player, with his games: where he sits, what he played, and how he goes."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from gameserver.table_admin import Description, Download, ItemAction, Panel, link
from matches.services import departure, find, operators
from players.admin import PlayerAdmin
from players.models import User

RECENT_GAMES = 20


def _export(username: str, data: Mapping[str, Any], now: datetime) -> Download:
    content = json.dumps(operators.export_player(username), indent=2, ensure_ascii=False)
    return Download(f"{username}.json", content, "Exported all data.")


def _delete(username: str, data: Mapping[str, Any], now: datetime) -> str:
    departure.delete_account(username, now=now)
    return f"Deleted {username}: seats left, history without the name, sessions ended."


class PlayingPlayerAdmin(PlayerAdmin):
    """Players as `players.admin` shows them, and their games."""

    item_actions = (
        *PlayerAdmin.item_actions,
        ItemAction(
            "export",
            "Export as JSON",
            "export_player",
            _export,
            "Gives a file with all that is stored about the player, without secrets.",
        ),
        ItemAction(
            "delete",
            "Delete",
            "delete_player",
            _delete,
            "Leaves every game, takes the name out of the history, deletes the account. For good.",
            asks_for_id=True,
            deletes=True,
        ),
    )

    def describe_user(self, user: User) -> Description:
        described = super().describe_user(user)
        current = departure.current_game(user)
        facts = [
            *described.facts,
            ("Current game", link("matches_game", current) if current else None),
        ]
        memberships, older = find.history(user.username, limit=RECENT_GAMES)
        games = Panel(
            "Games, newest first",
            ("Game", "Map", "Status", "Joined", "Kills", "Placement"),
            [
                (
                    link("matches_game", seat.game_id),
                    game.map if game else None,
                    game.status if game else None,
                    seat.joined_at,
                    seat.kills,
                    seat.placement,
                )
                for seat, game in ((each.seat, each.game) for each in memberships)
            ],
            note=f"The latest {RECENT_GAMES}; the export has them all." if older else "",
        )
        return replace(described, facts=facts, panels=[games, *described.panels])
