"""Games to check, and ways to break what the services keep whole."""

from typing import Any

from gameserver.models import Item
from gameserver.table import Key
from matches.models import STARTED, Game, UserGameMapping
from matches.services import check, lobby, play
from players.models import User
from tests.builders import NOW, APlayer, a_game, players


def no_pause(seconds: float) -> None:
    """Look again at once: nothing else writes."""


def broken_in_table() -> list[str]:
    return check.check_table(pause=no_pause).broken


def a_running_game(*usernames: str) -> tuple[Game, list[APlayer]]:
    """A started game of which the second player has been eliminated by the host."""
    seated = players(*usernames)
    game = a_game(*seated, status=STARTED)
    play.take_out(game.game_id, usernames[1], usernames[0], now=NOW)
    return game, seated


def a_finished_game() -> Game:
    """Ada wins over Ben (2) and Cleo (3), both her kills."""
    seated = players("ada", "ben", "cleo")
    game = a_game(*seated, status=STARTED)
    play.take_out(game.game_id, "cleo", "ada", now=NOW)
    return play.take_out(game.game_id, "ben", "ada", now=NOW)


def change(item: Item, **values: Any) -> None:
    """Set attributes (None removes them) behind the services' backs."""
    for name, value in values.items():
        setattr(item, name, value)
    item.save()


def game_item(game: Game) -> Game:
    return lobby.existing_game(game.game_id)


def seat(game: Game, username: str) -> UserGameMapping:
    (found,) = UserGameMapping.of(username, [game.game_id])
    return found


def user(username: str) -> User:
    found = User.by_username(username, consistent=True)
    assert found is not None
    return found


def put_raw(key: Key, **attributes: str) -> None:
    item = {"PK": key[0], "SK": key[1], **attributes}
    raw = {name: {"S": value} for name, value in item.items()}
    client: Any = Item._get_connection().connection.client
    client.put_item(TableName=Item.Meta.table_name, Item=raw)
