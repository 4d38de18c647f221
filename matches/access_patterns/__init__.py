"""Every access pattern run once on a real engine, to print what it costs.

These modules hold one scenario for each name given to `@access_pattern`: it prepares items
and returns the one call to measure. Scenarios share a table, so each uses names of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gameserver import capacity
from matches.access_patterns import games, imports, operators, players, presence, settings
from matches.access_patterns.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *players.SCENARIOS,
    *games.SCENARIOS,
    *presence.SCENARIOS,
    *settings.SCENARIOS,
    *operators.SCENARIOS,
    *imports.SCENARIOS,
)


@dataclass(frozen=True)
class Cost:
    """What one access pattern consumed; `read_units` include the index's own."""

    pattern: str
    method: str
    measured_with: str
    operations: tuple[str, ...]
    read_units: float
    write_units: float
    index_write_units: dict[str, float]


def measure_all() -> Iterator[Cost]:
    """Run every scenario on an empty table."""
    for scenario in SCENARIOS:
        call = scenario.prepare()
        with capacity.measure() as meter:
            call()
        yield Cost(
            pattern=scenario.pattern,
            method=capacity.PATTERNS[scenario.pattern],
            measured_with=scenario.measured_with,
            operations=tuple(meter.operations),
            read_units=meter.read_units + meter.index_read_units,
            write_units=meter.write_units,
            index_write_units={
                name: used for name, used in sorted(meter.index_write_units.items()) if used
            },
        )


def markdown(costs: Iterable[Cost]) -> str:
    """Return the costs as a Markdown table, without a line break at its end."""
    lines = [
        "| Access pattern | Method | Measured with | Round trips | RCU | WCU | Index WCU |",
        "|---|---|---|---|---|---|---|",
    ]
    for cost in costs:
        cells = [
            cost.pattern,
            f"`{cost.method}`",
            cost.measured_with,
            _round_trips(cost.operations),
            _figure(cost.read_units),
            _figure(cost.write_units),
            ", ".join(f"{name} {_figure(used)}" for name, used in cost.index_write_units.items()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _round_trips(operations: tuple[str, ...]) -> str:
    return ", ".join(f"{operations.count(name)} {name}" for name in dict.fromkeys(operations))


def _figure(units: float) -> str:
    return f"{units:g}" if units else "-"
