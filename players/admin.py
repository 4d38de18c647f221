"""Operators' pages on players. `matches.admin` adds what concerns their games."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from gameserver.errors import ValidationFailed
from gameserver.table_admin import (
    Description,
    Filter,
    ItemAction,
    Listing,
    Panel,
    ReasonForm,
    TableAdmin,
)
from players import rules
from players.admin_models import Player
from players.models import Session, User
from players.services import accounts, operators, sessions

# Far enough to be for good, near enough for every date library.
FOR_GOOD = datetime(9999, 12, 31, tzinfo=UTC)
DURATIONS = {"1": "1 hour", "24": "1 day", "168": "1 week", "720": "30 days", "forever": "for good"}


class BanForm(ReasonForm):
    hours = forms.ChoiceField(choices=list(DURATIONS.items()), initial="24", label="Duration")


class RenameForm(ReasonForm):
    display_name = forms.CharField(max_length=rules.DISPLAY_NAME_LENGTH)


def _ban(username: str, data: Mapping[str, Any], now: datetime) -> str:
    is_for_good = data["hours"] == "forever"
    until = FOR_GOOD if is_for_good else now + timedelta(hours=int(data["hours"]))
    accounts.ban(username, until=until, reason=data["reason"])
    return f"Banned {DURATIONS[data['hours']]}, sessions ended."


def _unban(username: str, data: Mapping[str, Any], now: datetime) -> str:
    accounts.unban(username)
    return "Ban lifted."


def _sign_out(username: str, data: Mapping[str, Any], now: datetime) -> str:
    sessions.log_out_everywhere(accounts.profile(username).username)
    return "Signed out everywhere."


def _rename(username: str, data: Mapping[str, Any], now: datetime) -> str:
    before = accounts.profile(username).display_name
    after = accounts.rename(username, data["display_name"]).display_name
    return f"Renamed from “{before}” to “{after}”."


def _reset_stats(username: str, data: Mapping[str, Any], now: datetime) -> str:
    before = accounts.profile(username)
    operators.reset_stats(username)
    stats = ", ".join(f"{name} {getattr(before, name)}" for name in User.STATS)
    return f"Stats set to 0 (before: {stats})."


def _make_referee(username: str, data: Mapping[str, Any], now: datetime) -> str:
    accounts.make_referee(username)
    return "Made a referee."


def _dismiss_referee(username: str, data: Mapping[str, Any], now: datetime) -> str:
    accounts.dismiss_referee(username)
    return "No longer a referee."


class PlayerAdmin(TableAdmin):
    """Accounts: found by name, listed by score."""

    columns = (
        "Username",
        "Display name",
        "Score",
        "Wins",
        "Kills",
        "Games",
        "Guest",
        "Signed up",
    )
    search_label = "Username"
    filters = (Filter("order", "Order", {"score": "Best first", "newest": "Newest first"}),)
    item_actions: Sequence[ItemAction] = (
        ItemAction(
            "ban",
            "Ban",
            "ban_player",
            _ban,
            "All sessions end now: tokens are refused, sockets are closed.",
            BanForm,
        ),
        ItemAction("unban", "Lift ban", "ban_player", _unban, "The player may sign in again."),
        ItemAction(
            "sign-out",
            "Sign out everywhere",
            "ban_player",
            _sign_out,
            "All sessions end now; the player can sign in again.",
        ),
        ItemAction(
            "rename",
            "Rename",
            "change_player",
            _rename,
            "Changes the display name. Seats taken before keep the name they had.",
            RenameForm,
        ),
        ItemAction(
            "reset-stats",
            "Reset stats",
            "change_player",
            _reset_stats,
            "Sets stats, coins and score to 0. Results of finished games stay.",
            asks_for_id=True,
        ),
        ItemAction(
            "make-referee",
            "Make referee",
            "appoint_referee",
            _make_referee,
            "A referee may report eliminations in every game: for trusted game servers only.",
            asks_for_id=True,
        ),
        ItemAction(
            "dismiss-referee",
            "Dismiss referee",
            "appoint_referee",
            _dismiss_referee,
            "The account may only report its own eliminations afterwards.",
        ),
    )

    def is_id(self, text: str) -> bool:
        return rules.USERNAME.fullmatch(text) is not None

    def list_page(self, chosen: Mapping[str, str], cursor: str | None, limit: int) -> Listing:
        is_newest = chosen["order"] == "newest"
        read = operators.list_newest if is_newest else operators.list_players
        players = read(limit=limit, cursor=cursor)
        rows = [
            (
                user.username,
                (
                    user.display_name,
                    user.score,
                    user.wins,
                    user.kills,
                    user.games_played,
                    user.is_guest,
                    # The leaderboard's index does not carry it.
                    user.created_at if is_newest else None,
                ),
            )
            for user in players.users
        ]
        return Listing(rows, players.next_cursor)

    def find(self, text: str) -> str | None:
        try:
            username = rules.canonical_username(text)
        except ValidationFailed:
            return None
        return username if User.by_username(username) else None

    def describe(self, request: HttpRequest, object_id: str) -> Description:
        return self.describe_user(accounts.profile(object_id))

    def describe_user(self, user: User) -> Description:
        """Show an account and its sessions."""
        is_banned = user.banned_until is not None and user.banned_until > datetime.now(UTC)
        facts: list[tuple[str, object]] = [
            ("Username", user.username),
            ("Display name", user.display_name),
            ("Role", user.role),
            ("Guest", user.is_guest),
            ("Signed up", user.created_at),
            ("Banned until", _ban_end(user) if is_banned else None),
            ("Ban's reason", user.ban_reason if is_banned else None),
            *((name.replace("_", " ").capitalize(), getattr(user, name)) for name in User.STATS),
        ]
        logins = Session.all_of(user.username)
        panel = Panel(
            "Sessions",
            ("Session", "Since", "Until"),
            [(f"{login.session_id[:6]}…", login.created_at, login.expires_at) for login in logins],
        )
        actions = {action.name for action in self.item_actions}
        actions -= {"ban"} if is_banned else {"unban"}
        actions -= {"make-referee"} if user.role == "referee" else {"dismiss-referee"}
        return Description(user.username, facts, [panel], sorted(actions))


def _ban_end(user: User) -> object:
    return "for good" if user.banned_until == FOR_GOOD else user.banned_until


admin.site.register(Player, PlayerAdmin)
