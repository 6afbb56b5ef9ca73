"""An agent with an HTTP interface in its own process, which can be made to misbehave.

`python -m tests.drivers.apps.push_agent PORT FILE` prints its port. Every execution is a line in
FILE. POST /control sets modes; GET /control shows what it was asked.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

# Longer than any client waits for a response.
HANG_S = 20.0


class Agent:
    """Tasks and modes of an agent that does one thing at a time."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lock = threading.RLock()
        self.tasks: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.polls = 0
        self.modes: dict[str, Any] = {
            "status": None,  # a code, "busy", "hang" or a body instead of the truth
            "answers": [],  # how the next submissions are answered: codes and words
            "looks": None,  # a code or "hang" for questions about tasks
            "remembers": "all",  # ids and keys: all, keys or nothing
            "work_s": 0.0,  # how long a task takes; None for ever
            "result": "done",
            "ends": "completed",
            "word": "working",  # for running tasks
            "victim": None,  # killed by the answer "kill"
        }

    def state_of(self, task: dict[str, Any]) -> str:
        work_s = self.modes["work_s"]
        past = time.time() - task["began"]
        if task["state"] == "working" and work_s is not None and past >= work_s:
            task["state"] = self.modes["ends"]
        return str(task["state"])

    def is_busy(self) -> bool:
        return any(self.state_of(task) == "working" for task in self.tasks.values())

    def known(self, name: str, value: object) -> dict[str, Any] | None:
        return next((task for task in self.tasks.values() if task[name] == value), None)

    def take(self, body: dict[str, Any], key: str) -> dict[str, Any]:
        """Execute a task; the execution is logged to the file first."""
        task = {
            "task_id": f"task-{uuid4().hex[:8]}",
            "queue_id": body["queue_id"],
            "key": key,
            "state": "working",
            "began": time.time(),
        }
        with self.file.open("a") as file:
            file.write(json.dumps({**task, "pid": os.getpid(), "request": body}) + "\n")
        self.tasks[str(task["task_id"])] = task
        return task


def handler(agent: Agent) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/control":
                with agent.lock:
                    self.answer(200, {"requests": agent.requests, "polls": agent.polls})
            elif self.path == "/status":
                self.status()
            else:
                self.look(self.path.removeprefix("/task/"))

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            if self.path == "/control":
                agent.modes.update(body)
                self.answer(200, {})
            elif self.path == "/task":
                self.submit(body, self.headers["idempotency-key"])
            else:
                self.cancel(self.path.split("/")[2])

        def status(self) -> None:
            agent.polls += 1
            mode = agent.modes["status"]
            if mode == "hang":
                time.sleep(HANG_S)
            elif isinstance(mode, int):
                self.answer(mode, {"state": "idle"})
            elif isinstance(mode, dict):
                self.answer(200, mode)
            else:
                with agent.lock:
                    busy = mode == "busy" or agent.is_busy()
                self.answer(200, {"state": "working" if busy else "idle"})

        def look(self, name: str) -> None:
            agent.requests.append(f"GET {name}")
            mode = agent.modes["looks"]
            if mode == "hang":
                time.sleep(HANG_S)
            elif mode is not None:
                self.answer(mode, {"error": "as told"})
                return
            with agent.lock:
                task = agent.tasks.get(name)
                if task is None and agent.modes["remembers"] == "all":
                    task = agent.known("queue_id", name)
                if task is None:
                    self.answer(404, {"error": "no such task"})
                    return
                said = {"task_id": task["task_id"], "state": agent.state_of(task)}
            if said["state"] == "working":
                said["state"] = agent.modes["word"]
            elif said["state"] == "completed":
                said["result"] = agent.modes["result"]
            elif said["state"] == "failed":
                said["error"] = "as told"
            self.answer(200, said)

        def submit(self, body: dict[str, Any], key: str) -> None:
            agent.requests.append(f"POST {key}")
            with agent.lock:
                mode = agent.modes["answers"].pop(0) if agent.modes["answers"] else "take"
            if mode == "hang":
                time.sleep(HANG_S)
            elif isinstance(mode, int):
                self.answer(mode, {"error": "as told"})
            elif mode == "drop":
                self.close_connection = True
            else:
                self.execute(body, key, mode)

        def execute(self, body: dict[str, Any], key: str, mode: str) -> None:
            with agent.lock:
                task = None
                if agent.modes["remembers"] != "nothing":
                    task = agent.known("key", key)
                if task is None and agent.is_busy():
                    self.answer(409, {"error": "busy"})
                    return
                task = task or agent.take(body, key)
            if mode == "take_then_hang":
                time.sleep(HANG_S)
            elif mode == "take_then_drop":
                self.close_connection = True
            elif mode == "kill":
                os.kill(agent.modes["victim"], signal.SIGKILL)
                time.sleep(0.1)
            elif mode == "take_then_502":
                self.answer(502, {"error": "as told"})
            elif mode.startswith("half"):
                self.answer(201, {"task_id": task["task_id"]}, missing=100)
                time.sleep(HANG_S if mode == "half_then_hang" else 0)
            elif mode == "nameless":
                self.answer(201, {"ok": True})
            else:
                said = {"task_id": task["task_id"], "session_id": "s-1", "state": "working"}
                self.answer(201, said)

        def cancel(self, name: str) -> None:
            agent.requests.append(f"CANCEL {name}")
            with agent.lock:
                task = agent.tasks.get(name) or agent.known("queue_id", name)
                if task is not None:
                    task["state"] = "cancelled"
            self.answer(200 if task else 404, {})

        def answer(self, status: int, body: dict[str, Any], missing: int = 0) -> None:
            raw = json.dumps(body).encode()
            with contextlib.suppress(OSError):
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(raw) + missing))
                self.end_headers()
                self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client may disconnect at any time


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), handler(Agent(Path(sys.argv[2]))))
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever(0.05)
