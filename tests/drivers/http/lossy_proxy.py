"""A proxy between a client and a server that loses or replaces requests and answers."""

import http.client
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

When = Literal["before", "after"] | int


class Flaky:
    """A proxy that loses planned messages: `flaky.lose("/complete", "after")`."""

    def __init__(self, url: str) -> None:
        self.target = urlsplit(url)
        self.seen: Counter[str] = Counter()
        self.lost = 0
        self.url = ""
        self._plans: list[tuple[str, When]] = []
        self._lock = threading.Lock()

    def lose(self, needle: str, when: When = "after", times: int = 1) -> None:
        """The next requests to such a path: before they arrive, or their answer; or a status."""
        self._plans += [(needle, when)] * times

    def plan(self, path: str) -> When | None:
        """The plan for this request; a plan is used once."""
        with self._lock:
            self.seen[path] += 1
            for plan in self._plans:
                if plan[0] in path:
                    self._plans.remove(plan)
                    self.lost += 1
                    return plan[1]
            return None


@contextmanager
def flaky(url: str) -> Iterator[Flaky]:
    """Run the proxy until the block ends."""
    made = Flaky(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            plan = made.plan(self.path)
            if plan == "before":
                self._hang_up()
                return
            if isinstance(plan, int):
                self.send_response(plan)
                self.send_header("retry-after", "0")
                self.send_header("content-length", "0")
                self.end_headers()
                return
            there = http.client.HTTPConnection(made.target.hostname or "", made.target.port)
            headers = {name: self.headers[name] for name in self.headers if name != "host"}
            there.request("POST", self.path, body, headers)
            answer = there.getresponse()
            text = answer.read()
            there.close()
            if plan == "after":
                self._hang_up()
                return
            self.send_response(answer.status)
            for name in ("content-type", "retry-after"):
                if value := answer.getheader(name):
                    self.send_header(name, value)
            if answer.status != 204:
                self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()
