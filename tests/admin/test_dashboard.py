"""The figures of the first page, and the reports of the processes behind them."""

import logging
from datetime import UTC, datetime, timedelta

import pytest
import structlog
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge

from gameserver import capacity, dashboard
from settings_singleton.processes.load import FIELDS, MINUTES_KEPT, Minutes, read_totals
from settings_singleton.processes.models import ProcessReport
from settings_singleton.processes.reporter import Reporter
from tests.admin.operators import DASHBOARD, SWITCHES, Operator, an_operator

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _read_anew() -> None:
    dashboard.forget()


def a_report(
    process_id: str, *, revision: int = 1, silent_for: timedelta = timedelta()
) -> ProcessReport:
    # The time of the test, not of the run's beginning: the board compares with the clock.
    now = datetime.now(UTC)
    return ProcessReport.new(
        process_id,
        host="machine",
        pid=len(process_id),
        started_at=now - timedelta(hours=1),
        revision=revision,
        is_stale=False,
        defects=[],
        minutes=[[float(now.timestamp() // 60), 7.0, 1.0, 2.0, 3.0, 4.0, 5.0]],
        now=now - silent_for,
    )


def test_the_first_page_offers_charts_to_those_who_may_see_them(
    viewer: Operator, nobody: Operator
) -> None:
    assert "dashboard.js" in viewer.page("/admin/")
    assert "dashboard.js" not in nobody.page("/admin/")


def test_the_page_of_one_app_has_no_charts(viewer: Operator) -> None:
    page = viewer.page("/admin/settings_singleton/")
    assert "dashboard.js" not in page
    assert "chart-online" not in page


def test_figures_come_from_every_process(viewer: Operator) -> None:
    for process_id in ("one", "other"):
        ProcessReport.put_report(a_report(process_id))
    figures = viewer.get(DASHBOARD).json()
    assert figures["fields"] == list(FIELDS)
    assert [process["minutes"][0][1] for process in figures["processes"]] == [7, 7]
    assert figures["totals"].keys() == {"players_signed_up", "games_finished", "eliminations"}


def test_many_watching_operators_cost_one_reading_in_ten_seconds(viewer: Operator) -> None:
    other = an_operator("other", is_superuser=True)
    viewer.get(DASHBOARD)
    with capacity.measure() as meter:
        for operator in (viewer, other):
            assert operator.get(DASHBOARD).status_code == 200
    assert meter.round_trips == 0


@pytest.mark.usefixtures("stored_flags")
def test_the_board_tells_current_late_and_lost_processes_apart(boss: Operator) -> None:
    boss.post(f"{SWITCHES}chat_enabled/kill/")
    ProcessReport.put_report(a_report("current", revision=2))
    ProcessReport.put_report(a_report("behind", revision=1))
    ProcessReport.put_report(a_report("lost", silent_for=timedelta(minutes=5)))
    ProcessReport.put_report(a_report("long gone", silent_for=timedelta(hours=1)))
    lines = boss.get(SWITCHES).context_data["processes"]
    assert {line["report"].process_id: line["state"] for line in lines} == {
        "current": "current",
        "behind": "behind",
        "lost": "lost",
    }


@pytest.mark.usefixtures("stored_flags")
def test_a_process_reports_while_it_runs_and_leaves_no_trace_when_it_stops() -> None:
    reporter = Reporter()
    reporter.start()
    reporter.report()
    (report,) = ProcessReport.latest(datetime.now(UTC))
    assert report.process_id == reporter.process_id
    reporter.stop()
    assert ProcessReport.latest(datetime.now(UTC)) == []


def test_a_report_that_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(report: ProcessReport) -> None:
        raise RuntimeError("the table is down")

    monkeypatch.setattr(ProcessReport, "put_report", refuse)
    reporter = Reporter()
    reporter.start()
    assert reporter.is_running
    reporter.stop()


def test_minutes_hold_what_happened_in_each() -> None:
    registry = CollectorRegistry()
    joins = Counter("players_joined_total", "-", registry=registry)
    units = Counter(
        "dynamodb_consumed_units_total", "-", ["pattern", "unit", "where"], registry=registry
    )
    online = Gauge("socket_connections", "-", registry=registry)
    joins.inc(100)
    minutes = Minutes(read_totals(registry))
    joins.inc(3)
    units.labels("a", "read", "table").inc(2)
    units.labels("b", "read", "index").inc(0.5)
    units.labels("b", "write", "table").inc(6)
    online.set(4)
    assert minutes.add(read_totals(registry), NOW)[-1][1:] == [4, 3, 0, 2.5, 6, 0]
    joins.inc()
    online.set(2)
    assert minutes.add(read_totals(registry), NOW)[-1][1:] == [2, 4, 0, 2.5, 6, 0]
    later = minutes.add(read_totals(registry), NOW + timedelta(minutes=1))
    assert later[-1][1:] == [2, 0, 0, 0, 0, 0]
    for minute in range(2, 100):
        later = minutes.add(read_totals(registry), NOW + timedelta(minutes=minute))
    assert len(later) == MINUTES_KEPT


def test_errors_are_counted_whoever_logs_them() -> None:
    before = REGISTRY.get_sample_value("logged_errors_total") or 0.0
    structlog.get_logger("a module").error("it_broke")
    logging.getLogger("a library").critical("it broke")
    logging.getLogger("a library").warning("it creaked")
    assert REGISTRY.get_sample_value("logged_errors_total") == before + 2
