"""One outgoing message, serialised once for all its receivers."""

import json
import struct
from collections.abc import Mapping
from typing import Any

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


# Serialises compactly; what is no JSON value (a surrogate, a NaN) was refused on its way in.
# Made once: `json.dumps` with arguments makes an encoder for every call.
to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def frame(message: Mapping[str, Any]) -> Frame:
    """Serialise a message."""
    return Frame(to_json(message))


def _header(length: int) -> bytes:
    if length < 126:
        return bytes((_FIN_TEXT, length))
    if length < 65_536:
        return struct.pack("!BBH", _FIN_TEXT, 126, length)
    return struct.pack("!BBQ", _FIN_TEXT, 127, length)
