"""Who gets in, what slows guessing, and what pages may load."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.admin.operators import GAMES, PARTITIONS, PLAYERS, SWITCHES, Operator, an_operator

LOGIN = "/admin/login/"
STRICT = ("'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*")


@pytest.fixture
def account() -> Operator:
    return an_operator("careful", "players.view_player")


def log_in(browser: Client, password: str, *, address: str = "10.0.0.1") -> int:
    fields = {"username": "careful", "password": password}
    return int(browser.post(LOGIN, fields, REMOTE_ADDR=address).status_code)


def test_guessing_a_password_is_locked_after_five_tries(account: Operator) -> None:
    guesser = Client()
    assert [log_in(guesser, f"guess {number}") for number in range(4)] == [200] * 4
    assert log_in(guesser, "guess 5") == 429
    # Even with the right one, from there.
    assert log_in(guesser, "password of careful") == 429
    # The operator himself still gets in from where he is.
    assert log_in(Client(), "password of careful", address="10.0.0.2") == 302


def test_a_right_password_forgets_the_wrong_ones(account: Operator) -> None:
    browser = Client()
    for _ in range(3):
        for number in range(3):
            assert log_in(browser, f"guess {number}") == 200
        assert log_in(browser, "password of careful") == 302


@pytest.mark.parametrize("change", ["disabled", "no longer staff", "new password"])
def test_an_account_that_is_closed_or_changed_is_out_at_once(
    account: Operator, change: str
) -> None:
    """X-08, for operators."""
    assert account.get(PLAYERS).status_code == 200
    user = get_user_model().objects.get(username="careful")
    if change == "disabled":
        user.is_active = False
    elif change == "no longer staff":
        user.is_staff = False
    else:
        user.set_password("another one")
    user.save()
    assert account.get(PLAYERS).status_code == 302


def test_staff_accounts_are_closed_not_deleted_so_their_log_stays(boss: Operator) -> None:
    an_operator("leaver")
    leaver = get_user_model().objects.get(username="leaver")
    assert boss.get(f"/admin/auth/user/{leaver.pk}/change/").status_code == 200
    assert boss.post(f"/admin/auth/user/{leaver.pk}/delete/", post="yes").status_code == 403
    assert get_user_model().objects.filter(username="leaver").exists()


def test_passwords_are_in_no_log(account: Operator, capfd: pytest.CaptureFixture[str]) -> None:
    """X-10: a marker, with a line break and a colour, as password and as name."""
    browser = Client()
    browser.post(LOGIN, {"username": "careful", "password": "marker-one\r\n\x1b[31mforged"})
    browser.post(LOGIN, {"username": "marker-two\r\n{}\x1b[31m", "password": "marker-one"})
    log = "".join(capfd.readouterr())
    assert "marker-one" not in log
    assert "\x1b" not in log
    assert all(line.startswith("{") for line in log.splitlines())


@pytest.mark.usefixtures("stored_flags")
def test_our_pages_load_nothing_inline_and_nothing_from_elsewhere(boss: Operator) -> None:
    for path in ("/admin/", PLAYERS, GAMES, SWITCHES, PARTITIONS, f"{SWITCHES}revisions/", "/"):
        response = boss.get(path)
        policy = response["Content-Security-Policy"]
        assert not any(source in policy.split() for source in STRICT), (path, policy)
        page = response.content.decode()
        assert re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*[^<\s]", page) is None
        assert re.search(r"<style|\sstyle=|\son[a-z]+=", page) is None
        assert re.search(r"(src|href)=\"(https?:)?//", page) is None


def test_only_the_api_documents_may_set_styles_from_their_script(boss: Operator) -> None:
    assert "style-src 'self' 'unsafe-inline'" in boss.get("/api/docs")["Content-Security-Policy"]


def test_the_session_cookie_is_not_for_scripts(account: Operator) -> None:
    browser = Client()
    log_in(browser, "password of careful")
    assert browser.cookies["sessionid"]["httponly"]
    assert browser.cookies["sessionid"]["samesite"] == "Lax"
