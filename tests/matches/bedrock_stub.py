"""Bedrock's Converse API on loopback, as it looks on the wire."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class BedrockStub(ThreadingHTTPServer):
    """Answers every question with `input` as the call of the tool it was offered.

    `status` and `error` make it refuse, `body` replaces its answer, `hangs` keeps it silent.
    `requests` holds what was asked: path, headers, body.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.input: Any = {"maps": [], "fill": "any", "order": "oldest"}
        self.status = 200
        self.error = ""
        self.body: bytes | None = None
        self.hangs = False
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, asked: Any) -> bytes:
        if self.body is not None:
            return self.body
        tool = asked["toolConfig"]["tools"][0]["toolSpec"]["name"]
        call = {"toolUse": {"toolUseId": "tooluse_1", "name": tool, "input": self.input}}
        answer = {
            "metrics": {"latencyMs": 551},
            "output": {"message": {"role": "assistant", "content": [{"text": "Sure."}, call]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": 412, "outputTokens": 38, "totalTokens": 450},
        }
        return json.dumps(answer).encode()


class _Handler(BaseHTTPRequestHandler):
    server: BedrockStub

    def do_POST(self) -> None:
        stub = self.server
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stub.requests.append((self.path, dict(self.headers), asked))
        if stub.hangs:
            stub.released.wait(30)
            return
        if stub.status == 200:
            body = stub.answer(asked)
        else:
            body = json.dumps({"message": f"{stub.error} for a test"}).encode()
        self.send_response(stub.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("x-amzn-RequestId", "7e3c0c5e-0000-4000-8000-000000000000")
        if stub.error:
            self.send_header("x-amzn-ErrorType", stub.error)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the library)
        """Keep the test run's output clean."""


@contextmanager
def running_bedrock() -> Iterator[BedrockStub]:
    """Serve until the block ends."""
    stub = BedrockStub()
    thread = threading.Thread(target=stub.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield stub
    finally:
        stub.released.set()
        stub.shutdown()
        thread.join()
        stub.server_close()
