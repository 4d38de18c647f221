"""One outgoing message, serialised once for all its receivers."""

import struct
from collections.abc import Mapping
from typing import Any

import pydantic_core

_FIN_TEXT = 0x81


class Frame:
    """A message as text, and as the bytes of a WebSocket frame.

    Servers do not mask their frames, so without compression every receiver gets the same bytes.

    Source: RFC 6455, section 5.2.
    """

    __slots__ = ("text", "wire")

    def __init__(self, text: str) -> None:
        payload = text.encode()
        self.text = text
        self.wire = _header(len(payload)) + payload


def to_json(value: Any) -> str:
    """Serialise compactly; what is no JSON value (a surrogate, a NaN) was refused on its way in."""
    return pydantic_core.to_json(value).decode()


def frame(message: Mapping[str, Any]) -> Frame:
    """Serialise a message."""
    return Frame(to_json(message))


def _header(length: int) -> bytes:
    if length < 126:
        return bytes((_FIN_TEXT, length))
    if length < 65_536:
        return struct.pack("!BBH", _FIN_TEXT, 126, length)
    return struct.pack("!BBQ", _FIN_TEXT, 127, length)
