import pytest

from gameserver.errors import ClientTooOld, Maintenance
from settings_singleton import rules


@pytest.mark.parametrize(
    ("minimum", "presented"),
    [
        ("", "0.1"),
        ("", None),
        ("1.4", None),
        ("1.4", "1.4"),
        ("1.4", "1.4.0"),
        ("1.4.0", "1.4"),
        ("1.9", "1.10"),
        ("1.4.2", "v1.4.2"),
        ("1.4.2", "1.4.2-beta+7"),
        ("1.4.2", "2"),
    ],
)
def test_a_client_that_is_new_enough_or_silent_may_pass(
    minimum: str, presented: str | None
) -> None:
    rules.check_client_version(minimum, presented)


@pytest.mark.parametrize(
    ("minimum", "presented"),
    [
        ("1.4", "1.3.9"),
        ("1.10", "1.9"),
        ("1.4.2", "1.4"),
        ("2", "1.99.99"),
        ("0", "latest"),
        ("1", ""),
    ],
)
def test_a_client_that_is_older_or_unreadable_is_told_what_it_needs(
    minimum: str, presented: str
) -> None:
    with pytest.raises(ClientTooOld) as refused:
        rules.check_client_version(minimum, presented)

    assert refused.value.extra == {"min_client_version": minimum}


def test_maintenance_says_when_to_come_back() -> None:
    with pytest.raises(Maintenance) as refused:
        rules.check_maintenance(True)

    assert refused.value.extra["retry_after"] > 0
    rules.check_maintenance(False)


@pytest.mark.parametrize(
    ("method", "path", "is_open"),
    [
        ("GET", "/api/settings", True),
        ("POST", "/api/auth/logout", True),
        ("POST", "/api/games/abc/leave", True),
        ("POST", "/api/games/abc/join", False),
        ("POST", "/api/games/abc/def/leave", False),
        ("GET", "/api/settings/../games", False),
        ("POST", "/api/settings", False),
        ("GET", "/api/games/leave", False),
        ("POST", "/api/players", False),
    ],
)
def test_only_leaving_logging_out_and_the_settings_are_always_open(
    method: str, path: str, is_open: bool
) -> None:
    assert rules.is_always_open(method, path) is is_open
