import logging
from typing import Any

import pytest
from pytest_django import Settings

from gameserver.models import Item, transact
from matches.services import find
from players.models import User
from settings_singleton.testing import override_flags
from tests.builders import MAP, PASSWORD, Api, a_player, ok, refusal

JSON = {"Content-Type": "application/json"}
SECRET = "GAME#1 in table gameserver, key AKIA0000"


@pytest.mark.parametrize(
    "path", ["/nope", "/", "/games/", "/games/1/nope", "//", "/%00", "/\u00e4"]
)
async def test_an_unknown_path_is_a_problem(api: Api, path: str) -> None:
    for by in (None, a_player()):
        refusal(await api.get(path, by), 404, "not_found")


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW"])
@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/maps", "GET"), ("/games", "GET, POST"), ("/players/guest", "POST")],
)
async def test_a_wrong_method_is_a_problem(api: Api, method: str, path: str, allowed: str) -> None:
    answer = await api.send(method, path, a_player())

    assert answer.status_code == 405
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(answer.headers["Allow"].split(", ")) >= set(allowed.split(", "))
    refusal(answer, 405, "method_not_allowed")


async def test_head_is_get_without_the_body(api: Api) -> None:
    for path, status in (("/maps", 200), ("/games", 401), ("/nope", 404)):
        read = await api.get(path)
        head = await api.send("HEAD", path)

        assert (head.status_code, head.content) == (status, b"")
        for name in ("Content-Type", "Content-Length"):
            assert head.headers.get(name) == read.headers.get(name)
    assert (await api.send("HEAD", "/players/guest")).status_code == 405


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
async def test_a_header_does_not_override_the_method(api: Api, header: str) -> None:
    alice = a_player()

    answer = await api.send("POST", "/players/me", alice, headers={header: "DELETE"})

    refusal(answer, 405, "method_not_allowed")
    assert alice.user


MALFORMED = {
    "no JSON": b"x",
    "half": b'{"map": ',
    "two": b"{} {}",
    "NaN": b'{"map": NaN}',
    "infinity": b'{"max_players": Infinity}',
    "minus infinity": b'{"max_players": -Infinity}',
    "too large a number": b'{"max_players": 1e400}',
    "a number of 5,000 digits": b'{"max_players": ' + b"9" * 5_000 + b"}",
    "lone surrogate": b'{"map": "\\ud800"}',
    "surrogate as a key": b'{"\\udfff": 1}',
    "NUL": b'{"map": "a\\u0000b"}',
    "NUL as a key": b'{"a\\u0000": 1}',
    "raw NUL": b'{"map": "a\0b"}',
    "line break": b'{"map": "a\nb"}',
    "not UTF-8": b'{"map": "\xff\xfe"}',
    "UTF-16": '{"map": "x"}'.encode("utf-16"),
    "deep lists": b"[" * 60_000,
    "deep objects": b'{"a":' * 10_000,
    "deep and complete": b"[" * 5_000 + b"]" * 5_000,
}


@pytest.mark.parametrize("name", list(MALFORMED))
async def test_what_is_not_json_that_can_be_kept_is_malformed(api: Api, name: str) -> None:
    answer = await api.send("POST", "/games", a_player(), content=MALFORMED[name], headers=JSON)

    refusal(answer, 400, "malformed_request")


@pytest.mark.parametrize("body", ["null", "[]", "42", '"x"', "true", "{}", "[[[]]]", '{"map": {}}'])
async def test_json_of_the_wrong_shape_is_invalid(api: Api, body: str) -> None:
    answer = await api.send("POST", "/games", a_player(), content=body, headers=JSON)

    problem = refusal(answer, 422, "validation_error")
    assert problem["errors"]
    assert all(error.keys() == {"loc", "msg"} for error in problem["errors"])


@pytest.mark.parametrize("body", ["[]", "0", '""', "false", "null", "[1]", "1"])
@pytest.mark.parametrize("path", ["/games/quick-join", "/auth/logout"])
async def test_what_is_no_object_is_not_taken_for_no_body(api: Api, path: str, body: str) -> None:
    alice = a_player()

    answer = await api.send("POST", path, alice, content=body, headers=JSON)

    refusal(answer, 422, "validation_error")
    assert ok(await api.get("/players/me", alice))["current_game"] is None


@pytest.mark.parametrize(
    "field",
    [
        *({"max_players": True}, {"max_players": "5"}, {"max_players": 5.0}),
        *({"min_players": True}, {"is_private": 1}, {"auto_start": "false"}),
    ],
)
async def test_values_of_another_type_are_not_converted(api: Api, field: dict[str, Any]) -> None:
    problem = refusal(
        await api.post("/games", a_player(), map=MAP, **field), 422, "validation_error"
    )

    assert [error["loc"] for error in problem["errors"]] == [["body", *field]]


async def test_an_invalid_field_is_named_as_the_client_knows_it(api: Api) -> None:
    async def places(answer: Any) -> list[Any]:
        return [each["loc"] for each in refusal(answer, 422, "validation_error")["errors"]]

    assert await places(await api.post("/players", username="alice")) == [["body", "password"]]
    assert await places(await api.post("/players")) == [["body"]]
    assert await places(await api.get("/leaderboard?limit=0", a_player())) == [["query", "limit"]]


@pytest.mark.parametrize("number", [2**31, 2**63, -(2**63) - 1, 10**300])
async def test_a_huge_number_is_invalid(api: Api, number: int) -> None:
    answer = await api.post("/games", a_player(), map=MAP, max_players=number)

    refusal(answer, 422, "validation_error")


async def test_text_that_can_be_kept_comes_back_unchanged(api: Api) -> None:
    name = 'a"\\/\u00e9\u4e2d\U0001f600<script>'

    body = ok(
        await api.post("/players", username="alice", password=PASSWORD, display_name=name), 201
    )

    assert body["player"]["display_name"] == name


@pytest.mark.parametrize("size", [65_537, 1_000_000])
async def test_a_large_body_is_refused_by_its_size(api: Api, size: int) -> None:
    for by in (None, a_player()):
        answer = await api.send("POST", "/players", by, content=b" " * size, headers=JSON)
        refusal(answer, 413, "body_too_large")


async def test_a_body_of_64_kb_is_read(api: Api) -> None:
    body = b'{"map": "dirty-desert"' + b" " * (65_536 - 24) + b"}"

    ok(await api.send("POST", "/games", a_player(), content=body, headers=JSON), 201)


async def test_thousands_of_parameters_are_a_problem_not_an_error(api: Api) -> None:
    answer = await api.get("/games?" + "&".join(f"p{n}=" for n in range(2_000)), a_player())

    refusal(answer, 400, "malformed_request")


async def test_a_strange_host_is_a_problem(api: Api) -> None:
    answer = await api.send("GET", "/maps", headers={"Host": "evil.example"})

    refusal(answer, 400, "malformed_request")


async def test_an_unexpected_error_shows_its_number_and_nothing_else(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(find, "open_games", fail)

    answer = await api.get("/games", a_player())

    problem = refusal(answer, 500, "internal_error")
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    for inner in ("GAME#", "RuntimeError", "Traceback", "AKIA", ".py", "gameserver"):
        assert inner not in answer.text


async def test_a_refusal_is_no_error_in_the_log_and_a_fault_is_one(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice = a_player()

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(SECRET)

    with override_flags(game_creation_enabled=False):
        refusal(await api.post("/games", alice, map=MAP), 503, "feature_disabled")
    with override_flags(maintenance_mode=True):
        refusal(await api.get("/games", alice), 503, "maintenance")
    refusal(await api.get("/nope"), 404, "not_found")
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []

    monkeypatch.setattr(find, "open_games", fail)
    refusal(await api.get("/games", alice), 500, "internal_error")
    monkeypatch.setattr("gameserver.middleware.CommonMiddleware.process_request", fail)
    refusal(await api.get("/maps"), 500, "internal_error")

    errors = [each for each in caplog.records if each.levelno >= logging.ERROR]
    # Once each, though both would pass Django's own log on their way out, too.
    assert [each.name for each in errors] == ["gameserver.problems", "django.request"]


async def test_a_failure_outside_every_view_is_the_same_problem(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("gameserver.middleware.CommonMiddleware.process_request", fail)

    answer = await api.get("/maps")

    problem = refusal(answer, 500, "internal_error")
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert SECRET not in answer.text


async def test_an_item_that_cannot_be_read_is_nobodys_500(api: Api) -> None:
    viewer = a_player("viewer")
    broken = a_player("broken").user
    transact(user=broken.change([User.created_at.remove()]))

    refusal(await api.get("/players/broken", viewer), 404, "player_not_found")
    ok(await api.get("/leaderboard", viewer))


async def test_without_an_engine_clients_are_asked_to_come_again(
    api: Api, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = a_player()
    settings.DYNAMODB_ENDPOINT_URL = "http://127.0.0.1:9"
    settings.REQUEST_BUDGET_SECONDS = 0.5
    monkeypatch.setattr(Item, "_shared", None)

    answer = await api.post("/games", alice, map=MAP)

    problem = refusal(answer, 503, "try_again")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "127.0.0.1" not in answer.text
    assert problem["detail"]
