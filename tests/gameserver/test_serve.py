import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from gameserver.engine import free_port
from tests.gameserver.test_engine import is_alive, wait_until_dead
from tests.servers import ROOT, Server, running_server, server_environment


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A new server for tests that only look at it."""
    with running_server(server_environment(tmp_path_factory.mktemp("data"))) as running:
        yield running


@contextmanager
def failing_server(
    environment: dict[str, str], port: int | None = None, *options: str
) -> Iterator[Server]:
    server = Server(environment, port, *options)
    try:
        yield server
    finally:
        server.close()


def error_lines(server: Server) -> list[str]:
    """What the server said of its failure; JSON lines are its log."""
    assert server.wait() == 1, server.output
    return [line for line in server.output.splitlines() if line and not line.startswith("{")]


def sign_up_guest(server: Server, device: str) -> httpx.Response:
    return httpx.post(f"{server.url}/api/players/guest", json={"device_id": device}, timeout=10)


def test_a_new_server_shows_its_addresses_a_staff_account_and_some_games(
    shared_server: Server,
) -> None:
    assert f"{shared_server.url}/api/docs" in shared_server.output
    assert re.search(r"Staff account, shown this once: admin / \S{12,}", shared_server.output)
    token = sign_up_guest(shared_server, "a-device-of-a-visitor").json()["access_token"]
    games = httpx.get(
        f"{shared_server.url}/api/games", headers={"Authorization": f"Bearer {token}"}
    )
    assert len({game["map"] for game in games.json()["items"]}) >= 3
    assert httpx.get(f"{shared_server.url}/admin/login/").status_code == 200
    assert httpx.get(f"{shared_server.url}/static/admin/css/base.css").status_code == 200


def test_the_documentation_page_needs_nothing_from_elsewhere(shared_server: Server) -> None:
    page = httpx.get(f"{shared_server.url}/api/docs")
    assert page.status_code == 200
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert sources
    for source in sources:
        assert source.startswith("/"), source
        assert httpx.get(f"{shared_server.url}{source}").status_code == 200, source


def test_sigterm_and_ctrl_c_stop_the_server_and_its_engine(tmp_path: Path) -> None:
    environment = server_environment(tmp_path / "data")
    with running_server(environment) as server:
        engine_pid = server.engine_pid
        assert server.terminate() == 0, server.output
        assert not is_alive(engine_pid)
    with running_server(environment) as server:
        engine_pid = server.engine_pid
        assert server.interrupt() == 0, server.output
        assert not is_alive(engine_pid)
        assert "Traceback" not in server.output


def test_ctrl_c_in_a_terminal_does_not_take_the_engine_from_under_the_server(
    shared_server: Server,
) -> None:
    assert os.getpgid(shared_server.engine_pid) != os.getpgid(shared_server.pid)


def test_a_restart_keeps_accounts_and_makes_nothing_twice(tmp_path: Path) -> None:
    environment = server_environment(tmp_path / "data")
    with running_server(environment) as server:
        first = sign_up_guest(server, "a-device-that-returns")
        assert first.status_code == 201
        server.terminate()
    with running_server(environment) as server:
        again = sign_up_guest(server, "a-device-that-returns")
        assert again.status_code == 200
        assert again.json()["player"]["username"] == first.json()["player"]["username"]
        assert "Staff account" not in server.output


def test_a_killed_server_loses_nothing_and_leaves_no_engine(tmp_path: Path) -> None:
    environment = server_environment(tmp_path / "data")
    with running_server(environment) as server:
        assert sign_up_guest(server, "a-device-that-returns").status_code == 201
        engine_pid = server.engine_pid
        server.kill()
        wait_until_dead(engine_pid)
    with running_server(environment) as server:
        assert sign_up_guest(server, "a-device-that-returns").status_code == 200


def test_secrets_and_data_are_for_their_owner_only(shared_server: Server) -> None:
    assert shared_server.data_dir.stat().st_mode & 0o077 == 0
    for file in shared_server.data_dir.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with failing_server(server_environment(tmp_path), port) as server:
            assert error_lines(server) == [
                f"CommandError: Can't listen on 127.0.0.1 port {port}: the port is taken."
            ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "99999"], "A port is a number from 0 (any free one) to 65535"),
        (["--host", "nowhere.invalid"], "Can't listen on nowhere.invalid port"),
        (["--data-dir", "/proc/nothing"], "DATA_DIR=/proc/nothing can't be used"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_an_option_that_can_not_work_is_one_clear_line(
    tmp_path: Path, options: list[str], message: str
) -> None:
    with failing_server(server_environment(tmp_path), None, *options) as server:
        [line] = error_lines(server)
    assert message in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "abc"),
        ("LISTING_SHARDS", "0"),
        ("LOG_LEVEL", "loud"),
        ("DATABASE_URL", "foo://x"),
        ("CORS_ALLOWED_ORIGINS", "foo"),
        ("ENVIRONMENT", "prod"),
    ],
)
def test_a_wrong_value_in_the_environment_is_one_clear_line(
    tmp_path: Path, name: str, value: str
) -> None:
    data_dir = tmp_path / "data"
    with failing_server(server_environment(data_dir, **{name: value})) as server:
        [line] = error_lines(server)
    assert line.startswith(f"Error: {name}={value} must be ")
    assert not data_dir.exists()


def test_a_second_server_on_the_same_data_is_one_clear_line(shared_server: Server) -> None:
    with failing_server(server_environment(shared_server.data_dir)) as second:
        assert error_lines(second) == [
            f"CommandError: Another server already uses {shared_server.data_dir}."
        ]


def test_an_engine_that_dies_ends_the_server_with_one_clear_line(server: Server) -> None:
    os.kill(server.engine_pid, signal.SIGKILL)
    lines = error_lines(server)
    assert lines[-1] == (
        "CommandError: The embedded engine ended while the server ran (exit code -9); "
        "the data is kept, start the server again."
    )
    # Its tasks may log what they could not do any more, but only as JSON.
    assert not [line for line in lines if "Traceback" in line]


def test_an_endpoint_that_does_not_answer_is_one_clear_line(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    environment = server_environment(
        tmp_path,
        DYNAMODB_ENDPOINT_URL=url,
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",
    )
    with failing_server(environment) as server:
        assert error_lines(server) == [
            f"CommandError: No DynamoDB answers at DYNAMODB_ENDPOINT_URL={url}."
        ]


def test_missing_aws_credentials_are_one_clear_line(tmp_path: Path) -> None:
    environment = server_environment(
        tmp_path, DYNAMODB_ENDPOINT_URL="aws", AWS_EC2_METADATA_DISABLED="true", HOME=str(tmp_path)
    )
    with failing_server(environment) as server:
        [line] = error_lines(server)
    assert line.startswith("CommandError: DYNAMODB_ENDPOINT_URL=aws needs AWS credentials")


def test_an_unusable_staff_database_is_one_clear_line(tmp_path: Path) -> None:
    environment = server_environment(
        tmp_path, DATABASE_URL=f"postgres://nobody@127.0.0.1:{free_port()}/staff"
    )
    with failing_server(environment) as server:
        [line] = error_lines(server)
    assert line.startswith("CommandError: The staff database (DATABASE_URL) can't be used")


@pytest.mark.parametrize(
    "secret", ["", "short", "a" * 60, "django-insecure-" + "q8Zk2" * 10], ids=str
)
def test_production_refuses_a_weak_secret(tmp_path: Path, secret: str) -> None:
    environment = server_environment(
        tmp_path, ENVIRONMENT="production", SECRET_KEY=secret, ALLOWED_HOSTS="game.example"
    )
    with failing_server(environment) as server:
        [line] = error_lines(server)
    assert line.startswith("Error: SECRET_KEY ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ALLOWED_HOSTS": ""}, "ALLOWED_HOSTS must name the hosts"),
        ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must name the hosts"),
        ({"REDIS_URL": "redis://redis.example:6379/0"}, "REDIS_URL has no password"),
        ({"DEBUG": "1"}, "DEBUG must be off"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_production_refuses_careless_settings(
    tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    careful = {
        "ENVIRONMENT": "production",
        "SECRET_KEY": "q8Zk2-Ww0_" * 6,
        "ALLOWED_HOSTS": "game.example",
    }
    with failing_server(server_environment(tmp_path, **{**careful, **changes})) as server:
        [line] = error_lines(server)
    assert message in line


def test_two_environments_on_one_redis_use_different_channels(tmp_path: Path) -> None:
    script = (
        "from django.conf import settings; "
        "print(settings.CHANNEL_LAYERS['default']['CONFIG']['prefix'])"
    )
    prefixes = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=server_environment(
                tmp_path,
                ENVIRONMENT=environment,
                REDIS_URL="redis://:a-password@redis.example:6379/0",
                SECRET_KEY="q8Zk2-Ww0_" * 6,
                ALLOWED_HOSTS="game.example",
            ),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for environment in ("test", "production")
    }
    assert len(prefixes) == 2


def test_other_commands_use_the_running_engine_or_start_it(server: Server) -> None:
    environment = server_environment(server.data_dir)
    command = [sys.executable, "manage.py", "create_table"]

    def create_table() -> str:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert "as designed" in create_table()
    server.terminate()
    assert "as designed" in create_table()
    assert not (server.data_dir / "engine.json").exists()


def test_a_command_that_finds_no_data_says_where_it_looked_and_leaves_none(
    tmp_path: Path,
) -> None:
    data_dir = tmp_path / "elsewhere"
    for command in ("flags", "check_table", "sweep"):
        done = subprocess.run(
            [sys.executable, "manage.py", command],
            cwd=ROOT,
            env=server_environment(data_dir),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        [line] = done.stderr.splitlines()
        assert line.startswith(f"CommandError: DATA_DIR={data_dir} holds no data: ")
        assert not data_dir.exists()


def test_a_switch_that_a_command_flips_holds_at_once(server: Server) -> None:
    flags = [sys.executable, "manage.py", "flags"]
    for value in ("off", "on", "off"):
        options = ["set", "chat_enabled", value, "--why", "to see", "--yes"]
        environment = server_environment(server.data_dir)
        subprocess.run([*flags, *options], cwd=ROOT, env=environment, check=True)
        # Far sooner than the server's next look by itself, 8 to 12 s after its last.
        deadline = time.monotonic() + 2
        while chat_is_enabled(server) != (value == "on"):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def chat_is_enabled(server: Server) -> bool:
    return bool(httpx.get(f"{server.url}/api/settings").json()["flags"]["chat_enabled"])


def test_make_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "awk", "touch"):
        (tmp_path / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "package-lock.json").touch()
    done = subprocess.run(
        ["/usr/bin/make", "-f", ROOT / "Makefile", "engine/node_modules/.installed"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.splitlines()[0].startswith("npm is missing: install Node.js")
