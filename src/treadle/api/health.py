"""Whether the server lives, and whether it can do its work; answered without a token."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from fastapi import APIRouter

from treadle.api.deps import Calls
from treadle.api.problems import answers
from treadle.db.gateway import Gateway
from treadle.errors import Unavailable

# Before those who ask lose their patience: a probe often waits no longer than this.
ANSWER_S = 3.0

router = APIRouter(tags=["health"])


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def alive() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.head("/health", include_in_schema=False)
@router.head("/readyz", include_in_schema=False)
@router.get("/health", responses=answers(503))
@router.get("/readyz", responses=answers(503))
async def ready(calls: Calls) -> dict[str, Any]:
    """The database answers too, and has the schema that this server needs."""
    try:
        with anyio.move_on_after(ANSWER_S):
            version, _ = await calls.schema_version()
            said = {"status": "ok", "schema_version": version}
            return {**said, "last_contact_at": last_contact_at(calls)}
    except Unavailable as error:
        raise Unavailable(
            str(error), hint=error.hint, last_contact_at=last_contact_at(calls)
        ) from None
    raise Unavailable(
        f"the database did not answer within {ANSWER_S:g} s", last_contact_at=last_contact_at(calls)
    )


def last_contact_at(calls: Gateway) -> str:
    """When the database last answered this server, to the second."""
    at = datetime.now(UTC) - timedelta(seconds=time.monotonic() - calls.contact_at)
    return at.isoformat(timespec="seconds")
