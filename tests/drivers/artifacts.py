"""Artifacts through their SQL functions: reserve, store, read and list them."""

from typing import Any
from uuid import UUID, uuid4

from tests.drivers.engine import Driver, Record
from treadle.models import Claim

DIGEST = "0f" * 32
URL = "s3://bucket/files/"


def reserve(
    driver: Driver,
    claim: Claim,
    artifact: UUID | None = None,
    name: str | None = "a.pdf",
    url: str | None = URL,
    media_type: str | None = "application/pdf",
) -> UUID:
    """Reserve a file; returns its artifact's id."""
    made = artifact or uuid4()
    given = (claim.id, claim.token, made, name, url, media_type)
    driver.rows("select * from treadle.reserve_artifact(%s, %s, %s, %s, %s, %s)", *given)
    return made


def store(
    driver: Driver, claim: Claim, artifact: UUID, size: int | None = 12, sha256: str | None = DIGEST
) -> Any:
    query = "select treadle.store_artifact(%s, %s, %s, %s, %s)"
    return driver.value(query, claim.id, claim.token, artifact, size, sha256)


def stored(driver: Driver, claim: Claim, name: str = "a.pdf") -> UUID:
    """A stored file."""
    made = reserve(driver, claim, name=name)
    store(driver, claim, made)
    return made


def artifacts(driver: Driver) -> list[Record]:
    return driver.records("select * from treadle.artifacts order by created_at")


def read(driver: Driver, reference: str | UUID, task: UUID | None = None) -> Any:
    return driver.value("select value from treadle.read_artifact(%s, %s)", str(reference), task)


def listed(driver: Driver, task: UUID) -> list[Any]:
    query = "select value ->> 'id', value -> 'attempt' from treadle.list_artifacts(%s) as value"
    return [(UUID(each), attempt) for each, attempt in driver.rows(query, task)]
