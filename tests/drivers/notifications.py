"""A session that listens for notifications."""

import psycopg

from tests.drivers.engine import Driver


class Listener:
    """A session that listens."""

    def __init__(self, driver: Driver, *channels: str) -> None:
        self._conn = driver.another().conn
        for channel in channels:
            self._conn.execute(f'listen "{channel}"'.encode())

    def heard(self) -> list[str]:
        """The channels of the notifications received so far."""
        return [each.channel for each in self.notes()]

    def notes(self) -> list[psycopg.Notify]:
        """The notifications so far; our own echo arrives after all earlier ones."""
        self._conn.execute("listen echo")
        self._conn.execute("notify echo")
        found: list[psycopg.Notify] = []
        for notify in self._conn.notifies(timeout=60):
            if notify.channel == "echo":
                return found
            found.append(notify)
        raise AssertionError("no echo")
