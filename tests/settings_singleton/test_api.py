"""What anybody may read over HTTP."""

from settings_singleton import counters
from settings_singleton.registry import SETTINGS
from settings_singleton.testing import override_flags
from tests.builders import Api, ok


async def test_settings_show_the_public_ones_without_a_token(api: Api) -> None:
    with override_flags(message_of_the_day="Hello"):
        response = await api.get("/settings")

    body = ok(response)
    assert body["flags"].keys() == {name for name, each in SETTINGS.items() if each.is_public}
    assert body["flags"]["message_of_the_day"] == "Hello"
    assert body["flags"]["signup_enabled"] is True
    assert body["revision"] == 0


async def test_limits_and_time_outs_are_not_public(api: Api) -> None:
    hidden = {"requests_per_minute", "messages_per_minute", "match_timeout_seconds"}

    assert not hidden & ok(await api.get("/settings"))["flags"].keys()


async def test_unchanged_settings_are_answered_with_304_and_no_body(api: Api) -> None:
    first = await api.get("/settings")

    for header in (first.headers["ETag"], f'"other", W/{first.headers["ETag"]}', "*"):
        again = await api.send("GET", "/settings", headers={"If-None-Match": header})

        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        assert again.headers["Cache-Control"] == "no-cache"
        assert "Content-Type" not in again.headers


async def test_changed_settings_have_another_etag(api: Api) -> None:
    first = await api.get("/settings")
    with override_flags(joining_enabled=False):
        second = await api.send(
            "GET", "/settings", headers={"If-None-Match": first.headers["ETag"]}
        )

    assert ok(second)["flags"]["joining_enabled"] is False
    assert second.headers["ETag"] != first.headers["ETag"]


async def test_stats_tell_what_was_counted(api: Api) -> None:
    counters.count("eliminations", 3)
    assert counters.flush()

    stats = ok(await api.get("/stats"))

    assert stats == {"players_signed_up": 0, "games_finished": 0, "eliminations": 3}
