"""Times leave the server in one form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import BaseModel

from gameserver.times import Timestamp, rfc3339


class Something(BaseModel):
    at: Timestamp | None


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2026, 11, 30, 23, 51, 44, 536908, UTC), "2026-11-30T23:51:44.536908Z"),
        (datetime(2026, 11, 30, 23, 51, 44, tzinfo=UTC), "2026-11-30T23:51:44.000000Z"),
        (
            datetime(2026, 12, 1, 5, 36, 44, tzinfo=timezone(timedelta(hours=5, minutes=45))),
            "2026-11-30T23:51:44.000000Z",
        ),
    ],
)
def test_a_time_is_in_utc_with_microseconds(time: datetime, text: str) -> None:
    assert rfc3339(time) == text
    something = Something(at=time)
    # ninja dumps to Python values, the socket to JSON values.
    assert something.model_dump() == something.model_dump(mode="json") == {"at": text}
    assert Something.model_validate({"at": text}) == something


def test_no_time_is_null() -> None:
    assert Something(at=None).model_dump() == {"at": None}


def test_texts_sort_as_the_times_do() -> None:
    second = datetime(2026, 11, 30, 23, 51, 44, tzinfo=UTC)
    times = [second + timedelta(microseconds=count) for count in (0, 1, 500_000, 999_999)]
    assert sorted(times) == sorted(times, key=rfc3339)
