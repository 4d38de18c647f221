import pytest

from gameserver.errors import ValidationFailed
from settings_singleton.registry import FIRST, SAFE, SETTINGS, setting


def test_the_safe_values_switch_every_feature_off_and_maintenance_on() -> None:
    switched_on = {name for name, each in SETTINGS.items() if each.is_switch and each.safe}

    assert switched_on == {"maintenance_mode"}


def test_the_first_values_open_everything_but_the_paid_search() -> None:
    switched_off = {name for name, each in SETTINGS.items() if each.is_switch and not each.first}

    assert switched_off == {"maintenance_mode", "ai_search_enabled"}
    assert FIRST.requests_per_minute == 6_000
    assert FIRST.messages_per_minute >= 20 * 60


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_accepts_its_own_safe_and_first_value(name: str) -> None:
    each = SETTINGS[name]

    assert each.check(each.safe) == getattr(SAFE, name)
    assert each.check(each.first) == getattr(FIRST, name)
    assert each.parse(each.show(each.first)) == each.first


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("signup_enabled", 1),
        ("signup_enabled", "on"),
        ("requests_per_minute", True),
        ("requests_per_minute", 0),
        ("requests_per_minute", 10**9),
        ("requests_per_minute", 60.0),
        ("min_client_version", "latest"),
        ("min_client_version", "1.2.3.4.5"),
        ("message_of_the_day", "x" * 281),
        ("message_of_the_day", "two\nlines"),
        ("message_of_the_day", None),
    ],
)
def test_a_value_of_the_wrong_type_range_or_form_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationFailed, match=name):
        setting(name).check(value)


@pytest.mark.parametrize(
    ("text", "value"), [("on", True), ("OFF", False), ("true", True), ("0", False)]
)
def test_a_switch_is_typed_as_on_or_off(text: str, value: bool) -> None:
    assert setting("chat_enabled").parse(text) is value


@pytest.mark.parametrize("text", ["", "maybe", "2", "ON!"])
def test_a_switch_refuses_any_other_word(text: str) -> None:
    with pytest.raises(ValidationFailed, match="on or off"):
        setting("chat_enabled").parse(text)


@pytest.mark.parametrize("text", ["many", "1e3", "٣٠", "-5", "99999999999999"])
def test_a_number_refuses_what_is_no_whole_number_in_range(text: str) -> None:
    with pytest.raises(ValidationFailed, match="a whole number from 10"):
        setting("requests_per_minute").parse(text)


def test_an_unknown_setting_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValidationFailed, match="Settings: signup_enabled, "):
        setting("sign_up_enabled")


@pytest.mark.parametrize(
    ("name", "before", "after", "is_dangerous"),
    [
        ("maintenance_mode", False, True, False),
        ("maintenance_mode", True, False, True),
        ("joining_enabled", True, False, False),
        ("joining_enabled", False, True, True),
        ("joining_enabled", True, True, False),
        ("requests_per_minute", 6_000, 60, True),
        ("requests_per_minute", 60, 6_000, False),
        ("win_reward_coins", 100, 1_000, True),
        ("win_reward_coins", 1_000, 100, False),
        ("min_client_version", "", "1.2", True),
        ("message_of_the_day", "", "Hello", False),
    ],
)
def test_the_dangerous_direction_of_a_setting_is_known(
    name: str, before: bool | int | str, after: bool | int | str, is_dangerous: bool
) -> None:
    assert setting(name).is_dangerous(before, after) is is_dangerous


@pytest.mark.parametrize("name", [name for name, each in SETTINGS.items() if each.is_switch])
def test_a_kill_is_never_dangerous_and_opening_always_is(name: str) -> None:
    each = setting(name)

    assert not each.is_dangerous(not each.safe, each.safe)
    assert each.is_dangerous(each.safe, not each.safe)
