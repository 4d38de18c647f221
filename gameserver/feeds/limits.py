"""How much one client may send."""

import math
from collections.abc import Callable

# A full allowance is what a client may send at once: ten seconds' worth, but never less than 20.
BURST_SECONDS = 10.0
SMALLEST_BURST = 20.0


class Allowance:
    """A token bucket whose rate is asked anew each time, so that a changed limit holds at once."""

    __slots__ = ("_clock", "_per_minute", "_tokens", "_updated_at")

    def __init__(self, per_minute: Callable[[], int], clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._tokens = _burst(per_minute() / 60)
        self._updated_at = clock()

    def take(self, cost: float = 1.0) -> float:
        """Spend tokens and return 0, or return the seconds after which there are enough."""
        now = self._clock()
        rate = self._per_minute() / 60
        self._tokens = min(_burst(rate), self._tokens + (now - self._updated_at) * rate)
        self._updated_at = now
        if self._tokens >= cost:
            self._tokens -= cost
            return 0.0
        return (cost - self._tokens) / rate


def _burst(rate: float) -> float:
    return max(SMALLEST_BURST, rate * BURST_SECONDS)


def retry_after(wait: float) -> float:
    """Round a wait up to tenths of a second: who comes back after it is not too early."""
    return max(0.1, math.ceil(wait * 10) / 10)
