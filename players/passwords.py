"""Hash passwords in a small pool of their own: argon2 takes 0.3 s of CPU and much memory each.

So a wave of logins waits in line here instead of taking the threads that games need.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password

from gameserver.errors import TryAgain

# Longer lines than this would outlast any client's patience.
WAITING_PER_THREAD = 8

T = TypeVar("T")

_pool = ThreadPoolExecutor(settings.PASSWORD_THREADS, thread_name_prefix="passwords")
_places = BoundedSemaphore(settings.PASSWORD_THREADS * (1 + WAITING_PER_THREAD))


def hash_password(password: str) -> str:
    """Return Django's encoded argon2 hash. Blocks for its turn.

    Raises: TryAgain (`try_again`) when too many wait already.
    """
    return _in_turn(lambda: make_password(password))


def is_password(password: str, password_hash: str | None) -> bool:
    """Compare; takes as long without a hash (no such user), so that names cannot be probed.

    Raises: TryAgain (`try_again`) when too many wait already.
    """

    def compare() -> bool:
        if password_hash is None:
            make_password(password)
            return False
        return check_password(password, password_hash)

    return _in_turn(compare)


def _in_turn(work: Callable[[], T]) -> T:
    if not _places.acquire(blocking=False):
        raise TryAgain("Too many people are signing in. Try again.", retry_after=2)
    try:
        future: Future[T] = _pool.submit(work)
        return future.result()
    finally:
        _places.release()
