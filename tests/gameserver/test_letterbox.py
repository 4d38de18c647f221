import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gameserver import hints
from gameserver.letterbox import NAME, open_letterbox, posted_hints

HINTS = (
    hints.SettingsChanged(7),
    hints.GameChanged("a-game", "dirty-desert"),
    hints.SessionsChanged("alice"),
)


@pytest.fixture
def heard() -> Iterator[queue.Queue[tuple[str, hints.Hint]]]:
    """What listeners hear, with the thread they hear it in."""
    told: queue.Queue[tuple[str, hints.Hint]] = queue.Queue()
    stop = hints.listen(lambda hint: told.put((threading.current_thread().name, hint)))
    yield told
    stop()


def test_hints_of_a_command_reach_the_server_on_the_same_data(
    tmp_path: Path, heard: queue.Queue[tuple[str, hints.Hint]]
) -> None:
    with open_letterbox(tmp_path), posted_hints(tmp_path):
        for hint in HINTS:
            hints.give(hint)
        told = [heard.get(timeout=5) for _ in range(2 * len(HINTS))]

    # This one process is both: it hears its own, too.
    assert [hint for thread, hint in told if thread == "letterbox"] == list(HINTS)


def test_a_command_does_not_mind_that_nobody_reads(tmp_path: Path) -> None:
    with posted_hints(tmp_path):
        hints.give(HINTS[0])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / NAME))
    with posted_hints(tmp_path):
        hints.give(HINTS[0])


def test_a_server_takes_over_the_letterbox_of_a_killed_one_and_takes_it_away(
    tmp_path: Path,
) -> None:
    (tmp_path / NAME).touch()
    with open_letterbox(tmp_path):
        assert (tmp_path / NAME).is_socket()
    assert not (tmp_path / NAME).exists()
    assert "letterbox" not in {thread.name for thread in threading.enumerate()}


def test_a_letter_that_can_not_be_read_is_passed_over(
    tmp_path: Path, heard: queue.Queue[tuple[str, hints.Hint]]
) -> None:
    with (
        open_letterbox(tmp_path),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        for letter in (b"\xff", b"[]", b"{}", b"7", b'["Nothing", 1]', b'["SettingsChanged"]'):
            sender.sendto(letter, str(tmp_path / NAME))
        sender.sendto(b'["SettingsChanged", 7]', str(tmp_path / NAME))
        assert heard.get(timeout=5) == ("letterbox", hints.SettingsChanged(7))


def test_a_server_whose_data_has_no_room_for_a_letterbox_runs_without(tmp_path: Path) -> None:
    with open_letterbox(tmp_path / ("long" * 30)):
        pass
