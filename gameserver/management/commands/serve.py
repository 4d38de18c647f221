"""`manage.py serve`: the whole server, with the embedded engine unless another table is named."""

import argparse
import errno
import os
import secrets
import signal
import socket
import threading
from contextlib import ExitStack
from ipaddress import ip_address
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gameserver import commands, engine, letterbox
from gameserver.errors import GameServerError
from gameserver.workers import Workers, check_can_share, inherited_listener
from settings_singleton import cache, counters
from settings_singleton.processes import reporter

MAX_PORT = 65_535
# Larger messages end the connection before they are held in memory; our own limit is far below.
WEBSOCKET_MAX_BYTES = 65_536


class Command(BaseCommand):
    help = "Run the server; Ctrl-C or SIGTERM stops it and its embedded engine."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument(
            "--workers", type=int, default=1, help="how many processes; several need REDIS_URL"
        )
        # What a worker inherits from the process that started it.
        parser.add_argument("--listener", type=int, help=argparse.SUPPRESS)
        commands.add_data_dir(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        # The data folder holds secrets and password hashes.
        os.umask(0o077)
        if options["listener"] is not None:
            with commands.clear_errors(), inherited_listener(options["listener"]) as listener:
                _allow_host(options["host"])
                _serve(listener, None)
            return
        check_can_share(options["workers"])
        with commands.clear_errors(), ExitStack() as stack:
            listener = stack.enter_context(_listen(options["host"], options["port"]))
            _allow_host(options["host"])
            commands.make_data_dir()
            embedded = None
            if settings.DYNAMODB_ENDPOINT_URL == engine.EMBEDDED:
                embedded = stack.enter_context(engine.EmbeddedEngine(settings.DATA_DIR))
            self._prepare(is_embedded=embedded is not None)
            self._print_addresses(listener)
            self._create_staff_account()
            if options["workers"] == 1:
                stack.enter_context(letterbox.open_letterbox(settings.DATA_DIR))
                _serve(listener, embedded)
            else:
                _supervise(listener, embedded, options)

    def _prepare(self, *, is_embedded: bool) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("create_table", verbosity=0)
        if is_embedded and not settings.IS_PRODUCTION:
            self._create_demo_data()

    def _create_staff_account(self) -> None:
        if settings.IS_PRODUCTION:
            return
        users = get_user_model().objects
        if users.filter(is_superuser=True).exists():
            return
        password = secrets.token_urlsafe(12)
        users.create_superuser("admin", password=password)
        self.stdout.write(f"Staff account, shown this once: admin / {password}")
        self.stdout.flush()

    def _create_demo_data(self) -> None:
        done = settings.DATA_DIR / "demo_data_created"
        if done.exists():
            return
        from gameserver.demo import create_demo_data

        try:
            create_demo_data()
        except GameServerError as error:
            # Killed half-way the last time, or switched off by an operator since.
            self.stderr.write(f"The demo data is incomplete: {error}")
        done.touch()

    def _print_addresses(self, listener: socket.socket) -> None:
        host, port = listener.getsockname()[:2]
        if host in {"0.0.0.0", "::"}:  # noqa: S104 (named, not bound)
            host = "localhost"
        base = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self.stdout.write(f"Game server   {base}/")
        self.stdout.write(f"API documents {base}/api/docs")
        self.stdout.write(f"Metrics       {base}/metrics")
        self.stdout.write(f"Admin         {base}/admin/")
        self.stdout.flush()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End by unwinding, so that everything is closed on the way out."""
    raise SystemExit(0)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= MAX_PORT:
        raise CommandError(f"A port is a number from 0 (any free one) to {MAX_PORT}, not {port}.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family, backlog=2048)
    except OSError as error:
        reason = "the port is taken" if error.errno == errno.EADDRINUSE else error.strerror
        raise CommandError(f"Can't listen on {host} port {port}: {reason}.") from error


def _allow_host(host: str) -> None:
    """Answer to the name we were told to listen on; production names its hosts itself."""
    if settings.IS_PRODUCTION:
        return
    try:
        is_any = ip_address(host).is_unspecified
    except ValueError:
        is_any = False
    settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "*" if is_any else host]


def _supervise(
    listener: socket.socket, embedded: engine.EmbeddedEngine | None, options: dict[str, Any]
) -> None:
    workers = Workers(listener, options["workers"], ["--host", options["host"]])
    workers.run(lambda: embedded is not None and embedded.poll() is not None)
    raise engine.EngineError("The embedded engine ended; the data is kept, start the server again.")


def _serve(listener: socket.socket, embedded: engine.EmbeddedEngine | None) -> None:
    with ExitStack() as stack:
        stack.callback(cache.stop)
        cache.start()
        stack.callback(reporter.stop)
        reporter.start()
        _run(listener, embedded)


def _run(listener: socket.socket, embedded: engine.EmbeddedEngine | None) -> None:
    server = uvicorn.Server(
        uvicorn.Config(
            "gameserver.asgi:application",
            loop="uvloop",
            http="httptools",
            ws="gameserver.websocket_protocol:WebSocketProtocol",
            ws_max_size=WEBSOCKET_MAX_BYTES,
            # Compression would make each receiver's bytes its own, and cost each some memory.
            ws_per_message_deflate=False,
            ws_ping_interval=settings.SOCKET_PING_SECONDS,
            ws_ping_timeout=settings.SOCKET_PING_SECONDS,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=settings.GRACEFUL_SHUTDOWN_SECONDS,
        )
    )
    exit_codes: list[int] = []
    if embedded is not None:
        threading.Thread(
            target=_watch, args=(embedded, server, exit_codes), name="engine-watch", daemon=True
        ).start()
    server.run(sockets=[listener])
    # While the table still answers.
    counters.flush()
    if exit_codes:
        raise engine.EngineError(
            f"The embedded engine ended while the server ran (exit code {exit_codes[0]}); "
            "the data is kept, start the server again."
        )


def _watch(embedded: engine.EmbeddedEngine, server: uvicorn.Server, exit_codes: list[int]) -> None:
    """Stop the server when its engine ends before it."""
    code = embedded.wait()
    if not server.should_exit:
        exit_codes.append(code)
        server.should_exit = True
