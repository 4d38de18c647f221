"""Lists over a big table: D-01 and O-02. What a page costs does not depend on what is stored."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings

from gameserver import capacity, dashboard
from gameserver.models import Item
from matches import rules
from matches.models import STARTED, Game
from players.models import User
from tests.admin.operators import DASHBOARD, GAMES, PLAYERS, Operator
from tests.builders import NOW

GAMES_STORED = 10_000
PLAYERS_STORED = 5_000
READS = {"Query", "GetItem", "BatchGetItem"}


@pytest.fixture
def big_table(table: None) -> None:
    """10,000 games, half of them open, and 5,000 players."""
    with Item.batch_write() as batch:
        for number in range(GAMES_STORED):
            batch.save(a_stored_game(number))
        for number in range(PLAYERS_STORED):
            user = User.new(f"player-{number:05d}", "Somebody", now=NOW)
            user.score = number
            batch.save(user)


def a_stored_game(number: int) -> Game:
    game = Game.new(
        f"game-{number:05d}",
        list(rules.MAPS)[number % len(rules.MAPS)],
        f"player-{number % PLAYERS_STORED:05d}",
        now=NOW + timedelta(seconds=number),
        max_players=50,
        min_players=2,
    )
    if number % 2:
        game.status, game.alive_count, game.started_at = STARTED, 1, NOW
        game.listing = game.listing_for(STARTED, 1)
    return game


def pages(operator: Operator, path: str, count: int, **params: str) -> Iterator[list[str]]:
    """Open pages one after the other; check that each is cheap, and give their ids."""
    cursor: str | None = None
    for _ in range(count):
        after = {"after": cursor} if cursor else {}
        with capacity.measure() as meter:
            response = operator.get(path, **params, **after)
        assert response.status_code == 200
        assert set(meter.operations) <= READS
        maps = 1 if params.get("map") or path == PLAYERS else len(rules.MAPS)
        assert meter.round_trips == maps * settings.LISTING_SHARDS
        # 50 entries of under 512 bytes from each list.
        assert meter.read_units + meter.index_read_units <= 4 * maps
        yield [str(link).split(">")[1].split("<")[0] for link, _ in response.context_data["rows"]]
        cursor = response.context_data["next_cursor"]
        if cursor is None:
            return


@pytest.mark.usefixtures("big_table")
def test_list_pages_of_a_big_table_cost_a_bounded_number_of_requests(boss: Operator) -> None:
    for state, first in (("OPEN", 0), ("STARTED", 1)):
        for shown, page in enumerate(pages(boss, GAMES, 5, state=state)):
            numbers = range(first + 100 * shown, first + 100 * (shown + 1), 2)
            assert page == [f"game-{number:05d}" for number in numbers]
    whole = [each for page in pages(boss, GAMES, 100, map="open-ocean") for each in page]
    assert len(whole) == len(set(whole)) == GAMES_STORED // 2 // len(rules.MAPS)

    best = [each for page in pages(boss, PLAYERS, 4) for each in page]
    highest = range(PLAYERS_STORED - 1, PLAYERS_STORED - 201, -1)
    assert best == [f"player-{number:05d}" for number in highest]

    with capacity.measure() as meter:
        assert boss.get(PLAYERS, order="newest").status_code == 200
    assert meter.operations == ["Query"] * settings.LISTING_SHARDS + ["BatchGetItem"]

    for path, found in ((GAMES, "game-04242"), (PLAYERS, "player-00042")):
        with capacity.measure() as meter:
            assert boss.get(path, q=found).status_code == 302
        assert meter.operations == ["GetItem"]

    dashboard.forget()
    with capacity.measure() as meter:
        figures = boss.get(DASHBOARD).json()
    assert set(meter.operations) <= READS
    assert meter.round_trips == 2 * len(rules.MAPS) * settings.LISTING_SHARDS + 2
    # Counting stops early, and says so.
    assert set(figures["games"]["OPEN"].values()) == {"100+"}


def test_the_numbers_of_a_small_table_are_exact(boss: Operator) -> None:
    dashboard.forget()
    with Item.batch_write() as batch:
        for number in range(15):
            batch.save(a_stored_game(number))
    games = boss.get(DASHBOARD).json()["games"]
    assert sum(int(count) for count in games["OPEN"].values()) == 8
    assert sum(int(count) for count in games["STARTED"].values()) == 7
