"""A server on the loopback that answers as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


def completion(text: str | None = "yes", model: str = "stub-1", **more: Any) -> dict[str, Any]:
    """Return the body of a successful answer."""
    return {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
        **more,
    }


class Stub(ThreadingHTTPServer):
    """Keeps what it was sent; ``answer(number, body) -> reply`` says what it answers, as in the golden faults."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: Callable[[int, dict[str, Any]], dict[str, Any]] = lambda n, body: {
            "status": 200,
            "body": completion(),
        }
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.models: list[str] = ["stub-1"]
        self.keep_bodies = True
        self.lock = threading.Lock()
        self.seen = self.going = self.most_going = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._send(200, json.dumps({"object": "list", "data": [{"id": name} for name in self.server.models]}), {})

    def do_POST(self) -> None:
        stub = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with stub.lock:
            number = stub.seen
            stub.seen += 1
            stub.going += 1
            stub.most_going = max(stub.most_going, stub.going)
            if stub.keep_bodies:
                stub.bodies.append(body)
                stub.headers.append(dict(self.headers))
                stub.times.append(time.monotonic())
        try:
            reply = stub.answer(number, body)
            time.sleep(reply.get("delay_s", 0))
        finally:
            with stub.lock:
                stub.going -= 1
        if reply.get("close_before_reply"):
            self.close_connection = True
            self.connection.close()
            return
        text = reply["raw_body"] if "raw_body" in reply else json.dumps(reply["body"])
        if "cut_at" in reply:  # a connection that ends in the middle of the answer
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode()[: reply["cut_at"]])
            self.close_connection = True
            return
        self._send(reply.get("status", 200), text, reply.get("headers", {}))

    def _send(self, status: int, text: str, headers: dict[str, str]) -> None:
        data = text.encode()
        try:
            self.send_response(status)
            for name, value in headers.items():
                if value.startswith("HTTP-DATE(+"):
                    value = formatdate(time.time() + int(value[11:-2]), usegmt=True)  # noqa: PLW2901
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # the client gave up


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def answered() -> Callable[..., dict[str, Any]]:
    """Makes the body of a successful answer."""
    return completion
