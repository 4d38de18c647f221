"""The small items beside games: who holds them, when they end, and who loses."""

from datetime import timedelta

import pytest

from gameserver import table
from gameserver.models import transact
from matches.access_patterns.scenario import NOW
from matches.models import Lease, QuickJoinPointer, RequestRecord
from tests.raw import refusals

pytestmark = pytest.mark.usefixtures("table")

MINUTE = timedelta(minutes=1)


def a_record(game_id: str = "first") -> RequestRecord:
    return RequestRecord.new("ada", "key", "hash", game_id, expires_at=NOW + MINUTE)


def test_the_slower_of_two_quick_joins_sees_the_pointer_of_the_faster() -> None:
    transact(pointer=QuickJoinPointer.swap("open-ocean", None, "first"))
    late = QuickJoinPointer.swap("open-ocean", None, "second")
    pointer = refusals(lambda: transact(pointer=late))["pointer"]
    assert isinstance(pointer, QuickJoinPointer)
    assert pointer.game_id == "first"
    transact(pointer=QuickJoinPointer.swap("open-ocean", "first", "second"))
    assert set(
        refusals(lambda: transact(pointer=QuickJoinPointer.swap("open-ocean", "first", "third")))
    ) == {"pointer"}


def test_a_repeated_request_finds_the_record_of_the_first() -> None:
    # T-08
    transact(request=a_record().claim(now=NOW))
    record = refusals(lambda: transact(request=a_record("second").claim(now=NOW)))["request"]
    assert isinstance(record, RequestRecord)
    assert record.game_id == "first"


def test_an_expired_record_is_gone_although_it_is_still_there() -> None:
    #
    transact(request=a_record().claim(now=NOW))
    transact(request=a_record("second").claim(now=NOW + 2 * MINUTE))
    record = RequestRecord.read(table.request_key("ada", "key"))
    assert record is not None
    assert record.game_id == "second"


def test_one_process_holds_a_lease_renews_it_and_loses_it_by_time() -> None:
    #
    def take(owner: str, minutes: int) -> bool:
        now = NOW + minutes * MINUTE
        return Lease.take("sweep", owner, now=now, until=now + 2 * MINUTE)

    assert take("a", 0)
    assert not take("b", 1)
    assert take("a", 1)
    assert not take("b", 2)
    assert take("b", 4)
    assert not take("a", 4)
