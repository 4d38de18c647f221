"""Several server processes behind one listening socket, and a parent that keeps them running.

Each worker is a Python of its own (a fork would copy threads' locks and open connections), and
accepts from the socket that it inherited. They tell each other of changes over Redis.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import structlog
from django.conf import settings
from django.core.management.base import CommandError

from gameserver.engine import die_with_parent

POLL_SECONDS = 0.1
# A worker that ends sooner than this after its start is not started again at once.
SHORT_LIFE_SECONDS = 5.0
MOST_SHORT_LIVES = 3

_log = structlog.get_logger(__name__)


def check_can_share(count: int) -> None:
    """Raises: CommandError for several workers that could not tell each other of changes."""
    if count < 1:
        raise CommandError("At least one worker is needed.")
    if count > 1 and not settings.REDIS_URL:
        raise CommandError(
            f"{count} workers need REDIS_URL: without it they would not hear of each other's "
            "changes. One worker needs none."
        )


def inherited_listener(descriptor: int) -> socket.socket:
    """Return the listening socket that a worker got from its parent."""
    return socket.socket(fileno=descriptor)


class Workers:
    """The worker processes of one `serve`."""

    def __init__(self, listener: socket.socket, count: int, arguments: Sequence[str]) -> None:
        self._descriptor = listener.fileno()
        self._command = [
            *(sys.executable, sys.argv[0], "serve", *arguments),
            *("--listener", str(self._descriptor)),
        ]
        self._count = count
        self._running: dict[subprocess.Popen[bytes], float] = {}
        self._short_lives = 0

    def run(self, has_ended: Callable[[], bool]) -> None:
        """Keep the workers running until `has_ended`, or until this process is told to stop.

        Raises: CommandError if they end as soon as they are started.
        """
        try:
            while not has_ended():
                while len(self._running) < self._count:
                    self._start_one()
                time.sleep(POLL_SECONDS)
                self._note_ended()
        finally:
            self.stop()

    def stop(self) -> None:
        """Let the workers finish what they do, within their own grace."""
        for worker in self._running:
            worker.send_signal(signal.SIGTERM)
        for worker in self._running:
            try:
                worker.wait(settings.GRACEFUL_SHUTDOWN_SECONDS + 5)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
        self._running.clear()

    def _start_one(self) -> None:
        worker = subprocess.Popen(  # noqa: S603 (our own command line)
            self._command,
            pass_fds=[self._descriptor],
            preexec_fn=die_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509 (async-safe)
        )
        self._running[worker] = time.monotonic()

    def _note_ended(self) -> None:
        for worker, started_at in tuple(self._running.items()):
            code = worker.poll()
            if code is None:
                continue
            del self._running[worker]
            is_short = time.monotonic() - started_at < SHORT_LIFE_SECONDS
            self._short_lives = self._short_lives + 1 if is_short else 0
            _log.error("worker_ended", pid=worker.pid, exit_code=code)
            if self._short_lives >= MOST_SHORT_LIVES:
                raise CommandError("The workers end as soon as they are started; see the log.")
