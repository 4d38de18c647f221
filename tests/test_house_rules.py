"""House rules that the linters cannot say: who may scan, count, query, save and spell a key."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gameserver.models import Item
from tests.servers import ROOT

PACKAGES = ("gameserver", "players", "matches", "settings_singleton")
MODELS = {model.__name__ for model in Item.kind.get_registered_subclasses(Item)} | {"Item", "cls"}
KEY = re.compile(r"(USER|GAME|SESSION|DEVICE|REQUEST|QUICKJOIN|COUNTER|SHARD|AUDIT|LEASE)#")


@functools.cache
def sources() -> list[tuple[Path, ast.Module]]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [(path.relative_to(ROOT), ast.parse(path.read_text())) for path in paths]


def calls(*names: str) -> Iterator[tuple[str, ast.Attribute]]:
    for path, tree in sources():
        for node in ast.walk(tree):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr in names:
                yield str(path), called


@pytest.mark.parametrize("operation", ["scan", "rate_limited_scan", "parallel_scan"])
def test_the_table_is_scanned_in_one_place(operation: str) -> None:
    # O-02; `check_table` reads everything, and nothing else does.
    found = [path for path, _ in calls(operation)]
    assert found == (["gameserver/models.py"] if operation == "scan" else [])


def test_only_check_table_walks_the_whole_table() -> None:
    # O-02
    assert [path for path, _ in calls("scan_pages")] == ["matches/services/check.py"]


def test_queries_have_a_name_in_the_models() -> None:
    models = {str(path) for path, _ in sources() if re.search(r"\bmodels\b", str(path))}
    assert {path for path, _ in calls("query", "read_page", "read_all", "read_many")} <= models


def test_nobody_asks_the_tables_description_about_items() -> None:
    # O-02, O-04: a model's count() is hours old and over all kinds; exists() is about the table.
    asked = [
        (path, call.attr)
        for path, call in calls("count", "exists", "describe_table")
        if isinstance(call.value, ast.Name) and call.value.id in MODELS
    ]
    assert asked == [("gameserver/schema.py", "exists")]


def test_an_item_is_only_saved_whole_where_its_key_is_new_or_its_own() -> None:
    # O-05: a save replaces what it does not know. Sessions have random ids; a report is replaced.
    assert sorted(path for path, _ in calls("save")) == [
        "players/models/login.py",
        "settings_singleton/processes/models.py",
    ]


def test_only_the_table_module_spells_keys() -> None:
    spelled = [
        (str(path), node.value)
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and KEY.match(node.value)
        and path != Path("gameserver/table.py")
    ]
    # Docstrings of models say where their items lie; they are sentences, keys are not.
    assert [(path, text) for path, text in spelled if " " not in text] == []


def test_rules_take_time_and_chance_as_arguments() -> None:
    for path, tree in sources():
        if path.name != "rules.py":
            continue
        words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not words & {"now", "utcnow", "today", "random", "randrange", "uuid4"}, path
