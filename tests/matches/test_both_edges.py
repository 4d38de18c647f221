"""What HTTP and the WebSocket say of one thing is the same, to the letter."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from matches.consumers.realtime import Realtime
from matches.models import STARTED
from matches.services import play
from tests.builders import NOW, Api, a_game, a_player, ok, players
from tests.sockets import Socket

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
# Whole seconds and odd fractions: libraries differ in how many digits they write.
BEGIN = NOW + timedelta(microseconds=536_908)


def times_in(value: Any) -> Iterator[str]:
    """Find what fields called `..._at` hold."""
    if isinstance(value, list):
        for one in value:
            yield from times_in(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name.endswith("_at") and one is not None:
                yield one
            else:
                yield from times_in(one)


async def test_a_game_is_the_same_over_both(api: Api, realtime: Realtime) -> None:
    host, guest, watcher = players("host", "guest", "watcher")
    for began_at in (NOW, BEGIN):
        game_id = a_game(host, guest, status=STARTED, now=began_at).game_id
        over = began_at + timedelta(minutes=2)
        play.eliminate_player(host.identity, game_id, "guest", "host", now=over)
        over_http = ok(await api.get(f"/games/{game_id}", watcher))
        async with Socket(watcher) as socket:
            await socket.accepted()
            view = (await socket.watch(game_id)).view
        assert {**view["game"], "players": view["players"]} == over_http
        times = list(times_in(over_http))
        assert len(times) == 5
        assert all(TIME.fullmatch(time) for time in times)


async def test_an_open_game_is_the_same_in_lists_and_answers(api: Api, realtime: Realtime) -> None:
    host, guest = players("host", "guest")
    game_id = a_game(host, now=BEGIN).game_id
    (listed,) = ok(await api.get("/games", guest))["items"]
    async with Socket(guest) as socket:
        await socket.accepted()
        await socket.ok("lobby.watch")
        assert (await socket.receive("lobby.snapshot"))["games"] == [listed]
        joined = (await socket.ok("game.join", game_id=game_id))["game"]
    over_http = ok(await api.get(f"/games/{game_id}", host))
    assert joined == {name: over_http[name] for name in joined}
    assert over_http.keys() - joined.keys() == {"players"}


async def test_profiles_histories_and_chat_write_times_alike(api: Api, realtime: Realtime) -> None:
    host = a_player(now=BEGIN)
    game_id = a_game(host, now=NOW).game_id
    answers = [
        ok(await api.get("/players/me", host)),
        ok(await api.get(f"/players/{host.username}/games", host)),
    ]
    async with Socket(host) as socket:
        await socket.accepted()
        await socket.watch(game_id)
        await socket.send("game.chat", game_id=game_id, text="hello")
        answers.append(await socket.receive("game.chat"))
    for answer in answers:
        (time,) = times_in(answer)
        assert TIME.fullmatch(time)
