"""A proxy between a client and a store, which fails as networks and stores do: for s3_faults.py."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

SLOW, SILENT = 0.4, 4.0  # seconds until an answer, and until there will be none
TIMES = {1: "once", 2: "twice", 6: "six times", 1 << 30: "from then on"}
BUSY = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code><Message>Try later.</Message>'
    b"</Error>"
)
KINDS = {
    "the connection drops during a request": "drop",
    "the connection drops before an answer": "unanswered",
    "the connection drops during an answer": "cut",
    "500, internal error": "500",
    "503, slow down": "503",
    "an answer is slow": "slow",
    "an answer never comes": "silent",
    "killed before a request arrives": "kill",
    "killed before an answer": "kill after",
}


@dataclass(frozen=True)
class Fault:
    """What happens to so many requests in a row, from the one with this number on."""

    kind: str
    first: int
    count: int

    @classmethod
    def some(cls, random: Random, requests: int) -> Fault:
        """Return any fault of a command that makes so many requests."""
        count = random.choice(list(TIMES))
        return cls(random.choice(list(KINDS)), random.randrange(requests), count)

    def __str__(self) -> str:
        return f"{self.kind}, {TIMES[self.count]}, from request {self.first} on"


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a store, and answers back, unless they are to fail."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.store = host, port
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._seen = 0
        self.kill: Callable[[], None] = lambda: None

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def failing(self, fault: Fault | None, kill: Callable[[], None]) -> Iterator[Callable[[], int]]:
        """Let requests fail; gives what tells how many there were."""
        with self._lock:
            self._fault, self.kill, self._seen = fault, kill, 0
        yield lambda: self._seen
        with self._lock:
            self._fault, self.kill = None, lambda: None

    def following(self) -> str:
        """Return what is to happen to the request that has come; an empty text for nothing."""
        with self._lock:
            number, fault = self._seen, self._fault
            self._seen += 1
        failing = fault is not None and fault.first <= number < fault.first + fault.count
        return KINDS[fault.kind] if fault is not None and failing else ""

    def handle_error(self, *_: Any) -> None:
        """Say nothing: clients that are killed hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def _relay(self) -> None:
        what = self.server.following()  # type: ignore[attr-defined]
        if what == "kill":
            self.server.kill()  # type: ignore[attr-defined]
        if what == "drop":
            self.rfile.read(int(self.headers.get("Content-Length", 0)) // 2)
        if what in ("kill", "drop"):
            self.close_connection = True
            return
        body = self._body()
        if what in ("500", "503"):
            name = b"InternalError" if what == "500" else b"SlowDown"
            headers = [("Content-Type", "application/xml")]
            self._answer(int(what), headers, b"" if self.command == "HEAD" else BUSY % name)
            return
        time.sleep({"slow": SLOW, "silent": SILENT}.get(what, 0))
        if what == "silent":
            self.close_connection = True
            return
        status, headers, data = self._ask(body)
        if what == "kill after":
            self.server.kill()  # type: ignore[attr-defined]
        if what in ("kill after", "unanswered"):
            self.close_connection = True
            return
        self._answer(status, headers, data, cut=what == "cut")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _relay  # noqa: N815

    def _body(self) -> bytes:
        """Return what follows the headers, in the encoding that it comes in."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while True:
            pieces.append(self.rfile.readline())
            size = int(pieces[-1].split(b";")[0], 16)
            pieces.append(self.rfile.read(size + 2))
            if size == 0:
                return b"".join(pieces)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        host, port = self.server.store  # type: ignore[attr-defined]
        store = http.client.HTTPConnection(host, port, timeout=30)
        store.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                store.putheader(name, value)
        store.putheader("Connection", "close")
        store.endheaders(body or None)
        answer = store.getresponse()
        data = answer.read()
        store.close()
        return answer.status, answer.getheaders(), data

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            length = name.lower() == "content-length" and self.command != "HEAD"
            if not length and name.lower() not in ("connection", "transfer-encoding"):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.close_connection = cut
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def proxy(host: str, port: int) -> Iterator[Proxy]:
    """Start a proxy to a store."""
    with Proxy(host, port) as between:
        threading.Thread(target=between.serve_forever, daemon=True).start()
        try:
            yield between
        finally:
            between.shutdown()
