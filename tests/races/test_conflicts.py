"""AWS cancels transactions that overlap, where the local engine lets them wait: a layer does it."""

import threading
from functools import partial

from botocore.awsrequest import AWSResponse
from django.utils import timezone
from prometheus_client import REGISTRY

from matches.models import Game
from matches.services import lobby
from matches.services.lobby import GameOptions
from tests.builders import MAP, a_game, stored
from tests.faults import kinds
from tests.faults.layer import Faults, Request
from tests.races.invariants import assert_sound
from tests.races.moves import join, newcomers
from tests.races.threads import at_once, codes

TRANSACTION = "TransactWriteItems"


class Overlaps:
    """Cancels a transaction that has an item in common with one under way.

    Source: DynamoDB developer guide, "Transaction conflict handling in DynamoDB".
    """

    def __init__(self) -> None:
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> AWSResponse:
        writes = [next(iter(write.values())) for write in request.body["TransactItems"]]
        keys = {str(write.get("Key") or _key_of(write["Item"])) for write in writes}
        with self._lock:
            if keys & self._under_way:
                return kinds.conflict(request)
            self._under_way |= keys
        try:
            return request.send()
        finally:
            with self._lock:
                self._under_way -= keys


def test_fifty_players_who_join_fifty_games_at_once_never_meet(faults: Faults) -> None:
    """T-04: nothing that all games share is in the transaction."""
    players = newcomers(100)
    games = [a_game(host) for host in players[:50]]
    faults.order(Overlaps(), on=TRANSACTION, times=None)
    before = _conflicts()
    joins = [partial(join, player, game) for player, game in zip(players[50:], games, strict=True)]
    assert set(codes(at_once(*joins))) == {"ok"}
    assert _conflicts() == before
    assert_sound(games=50)


def test_players_who_join_one_game_at_once_meet_and_are_all_seated(faults: Faults) -> None:
    """T-01, T-04: the same layer shows conflicts where there are some, and the retries end them."""
    host, *others = newcomers(9)
    game = a_game(host)
    faults.order(Overlaps(), on=TRANSACTION, times=None)
    before = _conflicts()
    assert set(codes(at_once(*[partial(join, player, game) for player in others]))) == {"ok"}
    assert _conflicts() > before
    assert stored(game).player_count == 9
    assert_sound(games=1)


def test_a_create_that_is_done_late_finds_that_its_repeat_was_faster(faults: Faults) -> None:
    """L-09: the first attempt hangs on its way while the client, tired of waiting, repeats it."""
    (host,) = newcomers(1)
    has_arrived, may_go_on = threading.Event(), threading.Event()

    def hang(request: Request) -> None:
        has_arrived.set()
        assert may_go_on.wait(10)

    faults.order(hang, on=TRANSACTION)
    create = partial(
        lobby.create_game,
        host.identity,
        GameOptions(MAP),
        now=timezone.now(),
        idempotency_key="the same",
    )

    def repeat() -> Game:
        assert has_arrived.wait(10)
        try:
            return create()
        finally:
            may_go_on.set()

    late, repeated = at_once(create, repeat)
    assert isinstance(late, Game)
    assert isinstance(repeated, Game)
    assert late.game_id == repeated.game_id
    assert_sound(games=1)


def _key_of(item: dict[str, object]) -> dict[str, object]:
    return {"PK": item["PK"], "SK": item["SK"]}


def _conflicts() -> float:
    labels = {"operation": TRANSACTION, "cause": "TransactionConflict"}
    return REGISTRY.get_sample_value("dynamodb_retries_total", labels) or 0.0
