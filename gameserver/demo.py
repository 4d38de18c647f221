"""A few guests and games, so that a new server has something to show."""

from itertools import pairwise

from django.utils import timezone

from gameserver.auth import Identity
from gameserver.errors import AlreadyInGame
from matches.services import lobby, play
from matches.services.lobby import GameOptions
from players.services import accounts, sessions

# Map of each open game, and who sits in it; the first is its host.
OPEN_GAMES = {
    "green-grasslands": ("Ada", "Ben", "Cleo"),
    "juicy-jungle": ("Dora", "Emil"),
    "open-ocean": ("Finn",),
}
# The last one wins; each eliminates the one before.
FINISHED_GAME = ("urban-underground", ("Gina", "Hugo", "Ida"))


def create_demo_data() -> None:
    """Create the demo guests and their games; a repeated call completes what is missing."""
    for game_map, names in OPEN_GAMES.items():
        _open_game(game_map, [_guest(name) for name in names])
    game_map, names = FINISHED_GAME
    players = [_guest(name) for name in names]
    if accounts.profile(players[-1].username).games_played == 0:
        _play(game_map, players)


def _guest(name: str) -> Identity:
    now = timezone.now()
    user, tokens, _ = accounts.guest_login(f"demo-device-{name}", now=now)
    if user.display_name != name:
        accounts.rename(user.username, name)
    return sessions.authenticate(tokens.access_token, now=now)


def _open_game(game_map: str, players: list[Identity]) -> str:
    host, *others = players
    try:
        game = lobby.create_game(host, GameOptions(map=game_map), now=timezone.now())
        game_id = game.game_id
    except AlreadyInGame as seated:
        game_id = str(seated.extra["game_id"])
    for player in others:
        lobby.join_game(player, game_id, now=timezone.now())
    return game_id


def _play(game_map: str, players: list[Identity]) -> None:
    game_id = _open_game(game_map, players)
    lobby.start_game(players[0].username, game_id, now=timezone.now())
    for victim, killer in pairwise(players):
        play.take_out(game_id, victim.username, killer.username, now=timezone.now())
