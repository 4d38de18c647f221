"""The fault layer's own promise: what it was never asked to deliver was never tested."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.faults import layer
from tests.faults.kinds import conflict
from tests.faults.layer import CLASSES, pytest_sessionfinish, undelivered
from tests.servers import ROOT


def a_finished_run(*args: Path, keyword: str = "") -> Any:
    lines: list[str] = []
    return SimpleNamespace(
        lines=lines,
        exitstatus=pytest.ExitCode.OK,
        config=SimpleNamespace(
            args=[str(path) for path in args],
            rootpath=ROOT,
            option=SimpleNamespace(keyword=keyword, markexpr="", collectonly=False),
            get_terminal_writer=lambda: SimpleNamespace(line=lines.append),
        ),
    )


def finish(run: Any) -> pytest.ExitCode:
    pytest_sessionfinish(cast(pytest.Session, run), run.exitstatus)
    return cast(pytest.ExitCode, run.exitstatus)


def test_a_whole_run_that_never_met_a_class_of_faults_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # EMU-04
    monkeypatch.setattr(layer, "DELIVERED", Counter(dict.fromkeys(CLASSES, 1)))
    run = a_finished_run(ROOT / "tests")
    assert finish(run) == pytest.ExitCode.OK
    layer.DELIVERED["slow response"] = 0
    assert undelivered() == ["slow response"]
    assert finish(run) == pytest.ExitCode.TESTS_FAILED
    assert run.lines == ["\nFaults never delivered: slow response"]


def test_a_run_of_some_tests_need_not_meet_every_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    # EMU-04
    monkeypatch.setattr(layer, "DELIVERED", Counter())
    assert finish(a_finished_run(ROOT / "tests" / "matches")) == pytest.ExitCode.OK
    assert finish(a_finished_run(ROOT / "tests", keyword="join")) == pytest.ExitCode.OK


def test_a_fault_is_delivered_as_often_as_ordered_and_where_it_fits() -> None:
    body: layer.Body = {"TransactItems": [{"Put": {}}, {"Put": {}}]}
    never: Any = None
    request = layer.Request("TransactWriteItems", body, "http://engine", never, never)
    other = layer.Request("Query", {}, "http://engine", never, never)
    order = layer._Order(conflict, "TransactWriteItems", 2, lambda body: "TransactItems" in body)
    assert [order.takes(one) for one in (other, request, request, request)] == [
        False,
        True,
        True,
        False,
    ]
