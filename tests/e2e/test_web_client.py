"""The web client in a real browser: two guests play a game, and one comes back to his."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.servers import Server

# A drop is told two seconds after it.
SOON_MS = 20_000
CHROMIUM = "/usr/bin/chromium"
# Root may not use the sandbox; nothing here looks outside.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def a_guest(browser: Browser, server: Server, errors: list[str]) -> Page:
    """A guest in a browser of his own, in the lobby; what his page's scripts throw is collected."""
    page = browser.new_context().new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server.url}/")
    page.get_by_role("button", name="Play as a guest").click()
    expect(page.get_by_role("heading", name="Open games")).to_be_visible()
    return page


def test_two_guests_find_each_other_and_play_to_the_end(browser: Browser, server: Server) -> None:
    errors: list[str] = []
    host, other = (a_guest(browser, server, errors) for _ in range(2))
    host.locator("select[name=map]").select_option("dirty-desert")
    host.get_by_role("button", name="Create").click()

    # The other's list learns of it by itself.
    row = other.locator("#games tr", has_text="Dirty Desert")
    row.get_by_role("button", name="Join").click()
    expect(host.locator("#players li")).to_have_count(2)
    other.get_by_placeholder("Say something").fill("hello")
    other.get_by_role("button", name="Send").click()
    expect(host.locator("#log")).to_contain_text("hello")

    host.get_by_role("button", name="Start").click()
    other.get_by_role("button", name="Eliminate").click()
    expect(host.locator("#game-state")).to_contain_text("Won by")
    expect(host.locator("#players li.out")).to_have_count(1)
    expect(other.locator("#players li.winner")).to_have_count(1)

    other.get_by_role("button", name="Back to the lobby").click()
    winner = other.locator("#me").inner_text()
    expect(other.locator("#leaders")).to_contain_text(f"{winner}: 1 wins, 1 kills")
    assert errors == []


def test_a_guest_who_reloads_is_back_in_his_game(browser: Browser, server: Server) -> None:
    errors: list[str] = []
    page = a_guest(browser, server, errors)
    page.get_by_role("button", name="Create").click()
    expect(page.locator("#players li")).to_have_count(1)
    page.reload()
    expect(page.locator("#game-state")).to_contain_text("Waiting: 1 of 50")
    assert errors == []


def test_a_guest_whose_page_is_closed_is_shown_as_away_until_he_is_back(
    browser: Browser, server: Server
) -> None:
    errors: list[str] = []
    host, other = (a_guest(browser, server, errors) for _ in range(2))
    host.locator("select[name=map]").select_option("dirty-desert")
    host.get_by_role("button", name="Create").click()
    row = other.locator("#games tr", has_text="Dirty Desert")
    row.get_by_role("button", name="Join").click()
    seats = host.locator("#players")
    expect(seats.locator("li")).to_have_count(2)
    device = other.context
    other.close()
    expect(seats).to_contain_text("away", timeout=SOON_MS)
    device.new_page().goto(f"{server.url}/")
    expect(host.locator("#log")).to_contain_text("is back")
    expect(seats).not_to_contain_text("away")
    assert errors == []


def test_a_refusal_is_told_to_the_player(browser: Browser, server: Server) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{server.url}/")
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("Username or password is wrong.")
