"""Run a program and kill it when the worker that started it ends, even if the worker is killed.

`guard.py FD PROGRAM …`: FD is the read end of a pipe whose write end only the worker has open.
When the worker ends, the pipe is closed and every process of this session is killed. This file is
started by its path and imports nothing of treadle.
"""

import os
import signal
import subprocess
import sys
import threading


def watch(pipe: int) -> None:
    """Wait for the end of the pipe, then kill the process group, including this process."""
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the program and exit with its code, or with the signal that ended it."""
    threading.Thread(target=watch, args=(int(sys.argv[1]),), daemon=True).start()
    code = subprocess.call(sys.argv[2:])
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
