"""The rules of the game once more, in the plainest Python: what the services are compared with.

Every action returns the code of its refusal, or None. Nothing here is taken from the product.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

REWARD = 100


@dataclass
class ModelSeat:
    joined_at: int
    is_alive: bool = True
    kills: int = 0
    placement: int | None = None
    eliminated_by: str | None = None


@dataclass
class ModelGame:
    host: str
    max_players: int
    min_players: int
    is_private: bool
    auto_start: bool
    status: str = "OPEN"
    version: int = 1
    # Longest-seated first.
    seats: dict[str, ModelSeat] = field(default_factory=dict)
    winner: str | None = None
    started_at: int | None = None
    ended_at: int | None = None

    @property
    def alive(self) -> list[str]:
        return [name for name, seat in self.seats.items() if seat.is_alive]

    @property
    def listed_as(self) -> str | None:
        if self.status == "OPEN" and self.is_private:
            return "PRIVATE"
        if self.status == "OPEN":
            return "FULL" if len(self.seats) == self.max_players else "OPEN"
        return "STARTED" if self.status == "STARTED" else None


@dataclass
class ModelPlayer:
    current_game: int | None = None
    games_played: int = 0
    wins: int = 0
    kills: int = 0
    deaths: int = 0
    coins: int = 0


class Model:
    """All players and games; `clock` counts the actions, in seconds."""

    def __init__(self, names: list[str]) -> None:
        self.players = {name: ModelPlayer() for name in names}
        self.games: list[ModelGame] = []
        self.clock = 0

    def is_busy(self, name: str) -> bool:
        current = self.players[name].current_game
        if current is None:
            return False
        game = self.games[current]
        return game.status in {"OPEN", "STARTED"} and name in game.alive

    def create(self, host: str, most: int, least: int, *, private: bool, auto: bool) -> str | None:
        if self.is_busy(host):
            return "already_in_game"
        game = ModelGame(host, most, least, private, auto)
        game.seats[host] = ModelSeat(self.clock)
        self.games.append(game)
        self.players[host].current_game = len(self.games) - 1
        return None

    def join(self, name: str, number: int, *, knows_code: bool) -> str | None:
        game = self.games[number]
        if name in game.seats:
            is_in = game.status in {"OPEN", "STARTED"} and game.seats[name].is_alive
            return None if is_in else "game_not_open"
        if game.status != "OPEN":
            return "game_not_open"
        if game.is_private and not knows_code:
            return "wrong_join_code"
        if len(game.seats) == game.max_players:
            return "game_full"
        if self.is_busy(name):
            return "already_in_game"
        game.seats[name] = ModelSeat(self.clock)
        game.version += 1
        self.players[name].current_game = number
        if game.auto_start and len(game.seats) == game.max_players:
            game.status, game.started_at = "STARTED", self.clock
        return None

    def leave(self, name: str, number: int) -> str | None:
        game = self.games[number]
        if name not in game.seats:
            return "not_in_game"
        if game.status == "STARTED":
            if game.seats[name].is_alive:
                self._take_out(game, name, None)
            return None
        if game.status != "OPEN":
            return "game_not_open"
        self._free(game, name)
        return None

    def kick(self, by: str, number: int, name: str) -> str | None:
        game = self.games[number]
        if by != game.host:
            return "not_host"
        if by == name:
            return "validation_error"
        if game.status != "OPEN":
            return "game_not_open"
        if name not in game.seats:
            return "not_in_game"
        self._free(game, name)
        return None

    def start(self, by: str, number: int) -> str | None:
        game = self.games[number]
        if by != game.host:
            return "not_host"
        if game.status == "STARTED":
            return None
        if game.status != "OPEN":
            return "game_not_open"
        if len(game.seats) < game.min_players:
            return "not_enough_players"
        game.status, game.started_at = "STARTED", self.clock
        game.version += 1
        return None

    def cancel(self, by: str, number: int) -> str | None:
        game = self.games[number]
        if by != game.host:
            return "not_host"
        if game.status == "CANCELLED":
            return None
        if game.status != "OPEN":
            return "game_not_open"
        self._end(game, "CANCELLED")
        game.version += 1
        return None

    def eliminate(self, killer: str, number: int, victim: str) -> str | None:
        game = self.games[number]
        if game.status != "STARTED":
            return "game_not_open"
        if killer == victim:
            return "validation_error"
        for name in (victim, killer):
            if name not in game.seats:
                return "not_in_game"
            if not game.seats[name].is_alive:
                return "not_alive"
        self._take_out(game, victim, killer)
        return None

    def _free(self, game: ModelGame, name: str) -> None:
        del game.seats[name]
        game.version += 1
        self.players[name].current_game = None
        if not game.seats:
            self._end(game, "CANCELLED")
        elif game.host == name:
            game.host = next(iter(game.seats))

    def _take_out(self, game: ModelGame, name: str, killer: str | None) -> None:
        seat = game.seats[name]
        seat.placement, seat.eliminated_by = len(game.alive), killer
        seat.is_alive = False
        game.version += 1
        if killer is not None:
            game.seats[killer].kills += 1
        self._settle(name, seat)
        if len(game.alive) == 1:
            (game.winner,) = game.alive
            last = game.seats[game.winner]
            last.placement = 1
            self._settle(game.winner, last)
            self._end(game, "FINISHED")

    def _settle(self, name: str, seat: ModelSeat) -> None:
        player, is_winner = self.players[name], seat.placement == 1
        player.current_game = None
        player.games_played += 1
        player.kills += seat.kills
        player.wins += is_winner
        player.deaths += not is_winner
        player.coins += REWARD * is_winner

    def _end(self, game: ModelGame, status: str) -> None:
        game.status, game.ended_at = status, self.clock

    def listed(self, state: str) -> Iterator[int]:
        """Numbers of the games in one listing, oldest first."""
        return (number for number, game in enumerate(self.games) if game.listed_as == state)
