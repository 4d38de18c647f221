"""The bridge carries hints between processes, never at the cost of who gives them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gameserver import hints
from gameserver.feeds import bridge as bridges
from gameserver.feeds.bridge import MESSAGE_TYPE, Bridge, game_topic, lobby_topic

DEADLINE_SECONDS = 5.0


class Layer:
    """A channel layer between the bridges of one loop, which can be down or hang."""

    def __init__(self) -> None:
        self.groups: dict[str, set[str]] = {}
        self.channels: dict[str, asyncio.Queue[Any]] = {}
        self.is_down = False
        self.hangs = False
        self.sent = 0

    async def _reach(self) -> None:
        if self.hangs:
            await asyncio.sleep(60)
        if self.is_down:
            raise ConnectionError("the layer is down")

    async def new_channel(self) -> str:
        await self._reach()
        name = f"channel{len(self.channels)}"
        self.channels[name] = asyncio.Queue()
        return name

    async def group_add(self, group: str, channel: str) -> None:
        await self._reach()
        self.groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        await self._reach()
        self.groups[group].discard(channel)

    async def group_send(self, group: str, message: Any) -> None:
        await self._reach()
        self.sent += 1
        for channel in self.groups.get(group, ()):
            self.channels[channel].put_nowait(message)

    async def receive(self, channel: str) -> Any:
        return await self.channels[channel].get()

    async def flush(self) -> None:
        pass


class Process:
    """One process's bridge, and what came over it."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []
        self.gaps: list[str | None] = []
        self.bridge = Bridge(lambda *said: self.said.append(said), self.gaps.append)


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> Layer:
    layer = Layer()
    monkeypatch.setattr(bridges, "get_channel_layer", lambda: layer)
    monkeypatch.setattr(bridges, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(bridges, "SEND_TIMEOUT_SECONDS", 0.2)
    return layer


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> list[hints.Hint]:
    """The hints that came from other processes."""
    received: list[hints.Hint] = []
    monkeypatch.setattr(hints, "receive", received.append)
    return received


@pytest.fixture
async def two(layer: Layer) -> AsyncIterator[tuple[Process, Process]]:
    async with running() as one, running() as other:
        await until(lambda: len(layer.groups.get("everyone", ())) == 2)
        # Only one gives hints here; both live in one process.
        assert other.bridge._stop_forwarding is not None
        other.bridge._stop_forwarding()
        other.bridge._stop_forwarding = None
        yield one, other


@asynccontextmanager
async def running() -> AsyncIterator[Process]:
    process = Process()
    process.bridge.start()
    yield process
    await process.bridge.stop()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not is_so():  # noqa: ASYNC110 (a state, which sets no event)
            await asyncio.sleep(0.01)


async def test_every_process_hears_of_sessions_and_settings(
    two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    hints.sessions_changed("ada")
    hints.settings_changed(7)
    await until(lambda: len(received) == 2)
    assert received == [hints.SessionsChanged("ada"), hints.SettingsChanged(7)]


async def test_hints_given_in_threads_are_carried_too(
    two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    await asyncio.to_thread(hints.sessions_changed, "ada")
    await until(lambda: bool(received))


async def test_games_are_heard_only_by_those_who_watch_them(
    layer: Layer, two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    _, other = two
    other.bridge.subscribe(game_topic("g1"))
    other.bridge.subscribe(lobby_topic("open-ocean"))
    await until(lambda: lobby_topic("open-ocean") in layer.groups)
    hints.game_changed("g2", "dirty-desert")
    hints.game_changed("g1", "juicy-jungle")
    hints.game_changed("g3", "open-ocean")
    await until(lambda: len(received) == 2)
    assert {hint.game_id for hint in received if isinstance(hint, hints.GameChanged)} == {
        "g1",
        "g3",
    }
    other.bridge.unsubscribe(game_topic("g1"))
    await until(lambda: not layer.groups[game_topic("g1")])


async def test_a_new_subscription_is_a_gap_to_look_behind(two: tuple[Process, Process]) -> None:
    one, _ = two
    one.bridge.subscribe(game_topic("g1"))
    await until(lambda: game_topic("g1") in one.gaps)


async def test_a_burst_of_the_same_hint_is_sent_once(
    layer: Layer, two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    sent = layer.sent
    for _ in range(100):
        hints.sessions_changed("ada")
    await until(lambda: bool(received))
    assert layer.sent - sent == 1
    assert len(received) == 1


async def test_what_is_said_arrives_in_order_and_not_at_who_said_it(
    layer: Layer, two: tuple[Process, Process]
) -> None:
    one, other = two
    for process in two:
        process.bridge.subscribe("game.g")
    await until(lambda: len(layer.groups.get("game.g", ())) == 2)
    for number in range(20):
        one.bridge.say("game.g", "game.relay", str(number))
    await until(lambda: len(other.said) == 20)
    assert [text for _, _, text in other.said] == [str(number) for number in range(20)]
    assert one.said == []


async def test_a_layer_that_is_down_costs_the_giver_nothing_and_is_a_gap_when_it_is_back(
    layer: Layer, two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    one, _ = two
    layer.is_down = True
    for number in range(100):
        hints.sessions_changed(f"player{number}")
    await until(lambda: not one.bridge._is_up)
    layer.is_down = False
    await until(lambda: None in one.gaps)
    hints.sessions_changed("ada")
    await until(lambda: hints.SessionsChanged("ada") in received)


async def test_a_layer_that_hangs_is_given_up_in_time(
    layer: Layer, two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    one, _ = two
    layer.hangs = True
    hints.sessions_changed("ada")
    await until(lambda: not one.bridge._is_up)
    layer.hangs = False
    hints.sessions_changed("ben")
    await until(lambda: hints.SessionsChanged("ben") in received)


async def test_messages_of_another_release_are_ignored(
    layer: Layer, two: tuple[Process, Process], received: list[hints.Hint]
) -> None:
    strange: list[dict[str, Any]] = [
        {"type": "game.start", "game_id": "g"},
        {"type": MESSAGE_TYPE},
        {"type": MESSAGE_TYPE, "origin": "x", "hints": [["Unheard", 1]], "said": []},
        {"type": MESSAGE_TYPE, "origin": "x", "hints": [["SessionsChanged", 1, 2]], "said": []},
    ]
    for message in strange:
        await layer.group_send("everyone", message)
    hints.sessions_changed("ada")
    await until(lambda: bool(received))
    assert received == [hints.SessionsChanged("ada")]


async def test_what_waits_is_bounded(layer: Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridges, "MAX_WAITING_TOPICS", 10)
    layer.hangs = True
    async with running() as process:
        for number in range(100):
            process.bridge.say(f"game.{number}", "game.relay", "x" * 100_000)
            process.bridge.say("game.0", "game.relay", "x" * 100_000)
        assert len(process.bridge._parcels) == 10
        assert process.bridge._parcels["game.0"].said_bytes < 500_000


async def test_a_layer_that_breaks_at_the_end_does_not_keep_the_bridge_from_ending(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running() as process:
        await until(lambda: "everyone" in layer.groups)
        layer.is_down = True
        monkeypatch.setattr(layer, "flush", layer._reach)
        tasks = process.bridge._tasks
        process.bridge.say("game.g", "game.relay", "1")
        lost = bridges.LOST._value.get()
    assert all(task.done() for task in tasks)
    assert bridges.LOST._value.get() == lost + 1


async def test_a_layer_in_memory_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process()
    process.bridge.start()
    assert not process.bridge.reaches_others
    process.bridge.say("game.g", "game.relay", "1")
    assert process.bridge._parcels == {}
    await process.bridge.stop()


async def test_a_service_is_not_slowed_by_a_layer_that_hangs(
    layer: Layer, two: tuple[Process, Process]
) -> None:
    layer.hangs = True
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for _ in range(1000):
        hints.game_changed("g", "open-ocean")
    assert loop.time() - begin < 0.2
