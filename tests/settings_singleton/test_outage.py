"""The table away: with the real client, and with a real engine killed under a running server."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from gameserver.engine import free_port
from settings_singleton import cache
from settings_singleton.models import raw
from settings_singleton.testing import fresh_flags
from tests.servers import Server, running_server
from tests.settings_singleton.processes import Table, Worker, environment, manage, wait_until


@pytest.fixture
def table_process(tmp_path: Path) -> Iterator[Table]:
    table = Table(tmp_path)
    table.start()
    yield table
    table.close()


def settings_of(server: Server) -> dict[str, Any]:
    body: dict[str, Any] = httpx.get(f"{server.url}/api/settings").raise_for_status().json()
    return body


def ready(server: Server) -> dict[str, Any]:
    body: dict[str, Any] = httpx.get(f"{server.url}/readyz", timeout=15).json()
    return body


@pytest.fixture
def endpoint(settings: Settings) -> Iterator[Settings]:
    """Nothing read, and a client for whatever endpoint the test names."""
    with fresh_flags():
        raw.forget_client()
        yield settings
        if client := raw.forget_client():
            client.close()


def test_a_table_that_hangs_at_boot_is_given_up_within_its_time_outs(endpoint: Settings) -> None:
    # It accepts, as far as the kernel is concerned, and never says a word.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint.DYNAMODB_ENDPOINT_URL = f"http://127.0.0.1:{silent.getsockname()[1]}"
        raw.own_client()
        began = time.monotonic()
        cache.start()
        took = time.monotonic() - began

        assert took < raw.CONNECT_TIMEOUT_SECONDS + raw.READ_TIMEOUT_SECONDS + 0.5
        assert cache.flags.maintenance_mode
        assert not cache.status().is_ready


def test_a_table_that_is_down_at_boot_means_safe_defaults(endpoint: Settings) -> None:
    endpoint.DYNAMODB_ENDPOINT_URL = f"http://127.0.0.1:{free_port()}"

    cache.start()

    assert not cache.flags.signup_enabled
    status = cache.status()
    assert (status.is_ready, status.is_stale, status.source) == (False, True, "defaults")


def test_an_engine_killed_under_a_server_changes_no_flag_and_its_return_is_noticed(
    table_process: Table, tmp_path: Path
) -> None:
    """F-06"""
    variables = environment(table_process, tmp_path / "data")
    flip = ("flags", "set", "win_reward_coins")
    manage("create_table", environment=variables)
    manage(*flip, "77", "--why", "before", "--yes", environment=variables)
    with running_server(variables) as server:
        before = settings_of(server)
        assert before["flags"]["win_reward_coins"] == 77

        table_process.kill()
        wait_until(lambda: ready(server)["settings"]["is_stale"])

        assert settings_of(server) == before
        assert ready(server)["status"] == "not ready"
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        assert httpx.get(f"{server.url}/api/maps").status_code == 200
        assert "flags_refresh_failed" in server.output

        table_process.start()
        manage(*flip, "78", "--why", "after", "--yes", environment=variables)
        wait_until(lambda: settings_of(server)["flags"]["win_reward_coins"] == 78, 15)
        assert not ready(server)["settings"]["is_stale"]
        assert "flags_refresh_recovered" in server.output


def test_a_server_process_that_starts_while_the_table_is_down_says_so_and_recovers(
    table_process: Table, tmp_path: Path
) -> None:
    """F-05: one of several processes, started by uvicorn itself."""
    variables = environment(table_process, tmp_path / "data")
    manage("create_table", environment=variables)
    manage("migrate", "--verbosity", "0", environment=variables)
    table_process.kill()
    process = Worker(variables)
    try:
        process.wait_until_it_listens()
        url = process.url
        shown = httpx.get(f"{url}/api/settings").json()
        assert shown["revision"] == 0
        assert shown["flags"]["maintenance_mode"] is True
        assert shown["flags"]["signup_enabled"] is False
        refused = httpx.get(f"{url}/api/maps")
        assert (refused.status_code, refused.json()["code"]) == (503, "maintenance")
        assert httpx.get(f"{url}/readyz", timeout=15).status_code == 503
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert "flags_refresh_failed" in process.output

        table_process.start()
        wait_until(lambda: httpx.get(f"{url}/api/settings").json()["revision"] == 1, 15)
        assert httpx.get(f"{url}/api/maps").status_code == 200
        wait_until(lambda: httpx.get(f"{url}/readyz", timeout=15).status_code == 200)
    finally:
        process.close()


def test_a_server_on_a_table_without_the_item_holds_safe_defaults_and_says_so(
    table_process: Table, tmp_path: Path
) -> None:
    """F-05"""
    variables = environment(table_process, tmp_path / "data")
    with running_server(variables) as server:
        assert ready(server)["settings"]["revision"] == 1
        _delete_item(table_process)
        wait_until(lambda: settings_of(server)["revision"] == 0)

        assert settings_of(server)["flags"]["maintenance_mode"] is True
        assert "flags_item_missing" in server.output

        manage("create_table", environment=variables)
        wait_until(lambda: settings_of(server)["flags"]["maintenance_mode"] is False, 15)
        # Its revisions go on after those of the history.
        assert settings_of(server)["revision"] == 2


def _delete_item(table: Table) -> None:
    import boto3

    client = boto3.client(
        "dynamodb",
        endpoint_url=table.url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )
    client.delete_item(
        TableName="gameserver", Key={"PK": {"S": "SETTINGS#APP"}, "SK": {"S": "FLAGS#V1"}}
    )
    client.close()
