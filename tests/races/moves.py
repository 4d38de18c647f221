"""The moves that race: each is one call of a service, as of now."""

from django.utils import timezone

from matches.models import Game
from matches.rules import Elimination
from matches.services import leaving, lobby, play
from tests.builders import APlayer, players


def newcomers(number: int, name: str = "player") -> list[APlayer]:
    """Store so many accounts, numbered; `name` tells tests apart that share a table."""
    return players(*[f"{name}-{each:02d}" for each in range(number)])


def join(player: APlayer, game: Game) -> Game:
    return lobby.join_game(player.identity, game.game_id, now=timezone.now())


def leave(player: APlayer, game: Game) -> Game:
    return leaving.leave_game(player.username, game.game_id, now=timezone.now())


def start(host: APlayer, game: Game) -> Game:
    return lobby.start_game(host.username, game.game_id, now=timezone.now())


def cancel(host: APlayer, game: Game) -> Game:
    return lobby.cancel_game(host.username, game.game_id, now=timezone.now())


def eliminate(killer: APlayer, victim: APlayer, game: Game) -> Elimination:
    """Let `killer` report that he eliminated `victim`."""
    return play.eliminate_player(
        killer.identity, game.game_id, victim.username, killer.username, now=timezone.now()
    )[1]
