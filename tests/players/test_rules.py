from datetime import timedelta

import pytest

from gameserver.errors import Banned, ValidationFailed
from gameserver.times import rfc3339
from players import rules
from tests.builders import NOW


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        ("bob", "bob"),
        ("Bob", "bob"),
        ("BOB", "bob"),
        # Full-width letters and a ligature: NFKC makes them plain.
        ("\uff22\uff4f\uff42", "bob"),
        ("\ufb01sh", "fish"),
        # KELVIN SIGN
        ("\u212aate", "kate"),
        ("a_b-9", "a_b-9"),
        ("x" * 20, "x" * 20),
    ],
)
def test_every_spelling_of_a_username_has_one_canonical_form(typed: str, canonical: str) -> None:
    assert rules.canonical_username(typed) == canonical


@pytest.mark.parametrize(
    "typed",
    [
        *("", "ab", "x" * 21, "   ", "bob ", " bob", "b ob", "bob\n", "b\0b"),
        *("a#b", "GAME#1", "USER#x", "#METADATA#1", "%23", "a:b", "a/b", "../a", "a.b", "a'b"),
        # Composed and decomposed accents, another script's look-alikes, nothing visible, emoji.
        *(
            "caf\u00e9",
            "cafe\u0301",
            "b\u043eb",
            "\u0430lice",
            "\u200b\u200b\u200b",
            "\U0001f600" * 4,
        ),
        # Dotless and dotted i fold to something longer or different.
        *("b\u0130ll", "b\u0131ll"),
    ],
)
def test_anything_that_could_forge_a_key_is_no_username(typed: str) -> None:
    with pytest.raises(ValidationFailed):
        rules.canonical_username(typed)


@pytest.mark.parametrize("username", ["deleted-player", "guest-abc"])
def test_names_that_the_system_gives_are_reserved(username: str) -> None:
    with pytest.raises(ValidationFailed):
        rules.check_new_username(username)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Alice", "Alice"),
        ("  Alice \t", "Alice"),
        ("Cafe\u0301", "Caf\u00e9"),
        ("a#b", "a#b"),
        # The longest name, of 4-byte characters; a family, held together by joiners.
        ("\U0001f600" * 32, "\U0001f600" * 32),
        (
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        ),
    ],
)
def test_a_display_name_is_kept_as_it_looks(typed: str, kept: str) -> None:
    assert rules.clean_display_name(typed) == kept


@pytest.mark.parametrize(
    "typed",
    [
        *("", " ", "\u00a0\u2003", "x" * 33, "\U0001f600" * 33),
        *("a\nb", "a\0b", "\x1b[31mred", "a\u202eb", "\ud800"),
        # Nothing to see: zero-width, joiners alone, fillers that count as letters, lone marks.
        *("\u200b", "\u200d", "\u200d \u200d", "\u2060\ufeff", "\u3164", "\u115f\u1160", "\u2800"),
        *("\u0301", "\ufe0f", "\u034f"),
    ],
)
def test_a_display_name_that_nobody_can_see_is_refused(typed: str) -> None:
    with pytest.raises(ValidationFailed):
        rules.clean_display_name(typed)


@pytest.mark.parametrize("password", ["x" * 8, "x" * 128, "        ", "\U0001f600" * 8])
def test_a_password_of_8_to_128_characters_will_do(password: str) -> None:
    rules.check_password(password)


@pytest.mark.parametrize("password", ["", "x" * 7, "x" * 129])
def test_shorter_and_longer_passwords_are_refused(password: str) -> None:
    with pytest.raises(ValidationFailed):
        rules.check_password(password)


def test_a_ban_holds_until_its_end() -> None:
    until = NOW + timedelta(hours=1)

    with pytest.raises(Banned) as refused:
        rules.check_not_banned(until, NOW)
    assert refused.value.extra == {"until": rfc3339(until)}

    rules.check_not_banned(until, until)
    rules.check_not_banned(None, NOW)
