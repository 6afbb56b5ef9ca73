"""A real browser, driven through its DevTools protocol over two pipes."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
WITHIN_S = 30.0
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-features=NetworkTimeServiceQuerying",
    # The browser itself must not connect to other hosts.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip


class Page:
    """One page with its requests and its errors."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._rest = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.asked: list[str] = []
        self.complaints: list[str] = []

    def open(self, url: str) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for part in ("Network", "Log", "Runtime", "Page"):
            self.call(f"{part}.enable")
        # High enough for all of a page: some make only what can be seen.
        size = {"width": 1200, "height": 20_000, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait until an expression is true in the page; its value."""
        until = time.monotonic() + WITHIN_S
        while not (found := self.value(expression)):
            assert time.monotonic() < until, (expression, self.complaints)
            time.sleep(0.05)
        return found

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._commands, json.dumps(order).encode() + b"\0")
        while (message := self._next()).get("id") != self._number:
            self._notice(message.get("method"), message.get("params", {}))
        assert "error" not in message, message
        answer: dict[str, Any] = message["result"]
        return answer

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._answers, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _notice(self, event: str | None, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.complaints.append(about["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))


@contextmanager
def browser(folder: Path) -> Iterator[Page]:
    """A browser with one page and an empty profile."""
    assert CHROMIUM is not None
    commands, ours = os.pipe()
    answers, theirs = os.pipe()
    words = [CHROMIUM, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}"]
    # The browser expects them as file descriptors 3 and 4.
    script = f'exec "$@" 3<&{commands} 4>&{theirs}'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *words],
        pass_fds=[commands, theirs],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(theirs)
    try:
        yield Page(ours, answers)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(answers)
