"""Whole lives of games, made up by Hypothesis, through the services and through a plain model."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gameserver.auth import Identity
from gameserver.errors import GameServerError
from gameserver.models import Item
from gameserver.schema import create_table
from gameserver.table import user_key
from matches import checks
from matches.models import Game, UserGameMapping
from matches.services import leaving, lobby, play
from matches.services.lobby import GameOptions
from players.models import SCORE_PER_KILL, SCORE_PER_WIN, Credential, User
from tests.builders import MAP, NOW
from tests.matches.model import Model, ModelGame, ModelPlayer, ModelSeat

NAMES = ["ann", "bob", "cat", "dan", "eve"]
MOST_GAMES = 4
STATES = ("OPEN", "FULL", "PRIVATE", "STARTED")

names = st.sampled_from(NAMES)
# Games are picked by their distance from the newest, so that lives go on.
recent = st.sampled_from([0, 0, 0, 1, 1, 2, 3])


def at(clock: int) -> datetime:
    return NOW + timedelta(seconds=clock)


class GameLife(RuleBasedStateMachine):
    """Do one thing after another in both worlds, and compare all they hold."""

    @initialize()
    def begin(self) -> None:
        Item.delete_table()
        create_table()
        self.model = Model(NAMES)
        self.ids: list[str] = []
        self.last: Callable[[], None] | None = None
        self.identities = {}
        for name in NAMES:
            User.create_with_credential(
                User.new(name, name, now=NOW), Credential.new(name, "nothing matches")
            )
            self.identities[name] = Identity(name, name, "player", "session")

    def both(self, service: Callable[..., Any], *args: Any, model: Callable[[], str | None]) -> Any:
        """Do a thing in both worlds; the outcome must be the same."""
        self.last = partial(self._do, service, *args, model=model)
        return self._do(service, *args, model=model)

    def _do(self, service: Callable[..., Any], *args: Any, model: Callable[[], str | None]) -> Any:
        self.model.clock += 1
        expected, code, answer = model(), None, None
        try:
            answer = service(*args, now=at(self.model.clock))
        except GameServerError as error:
            code = error.code
        assert code == expected
        return answer

    def pick(self, distance: int) -> tuple[int, str]:
        number = max(len(self.ids) - 1 - distance, 0)
        return number, self.ids[number]

    def has_games(self) -> bool:
        return bool(self.ids)

    @precondition(lambda self: len(self.ids) < MOST_GAMES and len(self.with_status("OPEN")) < 2)
    @rule(
        host=names,
        most=st.integers(2, 5),
        least=st.integers(2, 3),
        private=st.sampled_from([False, False, True]),
        auto=st.sampled_from([False, False, True]),
    )
    def create(self, host: str, most: int, least: int, *, private: bool, auto: bool) -> None:
        least = min(most, least)
        game = self._do(
            lobby.create_game,
            self.identities[host],
            GameOptions(MAP, most, least, private, auto),
            model=lambda: self.model.create(host, most, least, private=private, auto=auto),
        )
        if game is not None:
            self.ids.append(game.game_id)

    @precondition(has_games)
    @rule(name=names, distance=recent, knows_code=st.sampled_from([True, True, False]))
    def join(self, name: str, distance: int, *, knows_code: bool) -> None:
        number, game_id = self.pick(distance)
        code = lobby.existing_game(game_id).join_code if knows_code else None
        self.both(
            partial(lobby.join_game, join_code=code),
            self.identities[name],
            game_id,
            model=lambda: self.model.join(name, number, knows_code=knows_code),
        )

    @precondition(has_games)
    @rule(name=names, distance=recent)
    def leave(self, name: str, distance: int) -> None:
        number, game_id = self.pick(distance)
        self.both(leaving.leave_game, name, game_id, model=lambda: self.model.leave(name, number))

    @precondition(has_games)
    @rule(by=names, distance=recent, name=names)
    def kick(self, by: str, distance: int, name: str) -> None:
        number, game_id = self.pick(distance)
        self.both(
            leaving.kick_player, by, game_id, name, model=lambda: self.model.kick(by, number, name)
        )

    @precondition(has_games)
    @rule(by=names, distance=recent)
    def start(self, by: str, distance: int) -> None:
        number, game_id = self.pick(distance)
        self.both(lobby.start_game, by, game_id, model=lambda: self.model.start(by, number))

    @precondition(has_games)
    @rule(by=names, distance=recent)
    def cancel(self, by: str, distance: int) -> None:
        number, game_id = self.pick(distance)
        self.both(lobby.cancel_game, by, game_id, model=lambda: self.model.cancel(by, number))

    @precondition(has_games)
    @rule(killer=names, distance=recent, victim=names)
    def eliminate(self, killer: str, distance: int, victim: str) -> None:
        number, game_id = self.pick(distance)
        self.both(
            play.eliminate_player,
            self.identities[killer],
            game_id,
            victim,
            killer,
            model=lambda: self.model.eliminate(killer, number, victim),
        )

    # What leads on, more often than chance would have it.

    @precondition(lambda self: self.with_status("OPEN"))
    @rule(data=st.data())
    def fill_a_lobby(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.with_status("OPEN")), label="game")
        for name in NAMES:
            if not self.model.is_busy(name):
                self.join(name, len(self.ids) - 1 - number, knows_code=True)
                self.both_worlds_are_the_same()

    @precondition(lambda self: self.with_status("OPEN"))
    @rule(data=st.data())
    def let_a_host_leave(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.with_status("OPEN")), label="game")
        self.leave(self.model.games[number].host, len(self.ids) - 1 - number)

    @precondition(lambda self: self.with_status("OPEN"))
    @rule(data=st.data())
    def let_a_host_start(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.with_status("OPEN")), label="game")
        self.start(self.model.games[number].host, len(self.ids) - 1 - number)

    @precondition(lambda self: self.with_status("STARTED"))
    @rule(data=st.data())
    def eliminate_a_survivor(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.with_status("STARTED")), label="game")
        alive = self.model.games[number].alive
        victim, killer = data.draw(st.permutations(alive), label="victim, killer")[:2]
        self.eliminate(killer, len(self.ids) - 1 - number, victim)

    def with_status(self, status: str) -> list[int]:
        return [n for n, game in enumerate(self.model.games) if game.status == status]

    @precondition(lambda self: self.last is not None)
    @rule()
    def retry_the_last_thing(self) -> None:
        assert self.last is not None
        self.last()

    @invariant()
    def both_worlds_are_the_same(self) -> None:
        for number, game in enumerate(self.model.games):
            # A game that was over before the last step was compared then.
            if game.ended_at is None or game.ended_at == self.model.clock:
                self.compare_game(number)
        self.compare_players()
        for state in STATES:
            listed = [game.game_id for game in Game.listed(state, MAP, 0, limit=100).items]
            assert listed == [self.ids[number] for number in self.model.listed(state)]

    def teardown(self) -> None:
        for number in range(len(self.ids)):
            self.compare_game(number)

    def compare_game(self, number: int) -> None:
        game_id, expected = self.ids[number], self.model.games[number]
        game, roster = Game.with_roster(game_id, consistent=True)
        assert game is not None
        assert game_facts(game) == model_facts(expected)
        assert [(seat.username, seat_facts(seat)) for seat in roster] == list(
            expected.seats.items()
        )
        assert checks.broken_game(game_id, game, roster) == []

    def compare_players(self) -> None:
        users = Item.read_many([user_key(name) for name in NAMES], consistent=True)
        for user in users:
            assert isinstance(user, User)
            player = self.model.players[user.username]
            current = None if user.current_game is None else self.ids.index(user.current_game)
            counts = ("games_played", "wins", "kills", "deaths", "coins")
            assert player == ModelPlayer(current, *(int(getattr(user, name)) for name in counts))
            assert user.score == SCORE_PER_WIN * player.wins + SCORE_PER_KILL * player.kills
        assert len(users) == len(NAMES)


def seat_facts(seat: UserGameMapping) -> ModelSeat:
    return ModelSeat(
        round((seat.joined_at - NOW).total_seconds()),
        seat.is_alive,
        int(seat.kills or 0),
        None if seat.placement is None else int(seat.placement),
        seat.eliminated_by,
    )


def game_facts(game: Game) -> tuple[Any, ...]:
    return (
        *(game.status, game.host, game.winner, game.version, game.player_count, game.alive_count),
        *(game.started_at, game.ended_at),
    )


def model_facts(game: ModelGame) -> tuple[Any, ...]:
    return (
        *(game.status, game.host, game.winner, game.version, len(game.seats)),
        None if game.started_at is None else len(game.alive),
        *(None if clock is None else at(clock) for clock in (game.started_at, game.ended_at)),
    )


def test_every_life_of_a_game_follows_the_rules(table: None) -> None:
    run_state_machine_as_test(
        GameLife,
        settings=settings(
            max_examples=20, stateful_step_count=30, suppress_health_check=list(HealthCheck)
        ),
    )
