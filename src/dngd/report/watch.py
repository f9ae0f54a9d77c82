"""The page of `dngd report`, served on this machine while runs go on, with buttons that ask something of them.

Whoever has the address, with its random token, may look and ask; nobody else may, nor a page from elsewhere that has
the browser send requests here. Only the directories that were given are read.
"""

import json
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from dngd.report.live import Live, Shown
from dngd.report.page import embedded, fill
from dngd.report.page_data import colour_maps
from dngd.train import requests

LONGEST = 4096
"""Bytes of a request that are read."""

HERE = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
"""Names by which a browser on this machine may call the server; a port may have been forwarded."""

FRAME = {"kicker": "dngd watch", "footer": "Shown by dngd watch on this machine; it loads nothing from elsewhere."}
FRAME |= {"policy": "; connect-src 'self'", "icon": '<link rel="icon" href="data:,">'}

HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
HEADERS |= {"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin"}


class RefusedError(Exception):
    """What cannot be done that was asked for, and why."""


class Watch:
    """The runs, and what is asked of them. Safe to use from several threads."""

    def __init__(self, paths: Sequence[Path], trust: bool = False):
        self._live, self._trust, self._lock = Live(paths), trust, threading.Lock()
        self._resumed: dict[int, tuple[subprocess.Popen, IO[bytes]]] = {}

    def page(self) -> str:
        """Write the whole page."""
        with self._lock:
            self._live.update()
            texts, data = self._live.page(0)
        return fill(FRAME | texts | embedded(data | {"colours": colour_maps()}, "watch.js"))

    def news(self, since: int) -> dict[str, Any] | None:
        """Return what has changed since a version: the page without its scripts, and their data. None if nothing."""
        with self._lock:
            if self._live.update() == since:
                return None
            texts, data = self._live.page(since)
        return {"page": fill(FRAME | texts), "data": data}

    def ask(self, number: Any, request: Any) -> None:
        """Ask something of a run: of one that goes on through its directory, else go on with it in another process."""
        with self._lock:
            self._live.update()
            shown = next((one for one in self._live.shown if one.number == number), None)
            if shown is None:
                raise RefusedError("there is no such run any more")
            try:
                checked = requests.checked(request)
            except (ValueError, TypeError) as error:
                raise RefusedError(str(error)) from error
            if shown.alive:
                requests.ask(shown.directory, checked)
            elif "seconds" in checked or "steps" in checked:
                self._resume(shown, checked)
            else:
                raise RefusedError("the run has ended")

    def _resume(self, shown: Shown, budget: dict[str, Any]) -> None:
        """Start `dngd resume`, which goes on when this process ends."""
        problem = str(shown.run.config.get("problem"))
        if ":" in problem and not self._trust:
            raise RefusedError(
                f"the run names a file for its problem, {problem}, which would be executed; if you trust it, start "
                "dngd watch with --trust"
            )
        if problem.endswith(" (given in Python)"):
            raise RefusedError("its problem was given in Python; there: dngd.resume(path, problem, seconds=…)")
        earlier = self._resumed.get(shown.number)
        if earlier is not None and earlier[0].poll() is None:
            raise RefusedError("it is being taken up already; that takes some seconds")
        options = [text for name, value in budget.items() for text in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "dngd", "resume", str(shown.directory), "--quiet", *options]
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": errors}
        trusted = ["--trust"] if self._trust else []
        self._resumed[shown.number] = subprocess.Popen([*command, *trusted], start_new_session=True, **streams), errors

    def failures(self) -> dict[str, str]:
        """What went wrong with runs that were to go on."""
        with self._lock:
            return {str(number): text for number, started in self._resumed.items() if (text := _failure(*started))}


def _failure(process: subprocess.Popen, errors: IO[bytes]) -> str:
    if process.poll() not in (1, 2):  # the exit codes of what did not even start
        return ""
    errors.seek(0)
    lines = errors.read()[-LONGEST:].decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it could not be taken up"


class Handler(BaseHTTPRequestHandler):
    """Answers requests whose address begins with the token."""

    server: "Server"  # pyright: ignore[reportIncompatibleVariableOverride] - the one that makes handlers of this kind
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dngd", ""
    timeout = 60

    def do_GET(self):
        place = self._place()
        if place == "":
            self._answer(HTTPStatus.OK, self.server.watch.page(), "text/html")
        elif place == "news":
            since = parse_qs(urlsplit(self.path).query).get("since", ["0"])[0]
            news = self.server.watch.news(int(since) if since.isdecimal() and len(since) < 16 else 0)
            self._answer_json({"failures": self.server.watch.failures()} | (news or {}))
        elif place is not None:
            self._answer(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def do_POST(self):
        place = self._place()
        if place is None:
            return
        if place != "ask":
            self._answer(HTTPStatus.NOT_FOUND, "There is nothing here.", close=True)
            return
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or not len(size) < 9 or int(size) > LONGEST:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A request has at most {LONGEST} bytes.", close=True)
            return
        try:
            asked = json.loads(self.rfile.read(int(size)))
            number, request = asked.pop("run"), asked
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            self._answer_json({"error": "that is no request"}, HTTPStatus.BAD_REQUEST)
            return
        try:
            self.server.watch.ask(number, request)
        except (RefusedError, OSError) as error:
            self._answer_json({"error": str(error)}, HTTPStatus.CONFLICT)
        else:
            self._answer_json({})

    def _place(self) -> str | None:
        """Return what comes after the token in the address; answers itself and returns None if that is not allowed."""
        token, _, place = urlsplit(self.path).path.removeprefix("/").partition("/")
        origin = self.headers.get("Origin")
        here = HERE.fullmatch(self.headers.get("Host", "")) is not None
        ours = origin is None or origin == f"http://{self.headers.get('Host')}"
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        if here and ours and known:
            return place
        self._answer(HTTPStatus.FORBIDDEN, "Open the address that dngd watch has printed.", close=True)
        return None

    def _answer_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._answer(status, json.dumps(value, allow_nan=False), "application/json")

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain", close: bool = False) -> None:
        data = text.encode(errors="replace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if close:  # what else was sent is not read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: addresses hold the token."""


class Server(ThreadingHTTPServer):
    """Serves the page at `address`, to this machine only, until `shutdown()`."""

    daemon_threads = True

    def __init__(self, paths: Sequence[Path], port: int = 0, trust: bool = False):
        self.watch, self.token = Watch(paths, trust), secrets.token_urlsafe(16)
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"

    def handle_error(self, request, client_address):
        """Ignore a browser that has gone while it was answered."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
