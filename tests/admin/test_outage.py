"""The admin while the table does not answer."""

import pytest

from gameserver import dashboard
from gameserver.errors import TryAgain
from gameserver.models import Item
from tests.admin.operators import (
    DASHBOARD,
    GAMES,
    PARTITIONS,
    PLAYERS,
    SWITCHES,
    Operator,
    admin_log,
)
from tests.builders import a_player

PAGES = [PLAYERS, f"{PLAYERS}alice/change/", GAMES, f"{PARTITIONS}?pk=USER%23alice", DASHBOARD]


class Down:
    """A connection to a table that does not answer."""

    def __getattr__(self, name: str) -> object:
        raise TryAgain


@pytest.mark.usefixtures("stored_flags")
def test_pages_say_that_the_table_does_not_answer(
    boss: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_player("alice")
    dashboard.forget()
    with monkeypatch.context() as down:
        down.setattr(Item, "_shared", Down())
        for page in PAGES:
            response = boss.get(page)
            assert response.status_code == 503, page
            assert "could not finish this in time" in response.content.decode()
        response = boss.act(PLAYERS, "alice", "ban", hours="24")
        assert response.status_code == 503
        # What he typed is still there.
        assert "Because of a test" in response.content.decode()
        assert boss.get("/admin/").status_code == 200
        assert boss.get(SWITCHES).status_code == 503
    assert admin_log() == []
    assert boss.act(PLAYERS, "alice", "ban", hours="24").status_code == 302
