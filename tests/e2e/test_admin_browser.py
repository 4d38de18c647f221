"""Operators in a real browser: flip, kill, roll back, ban, follow a game, look by key."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.e2e.test_web_client import ARGUMENTS, CHROMIUM
from tests.servers import Server

STAFF = re.compile(r"Staff account, shown this once: (\S+) / (\S+)")
# A page follows its game within 3 s, the board its processes within 12 s.
SOON_MS = 20_000
# Not authenticated any more, or banned.
CLOSED_TO_HIM = {4401, 4403}


@pytest.fixture
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Desk:
    """An operator's browser; what its pages complain of is collected."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.server = server
        self.complaints: list[str] = []
        self.page: Page = browser.new_context().new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        # Chromium tells of refused styles and scripts, and of missing files, on its console.
        self.page.on(
            "console",
            lambda line: self.complaints.append(line.text) if line.type == "error" else None,
        )
        found = STAFF.search(server.output)
        assert found is not None
        self.open("/admin/")
        self.page.get_by_label("Username").fill(found[1])
        self.page.get_by_label("Password").fill(found[2])
        self.page.get_by_role("button", name="Log in").click()
        expect(self.page.get_by_role("link", name="Switches and settings")).to_be_visible()

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server.url}{path}")

    def follow(self, name: str) -> None:
        """Click a link or button of the page's own, not of the navigation beside it."""
        main = self.page.locator("#content-main")
        link = main.get_by_role("link", name=name, exact=True)
        # On the first page, a section may be called like what is in it.
        link.or_(main.get_by_role("button", name=name, exact=True)).last.click()

    def confirm(self, reason: str, **fields: str) -> None:
        """Fill in a form and send it."""
        for label, value in fields.items():
            self.page.locator(f"[name={label}]").fill(value)
        self.page.locator("[name=reason]").fill(reason)
        self.page.locator(".ask [type=submit]").click()

    def told(self) -> str:
        """What the page says was done."""
        return self.page.locator(".messagelist").inner_text()


@pytest.fixture
def desk(browser: Browser, server: Server) -> Desk:
    return Desk(browser, server)


class Guest:
    """A player's game client."""

    def __init__(self, server: Server, device: str) -> None:
        self.api = httpx.Client(base_url=f"{server.url}/api", timeout=10)
        body = self.api.post("/players/guest", json={"device_id": f"device-of-{device}"}).json()
        self.username = body["player"]["username"]
        self.refresh_token = body["refresh_token"]
        self.api.headers["Authorization"] = f"Bearer {body['access_token']}"

    def socket(self) -> ClientConnection:
        """Connect as a game client does."""
        token = self.api.headers["Authorization"].removeprefix("Bearer ")
        url = f"{self.api.base_url}".replace("http", "ws", 1).removesuffix("/api/")
        protocols = [Subprotocol("gameserver.v1"), Subprotocol(f"bearer.{token}")]
        return connect(f"{url}/ws/", subprotocols=protocols)

    def create_game(self) -> str:
        answer = self.api.post("/games", json={"map": "open-ocean"})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["game_id"])


def close_code(socket: ClientConnection) -> int | None:
    """Wait until the server closes; return the code that it gave."""
    with suppress(ConnectionClosed):
        while True:
            socket.recv(timeout=SOON_MS / 1000)
    return socket.close_code


NewGuest = Callable[[str], Guest]


@pytest.fixture
def a_guest(server: Server) -> Iterator[NewGuest]:
    """Sign a guest up, from a device of this name."""
    with ExitStack() as stack:

        def new(device: str) -> Guest:
            guest = Guest(server, device)
            stack.callback(guest.api.close)
            return guest

        yield new


def test_the_first_page_draws_its_charts(desk: Desk) -> None:
    expect(desk.page.locator("#dashboard-state")).to_contain_text("As of")
    expect(desk.page.locator(".charts canvas")).to_have_count(4)
    expect(desk.page.locator("#dashboard-games tbody tr")).to_have_count(5)
    expect(desk.page.locator("#dashboard-totals")).to_contain_text("players signed up")
    assert desk.complaints == []


def test_a_switch_is_flipped_killed_and_rolled_back(desk: Desk, a_guest: NewGuest) -> None:
    player = a_guest("alice")
    desk.follow("Switches and settings")
    row = desk.page.locator("tr", has_text="game_creation_enabled")
    row.get_by_role("link", name="Turn off…").click()
    expect(desk.page.locator("ins")).to_have_text("off")
    desk.confirm("Too many bots")
    assert "game_creation_enabled: on → off (revision 2)" in desk.told()
    refused = player.api.post("/games", json={"map": "open-ocean"})
    assert (refused.status_code, refused.json()["flag"]) == (503, "game_creation_enabled")

    # One click, no question.
    desk.page.locator("tr", has_text="chat_enabled").get_by_role("button", name="Kill").click()
    assert "chat_enabled: on → off (revision 3)" in desk.told()
    board = desk.page.locator("#processes tbody tr")
    expect(board).to_have_count(1)

    desk.follow("Revisions and rollback")
    desk.page.locator("tr", has_text="First values").get_by_role("link").click()
    expect(desk.page.locator("ins")).to_have_count(2)
    # What opens again is typed out.
    desk.confirm("The bots are gone", names="game_creation_enabled")
    names = "game_creation_enabled chat_enabled"
    expect(desk.page.locator(".errorlist")).to_contain_text(f"This is not {names}")
    desk.confirm("The bots are gone", names=names)
    assert "revision 4" in desk.told()
    player.create_game()
    expect(board).to_contain_text("current")

    desk.page.locator("tr", has_text="ai_search_enabled").get_by_role(
        "link", name="Turn on…"
    ).click()
    desk.confirm("It is paid for", names="ai_search_enabled")
    assert "ai_search_enabled: off → on (revision 5)" in desk.told()
    # The refused form is a 422, which Chromium reports, too.
    assert all("422" in complaint for complaint in desk.complaints)


def test_two_operators_do_not_overwrite_each_other(browser: Browser, server: Server) -> None:
    desks = [Desk(browser, server), Desk(browser, server)]
    for desk, coins in zip(desks, ("70", "50"), strict=True):
        desk.open("/admin/settings_singleton/setting/")
        desk.follow("win_reward_coins")
        desk.page.get_by_label("New value").fill(coins)
        desk.follow("See the difference")
        expect(desk.page.locator("del")).to_have_text("100")
    first, second = desks
    first.confirm("A quiet evening")
    assert "win_reward_coins: 100 → 70" in first.told()
    second.confirm("A very quiet evening")
    expect(second.page.locator(".errornote")).to_contain_text("Somebody else changed")
    expect(second.page.locator(".meanwhile")).to_contain_text("A quiet evening")
    expect(second.page.locator("del")).to_have_text("70")
    second.confirm("Still, a very quiet evening")
    assert "win_reward_coins: 70 → 50 (revision 3)" in second.told()


def test_a_games_page_follows_the_game_to_its_end(desk: Desk, a_guest: NewGuest) -> None:
    host, guest = a_guest("alice"), a_guest("bob")
    game_id = host.create_game()
    desk.follow("Games")
    desk.page.get_by_label("Game id").fill(game_id)
    desk.follow("Find")
    roster = desk.page.locator("section tbody tr")
    expect(roster).to_have_count(1)

    guest.api.post(f"/games/{game_id}/join")
    expect(roster).to_have_count(2, timeout=SOON_MS)
    roster.filter(has_text=guest.username).get_by_role("link", name="Take out").click()
    desk.confirm("Bad manners")
    expect(roster).to_have_count(1)
    guest.api.post(f"/games/{game_id}/join")
    host.api.post(f"/games/{game_id}/start")
    # Other actions are offered now.
    expect(desk.page.get_by_role("link", name="End without winner")).to_be_visible(timeout=SOON_MS)
    desk.follow("Check")
    expect(desk.page.locator("#content-main")).to_contain_text("nothing is broken")
    desk.follow("End without winner")
    desk.confirm("The host's machine is on fire", typed_id=game_id)
    expect(desk.page.locator(".facts")).to_contain_text("FINISHED")
    desk.follow("Log")
    expect(desk.page.locator("#change-history")).to_contain_text("on fire")
    assert host.api.get(f"/games/{game_id}").json()["status"] == "FINISHED"
    assert desk.complaints == []


def test_a_banned_player_is_out_and_his_secrets_stay_hidden(desk: Desk, a_guest: NewGuest) -> None:
    player = a_guest("mallory")
    desk.follow("Players")
    desk.page.get_by_label("Username").fill(player.username)
    desk.follow("Find")
    expect(desk.page.locator(".facts")).to_contain_text(player.username)
    desk.open(f"/admin/gameserver/partition/?pk=USER%23{player.username}")
    expect(desk.page.locator("#content-main")).to_contain_text("(masked)")
    assert player.refresh_token.rpartition(".")[2] not in desk.page.content()
    assert player.api.get("/players/me").status_code == 200

    desk.open(f"/admin/players/player/{player.username}/change/")
    desk.page.get_by_role("link", name="Ban", exact=True).click()
    desk.page.get_by_label("Duration").select_option("for good")
    with player.socket() as socket:
        assert "settings.snapshot" in str(socket.recv())
        desk.confirm("Cheating")
        assert close_code(socket) in CLOSED_TO_HIM
    assert "Banned for good" in desk.told()
    expect(desk.page.locator(".facts")).to_contain_text("Cheating")
    assert player.api.get("/players/me").status_code in {401, 403}

    desk.follow("Delete")
    desk.confirm("On request", typed_id=player.username)
    assert f"Deleted {player.username}" in desk.told()
    assert httpx.get(f"{desk.server.url}/api/players/{player.username}").status_code in {401, 404}
    assert desk.complaints == []
