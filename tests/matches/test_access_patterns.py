"""What every access pattern may cost: figures by hand, so that a change of cost is a decision."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from gameserver import capacity
from gameserver.models import Item
from gameserver.schema import create_table
from matches import access_patterns
from matches.access_patterns import Cost
from matches.management.commands.access_patterns import BEGIN, END, replace_block
from tests.servers import ROOT


@dataclass(frozen=True)
class Expected:
    operation: str
    read_units: float
    write_units: float
    index_write_units: dict[str, float]


def read(operation: str, units: float) -> Expected:
    return Expected(operation, units, 0, {})


def write(operation: str, units: float, **index_units: float) -> Expected:
    return Expected(operation, 0, units, index_units)


GET, BATCH, QUERY = "GetItem", "BatchGetItem", "Query"
UPDATE, TRANSACT = "UpdateItem", "TransactWriteItems"

# One round trip each. Reads: 0.5 a 4 KB, twice that if strong. Writes: 1 a KB, twice that inside a
# transaction. Source: DynamoDB developer guide, "Read and write operations".
EXPECTED = {
    "create profile": write(TRANSACT, 4, LeaderboardIndex=1, GameListingIndex=1),
    "create guest": write(TRANSACT, 4, LeaderboardIndex=1, GameListingIndex=1),
    "update profile": write(UPDATE, 1, LeaderboardIndex=1),
    "change account": write(UPDATE, 1),
    "read profile": read(GET, 0.5),
    "authenticate": read(BATCH, 1),
    "upgrade guest": write(TRANSACT, 4, LeaderboardIndex=1),
    "leaderboard": read(QUERY, 0.5),
    "list players": read(QUERY, 0.5),
    "list newest players": read(QUERY, 0.5),
    "read profiles": read(BATCH, 10),
    # The score changes, so the entry moves.
    "reset stats": write(UPDATE, 1, LeaderboardIndex=2),
    "delete profile": write(TRANSACT, 4, LeaderboardIndex=1, GameListingIndex=1),
    "read credential": read(GET, 1),
    "change password": write(UPDATE, 1),
    "open session": write("PutItem", 1),
    "rotate refresh token": write(UPDATE, 1),
    "list sessions": read(QUERY, 1),
    "close session": write("DeleteItem", 1),
    "read device": read(GET, 1),
    "forget device": write("DeleteItem", 1),
    "create game": write(TRANSACT, 6, GameListingIndex=1, MatchHistoryIndex=1),
    "list games": read(QUERY, 1),
    "read game": read(GET, 0.5),
    "read game and players": read(QUERY, 1.5),
    "read game and seat": read(BATCH, 2),
    "check game": read(QUERY, 3),
    "check seats": read(BATCH, 20),
    "read games": read(BATCH, 10),
    "join game": write(TRANSACT, 6, GameListingIndex=1, MatchHistoryIndex=1),
    # The entry moves from OPEN to FULL: one delete and one put.
    "join game, last seat": write(TRANSACT, 6, GameListingIndex=2, MatchHistoryIndex=1),
    "leave lobby": write(TRANSACT, 6, GameListingIndex=1, MatchHistoryIndex=1),
    "leave lobby, last player": write(TRANSACT, 6, GameListingIndex=1, MatchHistoryIndex=1),
    "start game": write(UPDATE, 1, GameListingIndex=2),
    "end game": write(UPDATE, 1, GameListingIndex=1),
    # Game, victim, killer, and the victim's stats.
    "eliminate": write(TRANSACT, 8, GameListingIndex=1, LeaderboardIndex=1, MatchHistoryIndex=2),
    # Game, victim, winner, and the stats of both; the winner's score moves his entry.
    "eliminate, last": write(
        TRANSACT, 10, GameListingIndex=1, LeaderboardIndex=3, MatchHistoryIndex=2
    ),
    "match history": read(QUERY, 0.5),
    "anonymise seat": write(UPDATE, 1, MatchHistoryIndex=1),
    "read quick-join pointer": read(GET, 1),
    "read request record": read(GET, 1),
    "take lease": write(TRANSACT, 2),
    "announce process": write("BatchWriteItem", 1),
    "beat": write(UPDATE, 1),
    "list heartbeats": read(QUERY, 1),
    "forget process": write("DeleteItem", 1),
    "record presence": write("BatchWriteItem", 25),
    "list presences": read(QUERY, 1),
    "find presences": read(BATCH, 4),
    "create settings": write(TRANSACT, 4),
    "change settings": write(TRANSACT, 4),
    "read settings": read(GET, 1),
    "read settings history": read(QUERY, 1),
    "read settings revision": read(GET, 1),
    "read counters": read(BATCH, 15),
    "count": write(TRANSACT, 2),
    "look by key": read(QUERY, 1),
    "mark away": write(UPDATE, 1, GameListingIndex=1),
    "mark back": write(UPDATE, 1, GameListingIndex=1),
    "relist game": write(UPDATE, 1, GameListingIndex=1),
    "report process": write("PutItem", 2),
    "retire process": write("DeleteItem", 2),
    "list processes": read(QUERY, 0.5),
    "read import progress": read(GET, 1),
    "import users": write(TRANSACT, 102, LeaderboardIndex=50, GameListingIndex=50),
    "import users, read": read(BATCH, 20),
    "import game": write(TRANSACT, 102, GameListingIndex=1, MatchHistoryIndex=50),
    # The winner's score moves his entry.
    "import results": write(TRANSACT, 200, LeaderboardIndex=51, MatchHistoryIndex=50),
}


@pytest.fixture(scope="module")
def costs(engine: object) -> dict[str, Cost]:
    if Item.exists():
        Item.delete_table()
    create_table()
    return {cost.pattern: cost for cost in access_patterns.measure_all()}


@pytest.mark.parametrize("pattern", EXPECTED)
def test_an_access_pattern_costs_exactly_its_figures(costs: dict[str, Cost], pattern: str) -> None:
    cost, expected = costs[pattern], EXPECTED[pattern]
    assert cost.operations == (expected.operation,)
    assert cost.read_units == expected.read_units
    assert cost.write_units == expected.write_units
    assert cost.index_write_units == expected.index_write_units


def test_every_access_pattern_has_a_scenario_and_figures() -> None:
    scenarios = [scenario.pattern for scenario in access_patterns.SCENARIOS]
    assert len(scenarios) == len(set(scenarios))
    assert set(scenarios) == set(EXPECTED) == set(capacity.PATTERNS)


def test_the_documented_costs_are_the_measured_ones(costs: dict[str, Cost]) -> None:
    text = (ROOT / "docs" / "data-model.md").read_text()
    table = access_patterns.markdown(costs.values())
    assert replace_block(text, table) == text, (
        "run: manage.py access_patterns --write docs/data-model.md"
    )


def test_every_kind_of_item_is_documented() -> None:
    text = (ROOT / "docs" / "data-model.md").read_text()
    kinds = [model.__name__ for model in Item.kind.get_registered_subclasses(Item)]
    assert len(kinds) > 10
    assert [kind for kind in kinds if f"| `{kind}` |" not in text] == []


def test_a_join_writes_as_much_for_the_fiftieth_player_as_for_the_second(
    costs: dict[str, Cost],
) -> None:
    # each join rewrites the listing entry, which carries the player count: 1 WCU, known.
    with capacity.measure() as meter:
        scenario = access_patterns.scenario.a_lobby("all-fifty", 50)
    assert scenario.player_count == 50
    joins_and_creation = 50
    moved_to_full = 1
    # Each player's own entry among the newest, written once.
    sign_ups = 50
    assert (
        meter.index_write_units["GameListingIndex"] == joins_and_creation + moved_to_full + sign_ups
    )
    assert meter.index_write_units["MatchHistoryIndex"] == 50


def test_the_command_prints_the_table_and_replaces_it_in_a_file(
    costs: dict[str, Cost], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        "matches.management.commands.access_patterns.measure", lambda: "| the costs |"
    )
    path = tmp_path / "page.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    call_command("access_patterns", "--write", path)
    assert path.read_text() == f"before\n{BEGIN}\n\n| the costs |\n\n{END}\nafter\n"
    path.write_text("no block")
    with pytest.raises(CommandError, match="no block between"):
        call_command("access_patterns", "--write", path)
