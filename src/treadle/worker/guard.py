"""Run a program and end it with who asked for it, also when that one is killed.

`guard.py FD PROGRAM …`: FD is the reading end of a pipe that only the worker holds open. When the
worker is gone the pipe ends, and everything in this session is killed. A program of its own, run
by its path: it imports nothing of treadle.
"""

import os
import signal
import subprocess
import sys
import threading


def watch(pipe: int) -> None:
    """Wait for the end of the pipe, then end the whole group, this process included."""
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """The program."""
    threading.Thread(target=watch, args=(int(sys.argv[1]),), daemon=True).start()
    code = subprocess.call(sys.argv[2:])
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
