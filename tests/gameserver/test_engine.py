import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from pytest_django import Settings

from gameserver import engine
from gameserver.engine import (
    EmbeddedEngine,
    EngineError,
    EngineInUse,
    EngineNotInstalled,
    EngineNotRunning,
    resolve_endpoint,
    running_url,
)


def client_of(url: str) -> DynamoDBClient:
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",
    )


def create_notes_table(client: DynamoDBClient) -> None:
    client.create_table(
        TableName="notes",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} lives on"
        time.sleep(0.01)


def test_an_engine_in_memory_answers_and_leaves_nothing_behind() -> None:
    with EmbeddedEngine() as running:
        pid = running.pid
        create_notes_table(client_of(running.url))
        assert client_of(running.url).list_tables()["TableNames"] == ["notes"]
    assert not is_alive(pid)


def test_data_in_a_folder_survives_a_killed_engine(tmp_path: Path) -> None:
    first = EmbeddedEngine(tmp_path)
    client = client_of(first.start())
    create_notes_table(client)
    client.put_item(TableName="notes", Item={"id": {"S": "1"}})
    os.kill(first.pid, signal.SIGKILL)
    assert first.wait() == -signal.SIGKILL
    first.stop()
    with EmbeddedEngine(tmp_path) as second:
        found = client_of(second.url).get_item(TableName="notes", Key={"id": {"S": "1"}})
    assert found["Item"] == {"id": {"S": "1"}}


def test_one_folder_serves_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOCK_DEADLINE_SECONDS", 0.05)
    with EmbeddedEngine(tmp_path) as first:
        with pytest.raises(EngineInUse, match="Another server already uses"):
            EmbeddedEngine(tmp_path).start()
        assert running_url(tmp_path) == first.url
    with EmbeddedEngine(tmp_path):
        pass


def test_a_running_engine_is_found_through_its_folder(tmp_path: Path) -> None:
    with pytest.raises(EngineNotRunning):
        running_url(tmp_path)
    with EmbeddedEngine(tmp_path) as running:
        assert running_url(tmp_path) == running.url
    with pytest.raises(EngineNotRunning):
        running_url(tmp_path)


def test_what_a_killed_server_left_is_not_taken_for_an_engine(tmp_path: Path) -> None:
    (tmp_path / "engine.lock").touch()
    (tmp_path / "engine.json").write_text('{"pid": 1, "url": "http://127.0.0.1:1"}')
    with pytest.raises(EngineNotRunning):
        running_url(tmp_path)


def test_the_endpoint_setting_is_aws_a_url_or_the_embedded_engine(
    tmp_path: Path, settings: Settings
) -> None:
    settings.DATA_DIR = tmp_path
    assert resolve_endpoint("aws") is None
    assert resolve_endpoint("http://dynamodb.example:8000") == "http://dynamodb.example:8000"
    with pytest.raises(EngineNotRunning):
        resolve_endpoint("embedded")
    with EmbeddedEngine(tmp_path) as running:
        assert resolve_endpoint("embedded") == running.url


def test_a_missing_binary_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ENGINE_FOLDER", tmp_path)
    with pytest.raises(EngineNotInstalled, match="make setup"):
        EmbeddedEngine().start()


def test_a_broken_database_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "dynamodb.sqlite3").write_text("no database\n" * 1000)
    with pytest.raises(EngineError, match="ended at start") as raised:
        EmbeddedEngine(tmp_path).start()
    assert "\n" not in str(raised.value)


def test_a_port_taken_in_between_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedEngine() as other:
        taken = int(other.url.rpartition(":")[2])
        ports = iter([taken, engine.free_port()])
        monkeypatch.setattr(engine, "free_port", lambda: next(ports))
        with EmbeddedEngine() as running:
            assert running.url != other.url
            assert client_of(running.url).list_tables()["TableNames"] == []


def test_the_engine_dies_with_a_killed_parent(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib\n"
        "from gameserver.engine import EmbeddedEngine\n"
        "engine = EmbeddedEngine(pathlib.Path(sys.argv[1]))\n"
        "engine.start()\n"
        "print(engine.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    wait_until_dead(pid)
    with EmbeddedEngine(tmp_path):
        pass
