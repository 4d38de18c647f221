"""Services raced against each other by threads of this process, on the run's engine."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from gameserver.errors import GameServerError

T = TypeVar("T")

# About as long as one transition takes.
SPREAD_SECONDS = 0.006


def at_once(
    *calls: Callable[[], T], chance: random.Random | None = None, within: float = SPREAD_SECONDS
) -> list[T | GameServerError]:
    """Let all calls go at the same instant; return what each returned or refused, in order.

    With `chance` each starts a random part of `within` seconds late: calls of unequal length would
    otherwise meet at the same point in every round, and one of them always win.

    Raises: the first error that is no domain error.
    """
    gate = threading.Barrier(len(calls))
    answers: dict[int, T | GameServerError] = {}
    broken: list[BaseException] = []

    def run(number: int, call: Callable[[], T], delay: float) -> None:
        gate.wait()
        time.sleep(delay)
        try:
            answers[number] = call()
        except GameServerError as refused:
            answers[number] = refused
        except BaseException as error:  # noqa: BLE001 (re-raised in the test's own thread)
            broken.append(error)

    threads = [
        threading.Thread(
            target=run, args=(number, call, chance.uniform(0, within) if chance else 0.0)
        )
        for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if broken:
        raise broken[0]
    return [answers[number] for number in range(len(calls))]


def dice(seed: str) -> random.Random:
    """Return chance that falls the same way in every run."""
    return random.Random(seed)


def twice_at_once(move: Callable[..., T], *args: Any) -> list[T | GameServerError]:
    """Make the same move twice at the same instant."""
    return at_once(*[partial(move, *args)] * 2)


def codes(answers: Sequence[Any]) -> list[str]:
    """Return the code of every refusal, "ok" for what succeeded."""
    return [answer.code if isinstance(answer, GameServerError) else "ok" for answer in answers]
