"""The same values through the OpenFeature standard."""

from collections.abc import Iterator

import pytest
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.event import EventDetails, ProviderEvent
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from pynamodb.expressions.operand import Path

from gameserver.models import transact
from gameserver.table import flags_key
from settings_singleton import cache, services
from settings_singleton.models import FlagsItem
from settings_singleton.openfeature import SettingsProvider
from settings_singleton.testing import override_flags
from tests.builders import NOW


@pytest.fixture
def client(stored_flags: None) -> Iterator[OpenFeatureClient]:
    cache.refresh_now()
    api.set_provider_and_wait(SettingsProvider())
    yield api.get_client()
    api.shutdown()
    api.clear_providers()


def test_every_type_of_setting_is_resolved(client: OpenFeatureClient) -> None:
    assert client.get_boolean_value("joining_enabled", False) is True
    assert client.get_integer_value("win_reward_coins", 1) == 100
    assert client.get_float_value("win_reward_coins", 1.0) == 100.0
    assert client.get_string_value("message_of_the_day", "none") == ""


async def test_it_is_the_same_in_async_code(client: OpenFeatureClient) -> None:
    assert await client.get_boolean_value_async("joining_enabled", False) is True


def test_an_override_shows_through(client: OpenFeatureClient) -> None:
    with override_flags(joining_enabled=False):
        assert client.get_boolean_value("joining_enabled", True) is False


def test_details_tell_the_revision_and_the_reason(client: OpenFeatureClient) -> None:
    details = client.get_boolean_details("joining_enabled", False)

    assert details.reason == Reason.CACHED
    assert details.flag_metadata == {"revision": 1}


def test_an_unusable_value_gives_the_safe_default_with_the_reason_error(
    client: OpenFeatureClient,
) -> None:
    broken = Path(["chat_enabled"]).set("off")
    transact(flags=FlagsItem.at(flags_key()).change([broken, FlagsItem.revision.set(2)]))
    cache.refresh_now()

    details = client.get_boolean_details("chat_enabled", True)

    assert (details.value, details.reason) == (False, Reason.ERROR)


def test_an_unknown_flag_gives_the_callers_default(client: OpenFeatureClient) -> None:
    details = client.get_boolean_details("tea_enabled", True)

    assert (details.value, details.error_code) == (True, ErrorCode.FLAG_NOT_FOUND)


@pytest.mark.parametrize("kind", ["integer", "string", "object", "float"])
def test_a_flag_of_another_type_gives_the_callers_default(
    client: OpenFeatureClient, kind: str
) -> None:
    default = {"integer": 7, "string": "seven", "object": {"seven": 7}, "float": 7.5}[kind]

    details = getattr(client, f"get_{kind}_details")("joining_enabled", default)

    assert (details.value, details.error_code) == (default, ErrorCode.TYPE_MISMATCH)


def test_changes_are_told_as_events(client: OpenFeatureClient) -> None:
    heard: list[EventDetails] = []
    client.add_handler(ProviderEvent.PROVIDER_CONFIGURATION_CHANGED, heard.append)

    services.change({"chat_enabled": False}, who="olga", why="a test", now=NOW)

    assert [event.flags_changed for event in heard] == [["chat_enabled"]]


def test_after_its_shutdown_the_provider_hears_no_more(stored_flags: None) -> None:
    cache.refresh_now()
    provider = SettingsProvider()
    api.set_provider_and_wait(provider)
    api.shutdown()
    api.clear_providers()

    services.change({"chat_enabled": False}, who="olga", why="a test", now=NOW)

    assert provider._unsubscribe is None
