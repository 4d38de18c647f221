"""Scenarios of who is connected to which server process."""

from matches.access_patterns.scenario import NOW, Call, Scenario
from matches.models.presence import Heartbeat, Presence


def some_presences(process_id: str, count: int) -> list[Presence]:
    """Return unsaved presences of players in one game."""
    return [
        Presence.new(process_id, "watched", f"{process_id}-{number}", now=NOW)
        for number in range(count)
    ]


def announce_process() -> Call:
    return lambda: Heartbeat.announce("beating", now=NOW)


def beat() -> Call:
    Heartbeat.announce("beating", now=NOW)
    return lambda: Heartbeat.beat("beating", now=NOW)


def list_heartbeats() -> Call:
    for number in range(10):
        Heartbeat.announce(f"process{number}", now=NOW)
    return Heartbeat.all_known


def forget_process() -> Call:
    Heartbeat.announce("dead", now=NOW)
    return lambda: Heartbeat.forget("dead")


def record_presence() -> Call:
    gone = some_presences("leaving", 5)
    Presence.record(gone)
    return lambda: Presence.record(some_presences("arriving", 20), gone)


def list_presences() -> Call:
    Presence.record(some_presences("crowded", 25))
    return lambda: Presence.of_process("crowded")


def find_presences() -> Call:
    processes = [f"process{number}" for number in range(4)]
    return lambda: Presence.in_processes(processes, "watched", ["ada"])


SCENARIOS = (
    Scenario("announce process", announce_process),
    Scenario("beat", beat),
    Scenario("list heartbeats", list_heartbeats, "11 processes"),
    Scenario("forget process", forget_process),
    Scenario("record presence", record_presence, "20 present, 5 gone"),
    Scenario("list presences", list_presences, "25 players"),
    Scenario("find presences", find_presences, "4 processes"),
)
