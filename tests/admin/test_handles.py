"""A-04: what operators' requests open in the server is closed again."""

import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

import httpx

from tests.admin.operators import DASHBOARD, GAMES, PARTITIONS, PLAYERS, SWITCHES
from tests.servers import POLL_SECONDS, Server

LOGIN, LOGOUT = "/admin/login/", "/admin/logout/"
PAGES = ("/admin/", PLAYERS, GAMES, SWITCHES, PARTITIONS, DASHBOARD, "/admin/auth/user/")
STAFF = re.compile(r"Staff account, shown this once: (\S+) / (\S+)")
OPERATORS = 5
REQUESTS_EACH = 20
# The server may hear of a closed connection after its client is gone.
SETTLED_SECONDS = 5.0


def visit(server: Server) -> int:
    """Sign in, look around, sign out; return how many requests that took."""
    found = STAFF.search(server.output)
    assert found is not None
    with httpx.Client(base_url=server.url, timeout=30) as browser:

        def send(page: str, **fields: str) -> int:
            form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"], **fields}
            return browser.post(page, data=form).status_code

        codes = [browser.get(LOGIN).status_code]
        codes += [send(LOGIN, username=found[1], password=found[2])]
        pages = list(islice(cycle(PAGES), REQUESTS_EACH - 3))
        codes += [browser.get(page).status_code for page in pages]
        codes += [send(LOGOUT)]
    assert codes == [200, 302, *[200] * len(pages), 200]
    return len(codes)


def handles(server: Server) -> Counter[str]:
    """Count a server's threads and its open files, by kind."""
    process = Path(f"/proc/{server.pid}")
    found = Counter(threads=len(list((process / "task").iterdir())))
    for descriptor in (process / "fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except FileNotFoundError:
            # Closed since it was listed.
            continue
        found["database" if "staff.sqlite3" in target else target.partition(":")[0]] += 1
    return found


def test_200_requests_of_operators_leave_no_more_open_than_100(server: Server) -> None:
    # All at once, so that what they share, such as connections to the table, grows as it will.
    with ThreadPoolExecutor(OPERATORS) as operators:
        assert sum(operators.map(visit, [server] * OPERATORS)) == 100
    after_100 = handles(server)
    assert after_100["database"] >= 1
    # One after the other, so that any more is what somebody forgot.
    assert sum(visit(server) for _ in range(OPERATORS)) == 100
    deadline = time.monotonic() + SETTLED_SECONDS
    while (more := handles(server) - after_100) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    assert not more
