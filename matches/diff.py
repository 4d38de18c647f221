"""The difference between two states of a game as the events that lead from one to the other.

A view is a game as clients see it: `{"version", "game": {...}, "players": [{...}, ...], "away":
[username, ...]}`, plain JSON values. Clients keep one, and `apply` is what they do with each
`game.changed`; a change whose events would not lead to exactly the new state is not made: then a
new snapshot is sent.
"""

from collections.abc import Iterator
from typing import Any

View = dict[str, Any]
Event = dict[str, Any]
Player = dict[str, Any]


def change(old: View, new: View) -> View | None:
    """Return `{"from_version", "version", "game", "events"}`; None if events cannot tell it all.

    That is so when a version was lost (a restored table), or a deleted account's name went.
    """
    if new["version"] <= old["version"]:
        return None
    found = {
        "from_version": old["version"],
        "version": new["version"],
        "game": new["game"],
        "events": list(events(old, new)),
    }
    return found if apply(old, found) == new else None


def apply(view: View, changed: View) -> View:
    """Return the view after a change: the game is replaced, the events tell the players' story."""
    players = {player["username"]: player for player in view["players"]}
    away = set(view["away"])
    for event in changed["events"]:
        match event["type"]:
            case "player_joined":
                players[event["player"]["username"]] = event["player"]
            case "player_left":
                players.pop(event["username"], None)
                away.discard(event["username"])
            case "player_away":
                away.add(event["username"])
            case "player_back":
                away.discard(event["username"])
            case "player_eliminated":
                _eliminate(players, event)
                away.discard(event["username"])
            case "game_finished" | "game_cancelled":
                away.clear()
                if (winner := event.get("winner")) in players:
                    players[winner] = {**players[winner], "placement": 1}
    return {
        "version": changed["version"],
        "game": changed["game"],
        "players": sorted(players.values(), key=_seat_order),
        "away": sorted(away),
    }


def events(old: View, new: View) -> Iterator[Event]:
    """Tell what happened, in an order in which it can have happened."""
    before, after = old["game"], new["game"]
    was = {player["username"]: player for player in old["players"]}
    players = {player["username"]: player for player in new["players"]}
    stayed = {
        username
        for username, player in players.items()
        if username in was and was[username]["joined_at"] == player["joined_at"]
    }
    for username in was:
        if username not in stayed:
            yield {"type": "player_left", "username": username}
    for username, player in players.items():
        if username not in stayed:
            yield {"type": "player_joined", "player": _newly_seated(player)}
    if after["host"] != before["host"]:
        yield {"type": "host_changed", "host": after["host"]}
    if after["started_at"] != before["started_at"]:
        yield {"type": "game_started", "started_at": after["started_at"]}
    # A new seat begins present.
    yield from _drops_and_returns(stayed.intersection(old["away"]), new)
    yield from _eliminations(was, players)
    if after["status"] != before["status"]:
        if after["status"] == "FINISHED":
            yield {"type": "game_finished", "winner": after["winner"]}
        elif after["status"] == "CANCELLED":
            yield {"type": "game_cancelled"}


def _drops_and_returns(were_away: set[str], new: View) -> Iterator[Event]:
    """Tell who dropped, and who of those who still play is back."""
    if new["game"]["status"] in {"FINISHED", "CANCELLED"}:
        return
    for username in new["away"]:
        if username not in were_away:
            yield {"type": "player_away", "username": username}
    for player in new["players"]:
        username = player["username"]
        if player["is_alive"] and username in were_away and username not in new["away"]:
            yield {"type": "player_back", "username": username}


def _eliminations(was: dict[str, Player], players: dict[str, Player]) -> Iterator[Event]:
    out = [
        player
        for username, player in players.items()
        if not player["is_alive"] and (username not in was or was[username]["is_alive"])
    ]
    # The placement is how many were alive, so the first to go has the highest.
    for player in sorted(out, key=lambda one: -(one["placement"] or 0)):
        yield {
            "type": "player_eliminated",
            "username": player["username"],
            "placement": player["placement"],
            "eliminated_by": player["eliminated_by"],
        }


def _eliminate(players: dict[str, Player], event: Event) -> None:
    victim = players.get(event["username"])
    killer = players.get(event["eliminated_by"] or "")
    if victim is not None:
        players[event["username"]] = {
            **victim,
            "is_alive": False,
            "placement": event["placement"],
            "eliminated_by": event["eliminated_by"],
        }
    if killer is not None and killer["kills"] is not None:
        players[killer["username"]] = {**killer, "kills": killer["kills"] + 1}


def _newly_seated(player: Player) -> Player:
    """Return a player as he was when he sat down; what came later is told by later events."""
    return {**player, "is_alive": True, "kills": 0, "placement": None, "eliminated_by": None}


def _seat_order(player: Player) -> tuple[str, str]:
    return player["joined_at"], player["username"]
