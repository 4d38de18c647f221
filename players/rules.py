"""What names and passwords may be, as pure functions."""

import re
import unicodedata
from datetime import datetime

from gameserver.errors import Banned, ValidationFailed
from gameserver.times import rfc3339

USERNAME = re.compile(r"[a-z0-9_-]{3,20}")
# Shown in place of deleted accounts, so nobody may be called that.
DELETED_PLAYER = "deleted-player"
RESERVED = frozenset({DELETED_PLAYER})
GUEST_PREFIX = "guest-"
DISPLAY_NAME_LENGTH = 32
# Letters and symbols that show nothing: Hangul fillers and the empty Braille pattern.
BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
# Source: NIST SP 800-63B, 5.1.1.2: at least 8 characters; the upper bound caps hashing work.
PASSWORD_LENGTHS = (8, 128)


def canonical_username(text: str) -> str:
    """Return the one form of a username: NFKC, casefolded, `[a-z0-9_-]{3,20}`.

    Raises: ValidationFailed (`validation_error`).
    """
    username = unicodedata.normalize("NFKC", text).casefold()
    if not USERNAME.fullmatch(username):
        raise ValidationFailed("A username has 3 to 20 of the characters a-z, 0-9, _ and -.")
    return username


def check_new_username(username: str) -> None:
    """Raises: ValidationFailed for names that only the system gives."""
    if username in RESERVED or username.startswith(GUEST_PREFIX):
        raise ValidationFailed("This username is reserved.")


def clean_display_name(text: str) -> str:
    """Return a display name in NFC, without surrounding space: 1 to 32 visible characters.

    Raises: ValidationFailed (`validation_error`) for empty, invisible or control characters.
    """
    name = unicodedata.normalize("NFC", text).strip()
    if not 1 <= len(name) <= DISPLAY_NAME_LENGTH:
        raise ValidationFailed(f"A display name has 1 to {DISPLAY_NAME_LENGTH} characters.")
    # C*: control, format (zero-width, direction marks), surrogate, private, unassigned.
    # Emoji joiners are format characters, too: allowed between visible ones.
    forbidden = [c for c in name if unicodedata.category(c)[0] == "C" and c != "\u200d"]
    if forbidden or not any(_is_visible(c) for c in name):
        raise ValidationFailed("A display name has visible characters only.")
    return name


def _is_visible(character: str) -> bool:
    # Letters, numbers, punctuation and symbols; a mark is nothing without one of them.
    return unicodedata.category(character)[0] in "LNPS" and character not in BLANKS


def check_password(password: str) -> None:
    """Raises: ValidationFailed unless it has 8 to 128 characters."""
    shortest, longest = PASSWORD_LENGTHS
    if not shortest <= len(password) <= longest:
        raise ValidationFailed(f"A password has {shortest} to {longest} characters.")


def check_not_banned(banned_until: datetime | None, now: datetime) -> None:
    """Raises: Banned (`banned`) with `until`."""
    if banned_until is not None and banned_until > now:
        raise Banned(until=rfc3339(banned_until))
