"""Hints: "this changed, look again". Services give them after the write; they carry no state.

Losing one only delays: whoever listens also looks by himself now and then. Listeners here are the
process's own (feeds, the settings refresher, the bridge to other processes); they must neither
block nor raise.
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
_outlets: list[Listener] = []
_lock = threading.Lock()


def listen(listener: Listener) -> Callable[[], None]:
    """Hear every hint given in this process or received from another; returns how to stop."""
    return _add(_listeners, listener)


def forward(outlet: Listener) -> Callable[[], None]:
    """Hear only the hints given in this process, to carry them to others; returns how to stop."""
    return _add(_outlets, outlet)


def give(hint: Hint) -> None:
    """Tell all listeners, here and elsewhere."""
    _tell(_outlets, hint)
    _tell(_listeners, hint)


def receive(hint: Hint) -> None:
    """Tell this process's listeners of another process's hint."""
    _tell(_listeners, hint)


def game_changed(game_id: str, game_map: str) -> None:
    """Hint that a game, and so its map's lobby lists, changed."""
    give(GameChanged(game_id, game_map))


def sessions_changed(username: str) -> None:
    """Hint that an account's sessions, role, name or ban changed."""
    give(SessionsChanged(username))


def settings_changed(revision: int) -> None:
    """Hint that the settings singleton has a new revision."""
    give(SettingsChanged(revision))


def _add(listeners: list[Listener], listener: Listener) -> Callable[[], None]:
    with _lock:
        listeners.append(listener)

    def stop() -> None:
        with _lock:
            listeners.remove(listener)

    return stop


def _tell(listeners: list[Listener], hint: Hint) -> None:
    for listener in tuple(listeners):
        try:
            listener(hint)
        except Exception as error:  # noqa: BLE001 (the write it tells of is done)
            _log.error("hint_listener_failed", hint=repr(hint), exc_info=error)
