from typing import Any

import pytest
from django.core import signing
from hypothesis import given, settings
from hypothesis import strategies as st

from gameserver import cursors
from gameserver.errors import InvalidCursor

QUERY = "games:OPEN:*"
POSITION = {"PK": {"S": "GAME#1"}, "SK": {"S": "USER#alice"}}


@pytest.mark.parametrize("position", [POSITION, "2026-01-01T00:00:00+00:00#1", "", "\U0001f600", 7])
def test_a_cursor_gives_its_position_back(position: Any) -> None:
    assert cursors.load(QUERY, cursors.dump(QUERY, position)) == position


def test_a_cursor_continues_its_own_query_only() -> None:
    cursor = cursors.dump(QUERY, POSITION)

    for other in ("games:PRIVATE:*", "games:OPEN:dirty-desert", "history:alice", ""):
        with pytest.raises(InvalidCursor):
            cursors.load(other, cursor)


def test_what_the_same_key_signed_for_something_else_is_no_cursor() -> None:
    for text in (signing.dumps(POSITION), signing.Signer(salt=f"cursor:{QUERY}").sign("x")):
        with pytest.raises(InvalidCursor):
            cursors.load(QUERY, text)


def test_a_cursor_longer_than_any_of_ours_is_not_even_looked_at() -> None:
    with pytest.raises(InvalidCursor):
        cursors.load(QUERY, cursors.dump(QUERY, "x" * 2_000))


@settings(derandomize=True, max_examples=200)
@given(st.text(max_size=100))
def test_any_other_text_is_refused_cleanly(text: str) -> None:
    with pytest.raises(InvalidCursor):
        cursors.load(QUERY, text)


@settings(derandomize=True, max_examples=200)
@given(st.data())
def test_any_change_of_a_cursor_is_noticed(data: st.DataObject) -> None:
    cursor = cursors.dump(QUERY, POSITION)
    place = data.draw(st.integers(0, len(cursor) - 1))
    character = data.draw(st.characters().filter(lambda c: c != cursor[place]))

    # The last character of unpadded base64 has two bits that mean nothing.
    if place == len(cursor) - 1:
        return
    with pytest.raises(InvalidCursor):
        cursors.load(QUERY, cursor[:place] + character + cursor[place + 1 :])
