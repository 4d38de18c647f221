"""Hints: "this changed, look again". Services give them after the write; they carry no state.

Losing one only delays: whoever listens also looks by himself now and then. Listeners here are the
process's own (feeds, the settings refresher); they must neither block nor raise.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GameChanged:
    """A game has a newer version; its map tells which lobby lists show it."""

    game_id: str
    map: str


@dataclass(frozen=True)
class SessionsChanged:
    """An account's sessions, role, name or ban changed: believe nothing older."""

    username: str


@dataclass(frozen=True)
class SettingsChanged:
    """The settings singleton has this revision, or a newer one."""

    revision: int


Hint = GameChanged | SessionsChanged | SettingsChanged
Listener = Callable[[Hint], None]

_listeners: list[Listener] = []
_lock = threading.Lock()


def listen(listener: Listener) -> Callable[[], None]:
    """Hear every hint given in this process; returns how to stop."""
    with _lock:
        _listeners.append(listener)

    def stop() -> None:
        with _lock:
            _listeners.remove(listener)

    return stop


def give(hint: Hint) -> None:
    """Tell all listeners. A broken listener is logged: the write it tells of has been done."""
    for listener in tuple(_listeners):
        try:
            listener(hint)
        except Exception as error:  # noqa: BLE001 (the write it tells of is done)
            _log.error("hint_listener_failed", hint=repr(hint), exc_info=error)


def game_changed(game_id: str, game_map: str) -> None:
    """Hint that a game, and so its map's lobby lists, changed."""
    give(GameChanged(game_id, game_map))


def sessions_changed(username: str) -> None:
    """Hint that an account's sessions, role, name or ban changed."""
    give(SessionsChanged(username))


def settings_changed(revision: int) -> None:
    """Hint that the settings singleton has a new revision."""
    give(SettingsChanged(revision))
