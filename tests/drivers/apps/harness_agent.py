"""An agent for tests: its task says what it decides and when it waits.

python -m tests.drivers.apps.harness_agent HARNESS_URL AGENT_URL
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from treadle.client import ClientError, HarnessClient

nudged = threading.Event()


class Nudges(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        nudged.set()
        self.send_response(202)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def main(harness_url: str, agent_url: str) -> None:
    address = urlsplit(agent_url)
    server = ThreadingHTTPServer((address.hostname or "", address.port or 0), Nudges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with HarnessClient(harness_url, agent_url, patience_s=30) as client:
        while True:
            nudged.clear()
            try:
                while task := client.next_task():
                    with client.keep_alive(task.task_id, every_s=0.2):
                        while (hold := task.payload.get("hold")) and not Path(hold).exists():
                            time.sleep(0.02)
                    client.complete_task(task.task_id, task.payload.get("decision", {}))
            except ClientError as error:
                sys.stderr.write(f"{error}\n")
            nudged.wait(timeout=600)


if __name__ == "__main__":
    main(*sys.argv[1:])
