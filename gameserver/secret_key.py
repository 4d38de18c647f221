"""The secret that signs tokens, cursors and sessions: what a good one is, and making one."""

import os
import secrets
from pathlib import Path

MIN_LENGTH = 50
MIN_DIFFERENT_CHARACTERS = 5
# Words that stand in examples, and Django's own mark for a generated development key.
PLACEHOLDERS = ("django-insecure-", "changeme", "change-me", "example", "secret-key")


def weakness(secret: str) -> str | None:
    """Say what makes `secret` unfit for production, or None.

    Source: Django's deployment check security.W009 (length, different characters, prefix).
    """
    if not secret.strip():
        return "is not set"
    if len(secret) < MIN_LENGTH:
        return f"is shorter than {MIN_LENGTH} characters"
    if len(set(secret)) < MIN_DIFFERENT_CHARACTERS:
        return f"has fewer than {MIN_DIFFERENT_CHARACTERS} different characters"
    if any(word in secret.lower() for word in PLACEHOLDERS):
        return "is a placeholder"
    return None


def load_or_create_secret(path: Path) -> str:
    """Return the secret kept in `path`, which only its owner can read; make one the first time."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Written whole under another name first: two commands started at once must agree on one.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(64))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text()
