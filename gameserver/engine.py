"""The embedded DynamoDB-compatible engine (dynoxide) as a child process on loopback.

One server owns a data folder: it holds `engine.lock` and says in `engine.json` where its engine
listens, so that management commands find it. Without a data folder the engine keeps everything in
memory and nobody else can find it.
"""

import ctypes
import fcntl
import http.client
import json
import os
import platform
import signal
import socket
import subprocess
import tempfile
import time
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from django.conf import settings

EMBEDDED = "embedded"
START_DEADLINE_SECONDS = 10.0
STOP_DEADLINE_SECONDS = 5.0
# A killed server's engine needs a moment to die with it and let the lock go.
LOCK_DEADLINE_SECONDS = 2.0
POLL_SECONDS = 0.005
# The chosen port can be taken by somebody else before the engine binds it.
PORT_ATTEMPTS = 3
LISTENING = "listening on"
DATABASE = "dynamodb.sqlite3"

ENGINE_FOLDER = Path(__file__).resolve().parent.parent / "engine"

_PR_SET_PDEATHSIG = 1
_IS_LINUX = platform.system() == "Linux"
# Loaded here, because nothing may be imported between fork and exec.
_libc = ctypes.CDLL(None, use_errno=True)


class EngineError(Exception):
    """The embedded engine can't be used; the message is one line for an operator."""


class EngineNotRunning(EngineError):
    """No embedded engine serves the data folder."""


class EngineInUse(EngineError):
    """Another server holds the data folder."""


class EngineNotInstalled(EngineError):
    """The engine's binary is not there."""


def resolve_endpoint(setting: str) -> str | None:
    """Turn `DYNAMODB_ENDPOINT_URL` into an address: `aws` into None, a URL into itself.

    Raises: EngineNotRunning when it says `embedded` and no engine serves `DATA_DIR`.
    """
    if setting == "aws":
        return None
    if setting == EMBEDDED:
        return running_url(settings.DATA_DIR)
    return setting


def running_url(data_dir: Path) -> str:
    """Return the address of the engine that serves `data_dir`.

    Raises: EngineNotRunning.
    """
    message = (
        f"No embedded engine serves {data_dir} (start the server, or give another --data-dir)."
    )
    try:
        with (data_dir / "engine.lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # Nobody holds the lock: what engine.json says is left over from a killed server.
        raise EngineNotRunning(message)
    except FileNotFoundError:
        raise EngineNotRunning(message) from None
    except BlockingIOError:
        pass
    try:
        return str(json.loads((data_dir / "engine.json").read_text())["url"])
    except (FileNotFoundError, ValueError, KeyError):
        raise EngineNotRunning(f"The embedded engine of {data_dir} is only starting.") from None


def has_data(data_dir: Path) -> bool:
    """Tell whether an engine has ever kept its tables in `data_dir`."""
    return (data_dir / DATABASE).exists()


def binary_path() -> Path:
    """Return the installed engine binary of this platform.

    Raises: EngineNotInstalled.
    """
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    name = f"{platform.system().lower()}-{machine}"
    path = ENGINE_FOLDER / "node_modules" / "@dynoxide" / name / "dynoxide"
    if not path.is_file():
        raise EngineNotInstalled(
            f"The embedded engine for {name} is not installed: run `make setup` (it needs npm), "
            "or set DYNAMODB_ENDPOINT_URL to another DynamoDB."
        )
    return path


def free_port() -> int:
    """Return a loopback TCP port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class EmbeddedEngine:
    """One engine process, on files in `data_dir`, or in memory without it.

    It dies with the thread that started it, so start it from the main thread.
    """

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Process id of the running engine.

        Raises: EngineNotRunning.
        """
        return self._running().pid

    def start(self) -> str:
        """Start the engine, wait until it answers, and return its address.

        Raises: EngineNotInstalled, EngineInUse, EngineError.
        """
        binary = binary_path()
        try:
            if self.data_dir is not None:
                self._lock_data_dir(self.data_dir)
            for attempt in range(1, PORT_ATTEMPTS + 1):
                try:
                    self._start_once(binary)
                    break
                except EngineError:
                    if attempt == PORT_ATTEMPTS:
                        raise
            if self.data_dir is not None:
                self._publish(self.data_dir)
        except BaseException:
            self.stop()
            raise
        return self.url

    def stop(self) -> None:
        """Stop the engine and free the data folder; harmless when it is not running."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_DEADLINE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._lock is not None:
            if self.data_dir is not None:
                (self.data_dir / "engine.json").unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def wait(self) -> int:
        """Block until the engine ends, by itself or through `stop`, and return its exit code.

        Raises: EngineNotRunning.
        """
        return self._running().wait()

    def poll(self) -> int | None:
        """Return the exit code if the engine has ended.

        Raises: EngineNotRunning.
        """
        return self._running().poll()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise EngineNotRunning("This engine was not started.")
        return self._process

    def _lock_data_dir(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(data_dir / "engine.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_DEADLINE_SECONDS
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    # Not ours: stop() must leave the other server's engine.json alone.
                    os.close(self._lock)
                    self._lock = None
                    raise EngineInUse(f"Another server already uses {data_dir}.") from None
                time.sleep(POLL_SECONDS)

    def _start_once(self, binary: Path) -> None:
        port = free_port()
        command: list[str | Path] = [binary, "serve", "--host", "127.0.0.1", "--port", str(port)]
        if self.data_dir is not None:
            command += ["--db-path", self.data_dir / DATABASE]
        with self._open_log() as log:
            self._process = subprocess.Popen(  # noqa: S603 (nothing of it comes from outside)
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches a terminal's whole group, and the engine must outlive the server.
                start_new_session=True,
                # The engine holds the lock too: it is free only once both are dead.
                pass_fds=() if self._lock is None else (self._lock,),
                preexec_fn=die_with_parent(os.getpid()),  # noqa: PLW1509 (touches no Python lock)
            )
            self._wait_until_it_answers(self._process, port, log)
        self.url = f"http://127.0.0.1:{port}"

    def _open_log(self) -> IO[bytes]:
        if self.data_dir is None:
            return tempfile.TemporaryFile()
        return (self.data_dir / "engine.log").open("w+b")

    def _wait_until_it_answers(
        self, process: subprocess.Popen[bytes], port: int, log: IO[bytes]
    ) -> None:
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while time.monotonic() < deadline:
            has_ended = process.poll() is not None
            # pread: the engine writes at the offset that seeking would move.
            lines = os.pread(log.fileno(), 65_536, 0).decode(errors="replace").strip().splitlines()
            if has_ended:
                words = lines[-1] if lines else "it wrote nothing."
                raise EngineError(f"The embedded engine ended at start: {words}")
            # Its own word that it has the port: what answers there may be another engine.
            if any(LISTENING in line for line in lines) and _answers(port):
                return
            time.sleep(POLL_SECONDS)
        process.kill()
        process.wait()
        raise EngineError(f"The embedded engine did not answer in {START_DEADLINE_SECONDS:.0f} s.")

    def _publish(self, data_dir: Path) -> None:
        draft = data_dir / "engine.json.new"
        draft.write_text(json.dumps({"pid": self.pid, "url": self.url}))
        draft.replace(data_dir / "engine.json")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> Any:
    """Return a `preexec_fn` by which a child gets a signal when its parent's thread ends."""

    def in_child() -> None:
        if _IS_LINUX:
            _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            # The parent was killed before the line above took effect.
            os._exit(1)

    return in_child
