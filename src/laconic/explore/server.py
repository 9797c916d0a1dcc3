"""The explorer's server: to this machine alone, and there to those who know the token."""

from __future__ import annotations

import hmac
import secrets
import sys
import traceback
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from laconic.errors import InputError, LaconicError, NoDocumentError
from laconic.explore.counts import Counts
from laconic.explore.document_page import View, document_page
from laconic.explore.frame import asset, page, short
from laconic.explore.library import Library
from laconic.explore.list_page import list_page, statistics_page
from laconic.report.markup import policy

if TYPE_CHECKING:
    from laconic.explore.answers import Answers

_FAILED = "That did not work"
_LONGEST_WORD = 200  # characters of a text that is searched


class Reply(NamedTuple):
    """A page, its status, and after how many seconds to ask again, or for what."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    refresh: str | None = None


class Explorer:
    """The pages over a library, by their paths; `answers` are a run's, if there is one."""

    def __init__(self, library: Library, answers: Answers | None = None) -> None:
        self.library, self.answers = library, answers
        self.counts = Counts(library.corpus)

    def reply(self, path: str, query: dict[str, str]) -> Reply:
        """Return the page of a path below the token; an error is a page, too."""
        pages = {"": self._list, "document": self._document, "statistics": self._statistics}
        try:
            if path not in pages:
                raise NoDocumentError("there is no such page")
            with self.counts.paused():
                return pages[path](query)
        except LaconicError as error:
            missing = isinstance(error, NoDocumentError)
            status = HTTPStatus.NOT_FOUND if missing else HTTPStatus.BAD_REQUEST
            said = str(error)
            return Reply(page(_FAILED, said[:1].upper() + said[1:], here=""), status)

    def _list(self, query: dict[str, str]) -> Reply:
        text = query.get("q", "")[:_LONGEST_WORD]
        label = _number(query, "label") if query.get("label") else None
        first = _number(query, "first")
        body, onward = list_page(self.library, text, label, first)
        return Reply(body, refresh=f"0; url={onward}" if onward else None)

    def _document(self, query: dict[str, str]) -> Reply:
        self.counts.start()
        entry = self.library.entry(_number(query, "row"))
        view = View(_number(query, "first"), query.get("beside", ""), "explain" in query)
        said = None if self.answers is None else self.answers.about(entry, view.explain)
        counts = self.counts if len(self.library) > 1 else None
        return Reply(document_page(self.library, entry, view, counts, said))

    def _statistics(self, query: dict[str, str]) -> Reply:
        self.counts.start()
        refresh = None if self.counts.finished else "1"
        return Reply(statistics_page(self.library, self.counts), refresh=refresh)


def _number(query: dict[str, str], name: str) -> int:
    given = query.get(name) or "0"
    if not (given.isascii() and given.isdigit() and len(given) <= 18):
        raise InputError(f"{name} must be a number, not {short(given, 40)}")
    return int(given)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30  # seconds for a request to arrive
    server_version, sys_version = "laconic", ""

    def __init__(self, explorer: Explorer, *arguments: Any) -> None:
        self._explorer = explorer
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer with a page; to those who do not know the token there is nothing here."""
        if self.headers.get("Host", "") not in self.server.hosts:
            # Another site's name may lead here, and its pages could then read ours.
            self._send(Reply("wrong host", HTTPStatus.MISDIRECTED_REQUEST), "text/plain")
            return
        asked, _, query = self.path.partition("?")
        token, slash, path = asked.removeprefix("/").partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._send(Reply("not found", HTTPStatus.NOT_FOUND), "text/plain")
            return
        self._send(self._reply(path, query), "text/html")

    do_HEAD = do_GET  # noqa: N815

    def _reply(self, path: str, asked: str) -> Reply:
        try:
            query = parse_qs(asked, max_num_fields=20, errors="replace")
        except ValueError:
            return Reply(page(_FAILED, "Too much was asked.", here=""), HTTPStatus(400))
        try:
            return self._explorer.reply(path, {name: words[-1] for name, words in query.items()})
        except Exception:
            traceback.print_exc()
            told = "This is a bug in Laconic; the terminal says more. Please report it."
            return Reply(page(_FAILED, told, here=""), HTTPStatus(500))

    def _send(self, reply: Reply, kind: str) -> None:
        data = reply.body.encode("utf-8", "replace")
        self.send_response(reply.status)
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(data)),
            "Content-Security-Policy": f"{policy(asset('script.js'))}; form-action 'self'; "
            "frame-ancestors 'none'",
            "Cache-Control": "no-store",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        headers |= {"Refresh": reply.refresh} if reply.refresh else {}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep quiet: requests hold the token, and terminals are kept."""


class Server(ThreadingHTTPServer):
    """Serves an explorer at `url`, a new one each time: nobody else can guess it."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), partial(_Handler, explorer))
        self.token = secrets.token_urlsafe(24)
        here = self.server_address[1]
        self.hosts = {f"127.0.0.1:{here}", f"localhost:{here}"}
        self.url = f"http://127.0.0.1:{here}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about browsers that do not wait for an answer."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)
