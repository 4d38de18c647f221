"""Settings for one test, without a table: `override_flags(signup_enabled=False)`."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from settings_singleton import cache
from settings_singleton.registry import Value, check_all

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@contextmanager
def fresh_flags() -> Iterator[None]:
    """Begin and end with nothing read, so that one test's table does not reach into the next."""
    cache.stop()
    cache.forget()
    try:
        yield
    finally:
        cache.stop()
        cache.forget()


class override_flags:  # noqa: N801 (reads like django.test.override_settings)
    """Lay values over the settings in this process, in every thread; nothing is written.

    Works as decorator of plain and async functions, and in `with` and `async with`; nests. While
    nothing was read from a table, settings that are not named hold their first values.

    Raises: ValidationFailed for an unknown name or a value that the registry refuses.
    """

    def __init__(self, **values: Value) -> None:
        self._values = check_all(values)
        self._ends: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        # A copy each time, so that the same object can be entered again inside itself.
        self._ends.append(cache.override(dict(self._values)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ends.pop()()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: FunctionT) -> FunctionT:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def in_loop(*args: Any, **kwargs: Any) -> Any:
                async with type(self)(**self._values):
                    return await function(*args, **kwargs)

            return cast(FunctionT, in_loop)

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            with type(self)(**self._values):
                return function(*args, **kwargs)

        return cast(FunctionT, plain)
