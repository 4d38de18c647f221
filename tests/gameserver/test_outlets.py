"""The way out to one client: bounded, in order, and closed once."""

import asyncio
from typing import Any

import pytest
import structlog

from gameserver.feeds.connection import (
    LOSSY_BYTES,
    QUEUE_BYTES,
    RESTART,
    TOO_SLOW,
    UNSENT,
    AsgiOutlet,
    retry_hint,
)
from gameserver.feeds.frames import Frame, frame
from gameserver.feeds.limits import Allowance, retry_after
from tests.gameserver.outlets import Outlet, a_connection, until


def test_a_reader_too_slow_for_the_story_is_closed_rather_than_told_it_with_gaps() -> None:
    outlet = Outlet()
    connection = a_connection(outlet)
    outlet.waiting = QUEUE_BYTES + 1
    connection.send(frame({"n": 1}))
    connection.send(frame({"n": 2}))
    assert outlet.codes == [TOO_SLOW]
    assert outlet.taken.empty()


def test_what_is_relayed_is_left_out_first() -> None:
    outlet = Outlet()
    connection = a_connection(outlet)
    outlet.waiting = LOSSY_BYTES + 1
    connection.send_lossy(frame({"n": 1}))
    connection.send(frame({"n": 2}))
    assert outlet.codes == []
    assert outlet.taken.qsize() == 1


def test_only_the_first_close_code_counts() -> None:
    outlet = Outlet()
    connection = a_connection(outlet)
    connection.close(RESTART, retry_hint("restart"))
    connection.close(TOO_SLOW, "")
    assert outlet.codes == [RESTART]
    assert connection.close_code == RESTART


def test_clients_are_told_to_come_back_at_different_times() -> None:
    assert len({retry_hint("restart") for _ in range(50)}) > 10


async def test_the_plain_way_out_keeps_order_and_counts_what_waits() -> None:
    sent: list[str] = []
    may_go = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        await may_go.wait()
        sent.append(message.get("text") or str(message["code"]))

    outlet = AsgiOutlet(send)
    for number in range(3):
        outlet.write(Frame(str(number)), QUEUE_BYTES)
    outlet.close(1000, "")
    assert outlet.waiting_bytes == 9
    may_go.set()
    await until(lambda: len(sent) == 4)
    assert sent == ["0", "1", "2", "1000"]
    await until(lambda: outlet.waiting_bytes == 0)


async def test_the_plain_way_out_counts_bytes_of_any_text() -> None:
    may_go = asyncio.Semaphore(0)

    async def send(message: dict[str, Any]) -> None:
        await may_go.acquire()

    outlet = AsgiOutlet(send)
    sizes = [len(Frame(text).wire) for text in ("é" * 100, "x", "日本")]
    for text in ("é" * 100, "x", "日本"):
        outlet.write(Frame(text), QUEUE_BYTES)
    seen = [outlet.waiting_bytes]
    for _ in sizes:
        may_go.release()
        await until(lambda: outlet.waiting_bytes != seen[-1])
        seen.append(outlet.waiting_bytes)
    assert seen == [sum(sizes), sum(sizes[1:]), sizes[2], 0]


async def test_a_reader_too_slow_leaves_nothing_counted() -> None:
    may_go = asyncio.Event()

    async def send(message: dict[str, Any]) -> None:
        await may_go.wait()

    outlet = AsgiOutlet(send)
    outlet.write(Frame("in the middle of it"), QUEUE_BYTES)
    await asyncio.sleep(0)
    outlet.write(Frame("still waiting"), QUEUE_BYTES)
    outlet.close(TOO_SLOW, "")
    assert outlet.waiting_bytes == len(Frame("in the middle of it").wire)
    may_go.set()
    await until(lambda: outlet.waiting_bytes == 0)


@pytest.mark.parametrize(
    ("error", "is_logged"), [(ConnectionResetError(), False), (RuntimeError("a fault"), True)]
)
async def test_the_plain_way_out_survives_a_client_that_is_gone_and_tells_of_faults(
    error: Exception, is_logged: bool
) -> None:
    async def send(message: dict[str, Any]) -> None:
        raise error

    unsent = UNSENT._value.get()
    with structlog.testing.capture_logs() as logs:
        outlet = AsgiOutlet(send)
        outlet.write(Frame("x"), QUEUE_BYTES)
        outlet.write(Frame("y"), QUEUE_BYTES)
        await until(lambda: outlet.waiting_bytes == 0)
    assert [line["event"] for line in logs] == ["socket_send_failed"] * is_logged
    assert UNSENT._value.get() - unsent == 1


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65_535, 65_536])
def test_a_frame_is_what_rfc_6455_says(length: int) -> None:
    from websockets.frames import Frame as TheirFrame
    from websockets.frames import Opcode

    text = "é" * (length // 2) + "x" * (length % 2)
    theirs = TheirFrame(Opcode.TEXT, text.encode()).serialize(mask=False)
    assert Frame(text).wire == theirs


def test_an_allowance_refills_with_time_and_follows_a_changed_limit() -> None:
    now, per_minute = 0.0, 60
    allowance = Allowance(lambda: per_minute, lambda: now)
    assert [allowance.take() for _ in range(20)] == [0.0] * 20
    assert allowance.take() == pytest.approx(1.0)
    now += 1.0
    assert allowance.take() == 0.0
    per_minute = 6_000
    now += 1.0
    assert all(allowance.take() == 0.0 for _ in range(100))
    assert allowance.take() > 0.0


@pytest.mark.parametrize(
    ("wait", "told"), [(0.0001, 0.1), (0.04, 0.1), (0.1, 0.1), (0.11, 0.2), (1.0, 1.0), (1.01, 1.1)]
)
def test_who_comes_back_when_told_is_not_too_early(wait: float, told: float) -> None:
    assert retry_after(wait) == told
