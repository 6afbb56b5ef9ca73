"""The last resort of a process that was told to stop: it exits, whatever it still waits for."""

import os
import threading

import structlog

log = structlog.get_logger(__name__)
# Beyond the grace: for closing connections and files.
SPARE_S = 5.0


def exit_within(grace_s: float) -> None:
    """End this process soon after its grace, also when a thread or a name lookup hangs.

    For processes of our own only, on the first signal.
    """
    timer = threading.Timer(grace_s + SPARE_S, _exit, [grace_s])
    timer.daemon = True
    timer.start()


def _exit(grace_s: float) -> None:
    log.error("process.exit_forced", grace_s=grace_s, spare_s=SPARE_S)
    os._exit(1)
