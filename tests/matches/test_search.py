"""Search by a sentence: the model chooses a filter, and nothing but a filter."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber
from django.conf import settings as django_settings
from pytest_django import Settings

from matches import bedrock, search
from matches.rules import MAPS
from matches.search import Filter, InvalidAnswer, parse
from settings_singleton.testing import override_flags
from tests.builders import NOW, Api, a_game, a_player, ok, players, refusal
from tests.fixtures import api, cheap_passwords
from tests.matches.bedrock_stub import BedrockStub, running_bedrock

__all__ = ["api", "cheap_passwords"]
DESERT, JUNGLE = "dirty-desert", "juicy-jungle"
SENTENCE = "a nearly full desert game"


@pytest.fixture
def model(settings: Settings) -> Iterator[BedrockStub]:
    """A model on loopback, the switch on, and no sentence known yet."""
    with running_bedrock() as stub:
        settings.BEDROCK_ENDPOINT_URL = stub.url
        search._known.clear()
        bedrock._client = None
        with override_flags(ai_search_enabled=True):
            yield stub
        bedrock._client.close() if bedrock._client else None
        bedrock._client = None


async def find(api: Api, sentence: str = SENTENCE) -> dict[str, Any]:
    body: dict[str, Any] = ok(await api.get("/games/search", a_searcher(), q=sentence))
    return body


def a_searcher() -> Any:
    from gameserver.models import ConditionFailed
    from tests.builders import logged_in

    try:
        return a_player("searcher")
    except ConditionFailed:
        return logged_in("searcher")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "desert",
        [],
        {"maps": "dirty-desert"},
        {"maps": ["moon"]},
        {"maps": [{"id": "dirty-desert"}]},
        {"fill": "overfull"},
        {"order": "random"},
        {"fill": ["any"]},
        {"maps": [], "fill": "any", "order": "oldest", "listing": "PRIVATE#dirty-desert#0"},
        {"PK": "SETTINGS#APP"},
    ],
)
def test_an_answer_that_is_no_filter_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidAnswer):
        parse(answer)


def test_what_an_answer_leaves_out_has_its_default() -> None:
    assert parse({}) == Filter()
    assert parse({"maps": [DESERT, DESERT]}) == Filter(maps=(DESERT,))


def test_the_tool_offers_exactly_what_the_check_allows() -> None:
    properties = search.TOOL["inputSchema"]["json"]["properties"]
    for game_map in properties["maps"]["items"]["enum"]:
        parse({"maps": [game_map]})
    for fill in properties["fill"]["enum"]:
        parse({"fill": fill})
    for order in properties["order"]["enum"]:
        parse({"order": order})
    assert properties["maps"]["items"]["enum"] == list(MAPS)


async def test_while_the_switch_is_off_nothing_is_asked(api: Api, model: BedrockStub) -> None:
    with override_flags(ai_search_enabled=False):
        response = await api.get("/games/search", a_searcher(), q=SENTENCE)

    assert refusal(response, 503, "feature_disabled")["flag"] == "ai_search_enabled"
    assert model.requests == []


async def test_a_sentence_becomes_a_filter_over_open_games(api: Api, model: BedrockStub) -> None:
    hosts = players("anna", "bert", "carl", "dora")
    full = a_game(hosts[0], *players("p1", "p2", "p3"), game_map=DESERT, max_players=5)
    a_game(hosts[1], game_map=DESERT, max_players=5)
    a_game(hosts[2], *players("p4", "p5", "p6"), game_map=JUNGLE, max_players=5)
    model.input = {"maps": [DESERT], "fill": "nearly_full", "order": "fullest"}

    found = await find(api)

    assert [game["game_id"] for game in found["items"]] == [full.game_id]
    assert found["used_ai"] is True
    assert found["filter"] == {"maps": [DESERT], "fill": "nearly_full", "order": "fullest"}
    assert (found["fallback_reason"], found["next_cursor"]) == (None, None)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("oldest", ["anna", "bert", "carl"]),
        ("newest", ["carl", "bert", "anna"]),
        ("fullest", ["bert", "anna", "carl"]),
        ("emptiest", ["anna", "carl", "bert"]),
    ],
)
async def test_games_come_in_the_order_that_was_understood(
    api: Api, model: BedrockStub, order: str, expected: list[str]
) -> None:
    anna, bert, carl = players("anna", "bert", "carl")
    a_game(anna)
    a_game(bert, *players("guest"), now=NOW + timedelta(seconds=1))
    a_game(carl, now=NOW + timedelta(seconds=2))
    model.input = {"maps": [], "fill": "any", "order": order}

    found = await find(api)

    assert [game["host"] for game in found["items"]] == expected


@pytest.mark.parametrize(
    ("fill", "expected"),
    [("nearly_empty", ["anna"]), ("half_full", ["bert"]), ("nearly_full", ["carl"])],
)
async def test_fill_levels_are_thirds_of_the_seats(
    api: Api, model: BedrockStub, fill: str, expected: list[str]
) -> None:
    anna, bert, carl = players("anna", "bert", "carl")
    a_game(anna, max_players=4)
    a_game(bert, *players("b1"), max_players=4)
    a_game(carl, *players("c1", "c2"), max_players=4)
    model.input = {"fill": fill}

    assert [game["host"] for game in (await find(api))["items"]] == expected


async def test_private_and_started_games_are_never_found(api: Api, model: BedrockStub) -> None:
    anna, bert, carl = players("anna", "bert", "carl")
    a_game(anna, is_private=True)
    a_game(bert, carl, status="STARTED")

    assert (await find(api))["items"] == []


async def test_the_question_is_signed_and_offers_one_tool(api: Api, model: BedrockStub) -> None:
    await find(api, "anything in the jungle?")

    path, headers, body = model.requests[0]
    model_id = django_settings.BEDROCK_MODEL_ID
    assert path.replace("%3A", ":") == f"/model/{model_id}/converse"
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=local/")
    assert body["messages"] == [{"role": "user", "content": [{"text": "anything in the jungle?"}]}]
    assert body["toolConfig"] == {
        "tools": [{"toolSpec": search.TOOL}],
        "toolChoice": {"tool": {"name": "filter_games"}},
    }
    assert body["inferenceConfig"]["temperature"] == 0


async def test_the_same_sentence_is_asked_once(api: Api, model: BedrockStub) -> None:
    await find(api, "Nearly full!")
    await find(api, "  nearly   FULL! ")

    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, "ThrottlingException"),
        (403, "AccessDeniedException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
        (424, "ModelErrorException"),
        (408, "ModelTimeoutException"),
        (400, "ValidationException"),
    ],
)
async def test_an_error_of_the_model_shows_the_plain_list_and_says_so(
    api: Api, model: BedrockStub, status: int, error: str
) -> None:
    game = a_game(a_player())
    model.status, model.error = status, error

    found = await find(api)

    assert [one["game_id"] for one in found["items"]] == [game.game_id]
    assert (found["used_ai"], found["filter"]) == (False, None)
    assert found["fallback_reason"] == "model_error"
    # No retries: they would keep the player waiting.
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"maps": ["moon"], "fill": "any", "order": "oldest"},
        {"maps": [], "fill": "any", "order": "oldest", "map": "GAME#1"},
        {"query": "SELECT"},
    ],
)
async def test_an_answer_that_is_no_filter_shows_the_plain_list_and_says_so(
    api: Api, model: BedrockStub, answer: dict[str, Any]
) -> None:
    a_game(a_player())
    model.input = answer

    found = await find(api)

    assert len(found["items"]) == 1
    assert (found["used_ai"], found["fallback_reason"]) == (False, "model_answer_invalid")


async def test_an_answer_without_a_tool_call_is_no_filter(api: Api, model: BedrockStub) -> None:
    model.body = (
        b'{"output": {"message": {"role": "assistant", "content": [{"text": "No."}]}},'
        b' "stopReason": "end_turn"}'
    )

    assert (await find(api))["fallback_reason"] == "model_answer_invalid"


async def test_an_answer_that_is_no_json_shows_the_plain_list(api: Api, model: BedrockStub) -> None:
    model.body = b"<html>gateway</html>"

    assert (await find(api))["fallback_reason"] == "model_answer_invalid"


async def test_a_model_that_is_down_shows_the_plain_list(
    api: Api, model: BedrockStub, settings: Settings
) -> None:
    settings.BEDROCK_ENDPOINT_URL = "http://127.0.0.1:9"

    assert (await find(api))["fallback_reason"] == "model_error"


async def test_a_model_that_hangs_is_given_up_within_two_seconds(
    api: Api, model: BedrockStub
) -> None:
    model.hangs = True
    began = time.monotonic()

    found = await find(api)

    assert found["fallback_reason"] == "model_timeout"
    assert time.monotonic() - began < 2.5


def test_more_questions_than_slots_are_answered_without_the_model(table: None) -> None:
    """A slow model must not take the threads that games need."""
    asked, go_on = threading.Semaphore(0), threading.Event()

    def slow_model(question: str, tool: dict[str, Any]) -> Any:
        asked.release()
        go_on.wait(10)
        return {}

    def ask(number: int) -> None:
        found = search.search(f"question {number}", limit=20, ask=slow_model)
        answers.append(found.fallback_reason)

    answers: list[str | None] = []
    search._known.clear()
    with override_flags(ai_search_enabled=True):
        threads = [
            threading.Thread(target=ask, args=(number,))
            for number in range(search.MAX_CONCURRENT_QUESTIONS)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert asked.acquire(timeout=10)
        ask(99)
        go_on.set()
        for thread in threads:
            thread.join(10)

    assert answers == ["model_busy", None, None, None, None]


@pytest.mark.parametrize("query", ["", "x" * 201])
async def test_a_sentence_has_between_1_and_200_characters(
    api: Api, model: BedrockStub, query: str
) -> None:
    refusal(await api.get("/games/search", a_searcher(), q=query), 422, "validation_error")

    assert model.requests == []


async def test_a_search_needs_a_token(api: Api, model: BedrockStub) -> None:
    refusal(await api.get("/games/search", q=SENTENCE), 401, "not_authenticated")


def test_request_and_answer_fit_boto3s_own_model_of_the_api(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Stubber checks both against the service's description."""
    client = bedrock.connect()
    monkeypatch.setattr(bedrock, "_client", client)
    call = {"toolUseId": "tooluse_1", "name": "filter_games", "input": {"maps": [JUNGLE]}}
    expected = {
        "modelId": settings.BEDROCK_MODEL_ID,
        "system": [{"text": bedrock.INSTRUCTIONS}],
        "messages": [{"role": "user", "content": [{"text": "jungle"}]}],
        "inferenceConfig": {"maxTokens": 200, "temperature": 0.0},
        "toolConfig": {
            "tools": [{"toolSpec": search.TOOL}],
            "toolChoice": {"tool": {"name": "filter_games"}},
        },
    }
    with Stubber(client) as stubber:
        stubber.add_response(
            "converse",
            {
                "output": {"message": {"role": "assistant", "content": [{"toolUse": call}]}},
                "stopReason": "tool_use",
                "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
                "metrics": {"latencyMs": 1},
            },
            expected,
        )

        assert bedrock.ask("jungle", search.TOOL) == {"maps": [JUNGLE]}
        stubber.assert_no_pending_responses()
    client.close()


def test_a_throttled_client_is_an_error_of_the_model(
    table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = bedrock.connect()
    monkeypatch.setattr(bedrock, "_client", client)
    search._known.clear()
    with Stubber(client) as stubber, override_flags(ai_search_enabled=True):
        stubber.add_client_error("converse", "ThrottlingException", http_status_code=429)

        assert search.search(SENTENCE, limit=20).fallback_reason == "model_error"
    client.close()
