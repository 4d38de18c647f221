import ast
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gameserver import environment as env
from tests.servers import ROOT

NAME = "SOME_NAME"


def integer() -> object:
    return env.integer(NAME, 5, 1, 100)


def number() -> object:
    return env.number(NAME, 5, 0.1, 60)


def choice() -> object:
    return env.choice(NAME, "killer", ["killer", "referee"])


def switch() -> object:
    return env.switch(NAME)


def table_name() -> object:
    return env.text(NAME, "gameserver", env.TABLE_NAME)


def region() -> object:
    return env.text(NAME, "us-east-1", env.REGION)


def endpoint() -> object:
    return env.url(NAME, ["http", "https"], "embedded", "aws")


def redis() -> object:
    return env.url(NAME, ["redis", "rediss"])


def hosts() -> object:
    return env.listed(NAME, env.HOST, "host names")


def origins() -> object:
    return env.origins(NAME)


def database() -> object:
    return env.database(NAME, "sqlite:////tmp/staff.sqlite3")["ENGINE"]


@pytest.mark.parametrize(
    ("read", "default"),
    [
        (integer, 5),
        (number, 5),
        (choice, "killer"),
        (switch, False),
        (table_name, "gameserver"),
        (endpoint, ""),
        (hosts, []),
        (origins, []),
        (database, "django.db.backends.sqlite3"),
    ],
)
def test_what_is_not_set_has_its_default(read: Callable[[], object], default: object) -> None:
    assert read() == default


@pytest.mark.parametrize(
    ("read", "value", "meaning"),
    [
        (integer, "100", 100),
        (number, "0.25", 0.25),
        (choice, "referee", "referee"),
        (switch, "On", True),
        (switch, "0", False),
        (table_name, "a.b-c_D9", "a.b-c_D9"),
        (region, "us-gov-west-1", "us-gov-west-1"),
        (endpoint, "aws", "aws"),
        (endpoint, "http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        (endpoint, "https://[::1]:8001", "https://[::1]:8001"),
        (redis, "rediss://:word@redis.example:6379/0", "rediss://:word@redis.example:6379/0"),
        (hosts, "game.example, .game.example,[::1]", ["game.example", ".game.example", "[::1]"]),
        (origins, "https://*.game.example", ["https://*.game.example"]),
        (origins, "http://localhost:5173", ["http://localhost:5173"]),
        (database, "postgres://user:word@db.example/staff", "django.db.backends.postgresql"),
        (database, "sqlite://:memory:", "django.db.backends.sqlite3"),
        (database, "", "django.db.backends.sqlite3"),
    ],
)
def test_a_right_value_is_taken(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], value: str, meaning: object
) -> None:
    monkeypatch.setenv(NAME, value)
    assert read() == meaning


@pytest.mark.parametrize(
    ("read", "values"),
    [
        (integer, ["", "x", "0", "101", "-1", "1.5", "1_0", "٣", "9" * 5000]),
        (number, ["", "x", "nan", "inf", "-1", "0", "61"]),
        (choice, ["", "Killer", "nobody"]),
        (switch, ["maybe", "2"]),
        (table_name, ["", "a", "a b c", "x" * 256, "abc\n"]),
        (region, ["", "US East", "-", "us_east_1"]),
        (endpoint, ["foo", "http://", "ftp://host", "http://host:port", "http://[::1", "AWS"]),
        (redis, ["foo", "http://host", "redis://"]),
        (hosts, ["https://game.example", "game.example:443", "a b"]),
        (origins, ["foo", "https://", "https://game.example/", "ftp://game.example", "*"]),
        (database, ["foo", "foo://x", "mysql://host/staff", "sqlite://", "postgres://h:p/staff"]),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], values: list[str]
) -> None:
    for value in values:
        monkeypatch.setenv(NAME, value)
        with pytest.raises(ImproperlyConfigured) as refused:
            read()
        line = str(refused.value)
        shown = value if value.isprintable() else repr(value)
        assert line.startswith(f"{NAME}={shown} must be "), line
        assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (redis, "redi://:pass@word@redis.example"),
        (redis, "user:pass@word@redis.example"),
        (database, "postgres://user:pass@word@db.example:port/staff"),
    ],
)
def test_a_refused_url_does_not_show_its_password(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], value: str
) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match="example") as refused:
        read()
    assert "word" not in str(refused.value).split(" must be ")[0]


def test_the_example_lists_what_the_settings_read() -> None:
    tree = ast.parse((ROOT / "gameserver" / "settings.py").read_text())
    read = {name for node in ast.walk(tree) if (name := name_read_by(node))}
    example = (ROOT / ".env.example").read_text()
    listed = re.findall(r"^(?:# )?([A-Z_]+)=", example, re.MULTILINE)
    assert sorted(listed) == sorted(read)


def name_read_by(node: Any) -> str | None:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="env")), args=[ast.Constant(value=str(name)), *_]
        ):
            return name
    return None


def test_the_environment_is_read_in_one_place() -> None:
    readers = {
        path.name
        for folder in ("gameserver", "matches", "players", "settings_singleton")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"os\.environ(\.get|\[)|getenv", path.read_text())
    }
    # The settings look whether a .env file counts, before it can be read.
    assert readers == {"environment.py", "settings.py"}


def test_the_example_can_be_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of it outside this test.
    monkeypatch.setattr("gameserver.logs.configure_logs", lambda level: None)
    monkeypatch.setattr(env, "load_file", lambda path: None)
    example = (ROOT / ".env.example").read_text()
    for name, value in re.findall(r"^([A-Z_]+)=(.*)$", example, re.MULTILINE):
        monkeypatch.setenv(name, value)
    source = (ROOT / "gameserver" / "settings.py").read_text()
    values: dict[str, Any] = {"__file__": str(ROOT / "gameserver" / "settings.py")}
    exec(compile(source, "settings.py", "exec"), values)  # noqa: S102 (our own file)
    assert values["ENVIRONMENT"] == "development"
