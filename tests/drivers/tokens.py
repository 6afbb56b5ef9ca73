"""Create tokens, look them up as the server does, and read what is stored."""

import json
from typing import Any

from tests.drivers.engine import Driver

SHAPE = r"trd_([0-9a-f]{12})_([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{6})"


def create(driver: Driver, name: str, *, actor: str | None = None, **settings: object) -> str:
    """The text of a new token; it can read unless something else is said."""
    given = {"scopes": ["read"], **settings}
    return str(
        driver.value("select treadle.create_token(%s, %s, %s)", name, json.dumps(given), actor)
    )


def find(driver: Driver, text: str) -> dict[str, Any] | None:
    """The result of a lookup by the server."""
    found = driver.records("select * from treadle.find_token(%s)", text.split("_")[1])
    return found[0] if found else None


def one(driver: Driver, token_id: str) -> dict[str, Any]:
    """The row of a token."""
    [row] = driver.records("select * from treadle.api_tokens where id = %s", token_id)
    return row


def listed(driver: Driver) -> list[dict[str, Any]]:
    """All tokens as the view shows them."""
    return driver.records("select * from treadle.token_status order by created_at")
