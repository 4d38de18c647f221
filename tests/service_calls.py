"""A call of every service that there is, with arguments under which it succeeds.

Services are found by looking; their arguments come from the tables below, by their names. One whose
arguments nobody knows is an error that says so.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any

import matches.services
import players.services
from matches.models import STARTED, Game
from matches.services import imports, lobby
from matches.services.lobby import GameOptions
from players.services import accounts
from settings_singleton import services as settings_services
from tests.builders import MAP, NOW, PASSWORD, APlayer, a_game, a_player, logged_in
from tests.matches.dumps import a_whole_dump

_numbers = count()


@dataclass
class Scene:
    """What one call may need, made when it is asked for: nobody else uses it."""

    folder: Path

    def __post_init__(self) -> None:
        self.number = next(_numbers)

    @cached_property
    def host(self) -> APlayer:
        return a_player(f"host-{self.number}")

    @cached_property
    def guest(self) -> APlayer:
        return a_player(f"guest-{self.number}")

    @cached_property
    def outsider(self) -> APlayer:
        """A player who is in no game."""
        return a_player(f"outsider-{self.number}")

    @cached_property
    def registered(self) -> APlayer:
        """A player who has a password."""
        return logged_in(accounts.sign_up(f"secret-{self.number}", PASSWORD, now=NOW)[0].username)

    @cached_property
    def lobby(self) -> Game:
        """The host's, with the guest in it."""
        return a_game(self.host, self.guest)

    @cached_property
    def match(self) -> Game:
        """The same, started."""
        return a_game(self.host, self.guest, status=STARTED)

    @cached_property
    def new_game(self) -> Game:
        return lobby.new_game(self.outsider.identity, OPTIONS, now=NOW)

    @cached_property
    def dump(self) -> Path:
        return a_whole_dump(self.folder)


Value = Callable[[Scene], Any]
OPTIONS = GameOptions(map=MAP)

# By a parameter's name, whatever the service.
USUAL: dict[str, Value] = {
    "access_token": lambda scene: scene.outsider.tokens.access_token,
    "advance": lambda scene: lambda done: None,
    "display_name": lambda scene: "Somebody Else",
    "game": lambda scene: scene.new_game,
    "game_id": lambda scene: scene.lobby.game_id,
    "game_ids": lambda scene: [scene.lobby.game_id],
    "game_map": lambda scene: MAP,
    "guest": lambda scene: accounts.guest_login(f"device-{scene.number}", now=NOW)[0].username,
    "host": lambda scene: scene.outsider.identity,
    "killer": lambda scene: scene.host.username,
    "limit": lambda scene: 20,
    "logins": lambda scene: {(scene.outsider.username, scene.outsider.identity.session_id)},
    "more": lambda scene: {},
    "now": lambda scene: NOW + timedelta(minutes=2),
    "options": lambda scene: OPTIONS,
    "owner": lambda scene: f"process-{scene.number}",
    "password": lambda scene: PASSWORD,
    "player": lambda scene: scene.outsider.identity,
    "process_id": lambda scene: f"process-{scene.number}",
    "reason": lambda scene: "Because of a test",
    "refresh_token": lambda scene: scene.outsider.tokens.refresh_token,
    "reporter": lambda scene: scene.host.identity,
    "revision": lambda scene: 1,
    "roster": lambda scene: lobby.load(scene.lobby.game_id)[1],
    "session_id": lambda scene: scene.outsider.identity.session_id,
    "since": lambda scene: NOW,
    "until": lambda scene: NOW + timedelta(days=1),
    "usernames": lambda scene: [scene.guest.username],
    "victim": lambda scene: scene.guest.username,
    "who": lambda scene: "somebody",
    "why": lambda scene: "Because of a test",
}
PLAYERS, MATCHES = "players.services.", "matches.services."
# Where a name means something else, or a value that may be left out is to be given.
UNUSUAL: dict[str, dict[str, Value]] = {
    f"{PLAYERS}accounts.change_password": {
        "username": lambda scene: scene.registered.username,
        "session_id": lambda scene: scene.registered.identity.session_id,
        "old": lambda scene: PASSWORD,
        "new": lambda scene: PASSWORD[::-1],
    },
    f"{PLAYERS}accounts.guest_login": {"device_id": lambda scene: f"new-device-{scene.number}"},
    f"{PLAYERS}accounts.sign_up": {"username": lambda scene: f"new-{scene.number}"},
    f"{PLAYERS}sessions.log_in": {"username": lambda scene: scene.registered.username},
    f"{MATCHES}imports.read_dump": {"path": lambda scene: scene.dump},
    f"{MATCHES}imports.import_dump": {"file": lambda scene: imports.read_dump(scene.dump)},
    f"{MATCHES}leaving.kick_player": {"host": lambda scene: scene.host.username},
    f"{MATCHES}lobby.cancel_game": {"username": lambda scene: scene.host.username},
    f"{MATCHES}lobby.start_game": {"username": lambda scene: scene.host.username},
    f"{MATCHES}departure.current_game": {"user": lambda scene: scene.outsider.user},
    f"{MATCHES}operators.end_without_winner": {"game_id": lambda scene: scene.match.game_id},
    f"{MATCHES}play.eliminate_player": {"game_id": lambda scene: scene.match.game_id},
    f"{MATCHES}play.take_out": {"game_id": lambda scene: scene.match.game_id},
    f"{MATCHES}presence.record": {
        "present": lambda scene: [(scene.lobby.game_id, scene.guest.username)],
        "gone": lambda scene: [(scene.lobby.game_id, scene.host.username)],
    },
    "settings_singleton.services.change": {
        "changes": lambda scene: {"message_of_the_day": f"Message {scene.number}"},
    },
    "settings_singleton.services.require_flag": {"name": lambda scene: "signup_enabled"},
}


def every_service() -> dict[str, Callable[..., Any]]:
    """Find the public functions of all service modules, by their full names."""
    packages = (players.services, matches.services)
    modules = [settings_services, *packages]
    modules += [
        importlib.import_module(found.name)
        for package in packages
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return {
        f"{module.__name__}.{name}": function
        for module in modules
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


def every_call(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Prepare one call of each service; needs an empty table with a first settings item."""
    for name, service in every_service().items():
        yield name, partial(service, **arguments(name, service, Scene(folder)))


def arguments(name: str, service: Callable[..., Any], scene: Scene) -> dict[str, Any]:
    """Raises: AssertionError if a parameter is in no table."""
    own = UNUSUAL.get(name, {})
    # In a lobby, a player is the guest; alone, he is in no game.
    parameters = inspect.signature(service).parameters
    is_in_game = "game_id" in parameters or "roster" in parameters
    someone = "guest" if is_in_game else "outsider"
    known = {"username": lambda scene: getattr(scene, someone).username, **USUAL, **own}
    wanted = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is parameter.empty or parameter.name in own
    ]
    unknown = [parameter for parameter in wanted if parameter not in known]
    assert not unknown, f"tests/service_calls.py does not know {unknown} of {name}: add them there"
    return {parameter: known[parameter](scene) for parameter in wanted}
