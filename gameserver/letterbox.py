"""Hints from management commands to the server on the same `DATA_DIR`, through a socket in it.

Servers that share a table hear each other over Redis; this is for the one process that needs none.
A letter that gets lost costs what any lost hint costs: the wait for the next poll.
"""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path

import structlog

from gameserver import hints

NAME = "letterbox.sock"
LETTER_BYTES = 4_096
KINDS = {kind.__name__: kind for kind in (*hints.Hint.__args__,)}

_log = structlog.get_logger(__name__)


@contextmanager
def open_letterbox(data_dir: Path) -> Iterator[None]:
    """Receive letters in a thread of its own, inside the block."""
    path = data_dir / NAME
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as box:
        try:
            path.unlink(missing_ok=True)
            box.bind(str(path))
        except OSError as error:
            # A path longer than 107 bytes, or a file system without sockets.
            _log.warning("no_letterbox", path=str(path), error=str(error))
            yield
            return
        thread = threading.Thread(target=_read, args=(box,), name="letterbox", daemon=True)
        thread.start()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            with suppress(OSError):
                box.shutdown(socket.SHUT_RD)
            thread.join(1)


@contextmanager
def posted_hints(data_dir: Path) -> Iterator[None]:
    """Post the hints that are given inside the block to the server on `data_dir`, if one runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)

        def post(hint: hints.Hint) -> None:
            letter = json.dumps([type(hint).__name__, *astuple(hint)]).encode()
            # Nobody reads, or not fast enough.
            with suppress(OSError):
                sender.sendto(letter, os.fspath(data_dir / NAME))

        stop = hints.forward(post)
        try:
            yield
        finally:
            stop()


def _read(box: socket.socket) -> None:
    while letter := box.recv(LETTER_BYTES):
        try:
            kind, *fields = json.loads(letter)
            hint = KINDS[kind](*fields)
        except (ValueError, KeyError, TypeError):
            _log.warning("letter_unreadable")
            continue
        hints.receive(hint)
