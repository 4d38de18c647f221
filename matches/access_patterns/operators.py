"""Scenarios of what operators' pages read and write, and of the processes' reports."""

from gameserver import table
from gameserver.models import Item
from matches.access_patterns.scenario import NOW, Call, Scenario, a_lobby
from matches.models import Game
from settings_singleton.processes.load import COUNTED, MINUTES_KEPT
from settings_singleton.processes.models import ProcessReport


def a_report(process_id: str) -> ProcessReport:
    """Return an unsaved report of a process that has run for half an hour."""
    minute = [29_000_000.0, 50.0, *(100.0 for _ in COUNTED)]
    return ProcessReport.new(
        process_id,
        host="game-server-1",
        pid=4242,
        started_at=NOW,
        revision=12,
        is_stale=False,
        defects=[],
        minutes=[minute] * MINUTES_KEPT,
        now=NOW,
    )


def look_by_key() -> Call:
    a_lobby("looked-at", 3)
    return lambda: Item.raw_page(table.game_key("looked-at")[0], limit=25)


def relist_game() -> Call:
    game = a_lobby("unlisted", 2)
    Game.update_one(game.change([Game.listing.remove(), Game.listed_at.remove()]))
    return lambda: Game.relist(game)


def report_process() -> Call:
    return lambda: ProcessReport.put_report(a_report("reporting"))


def retire_process() -> Call:
    ProcessReport.put_report(a_report("retiring"))
    return lambda: ProcessReport.retire("retiring")


def list_processes() -> Call:
    ProcessReport.put_report(a_report("listed"))
    return lambda: ProcessReport.latest(NOW)


SCENARIOS = (
    Scenario("look by key", look_by_key, "a game of 3"),
    Scenario("relist game", relist_game, "a lost listing"),
    Scenario("report process", report_process, "half an hour of minutes"),
    Scenario("retire process", retire_process, "half an hour of minutes"),
    Scenario("list processes", list_processes, "2 processes"),
)
