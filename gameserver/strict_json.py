"""JSON that can be stored and given back unchanged, and nothing else."""

import json
import math
from typing import Any, NoReturn


def loads(text: str) -> Any:
    """Return the value of a JSON text.

    Raises: ValueError for NaN, infinities, lone surrogates, NUL, numbers or nesting beyond what
    Python reads, and anything that is not JSON.
    """
    try:
        value = _decode(text)
        # Only an escape can smuggle these past the decoding of UTF-8 and JSON's grammar.
        if "\\u" in text:
            _check_texts(value)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value:
            _refuse("NUL")
        # Raises UnicodeEncodeError, a ValueError, for a lone surrogate.
        value.encode()
    elif isinstance(value, list):
        for each in value:
            _check_texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            _check_texts(name)
            _check_texts(each)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not allowed")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(text)
    return number


# Made once: `json.loads` with arguments makes a decoder for every call.
_decode = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite_float).decode
