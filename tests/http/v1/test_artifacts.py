"""The files of tasks over HTTP: their metadata and their content."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.shapes import shaped
from tests.drivers.http.tokens import Closed, closed, create
from tests.drivers.http.v1 import UNKNOWN_ID, act, code_of, enqueue, register, take_one
from treadle.api.v1 import artifacts as models

FORBIDDEN = (403, "forbidden")
NAME = 'über "x".pdf'
# More than one part of the store.
CONTENT = b"0123456789abcdef" * (9 * 65536)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def guarded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[Closed]:
    log = tmp_path_factory.mktemp("closed")
    with closed(new_database, log, artifacts_url=folder.as_uri()) as found:
        found.sql.execute("select treadle.define_queue('mail')")
        register(found.client(found.tokens["admin"]), queues=["default", "mail"])
        yield found


@pytest.fixture
def http(guarded: Closed) -> Iterator[httpx2.Client]:
    with guarded.client(guarded.tokens["admin"]) as client:
        yield client


def put(
    guarded: Closed,
    folder: Path,
    content: bytes = CONTENT,
    *,
    url: str | None = None,
    kind: str = "application/pdf",
    said: bytes | None = None,
) -> str:
    """The id of a file that a task has stored."""
    with guarded.client(guarded.tokens["admin"]) as admin:
        enqueue(admin)
        claim = take_one(admin)
    made = uuid4()
    row = guarded.sql.execute(
        "select key from treadle.reserve_artifact(%s, %s, %s, %s, %s, %s)",
        (claim["id"], claim["token"], made, NAME, url or folder.as_uri(), kind),
    ).fetchone()
    assert row is not None
    if url is None:
        file = folder / row[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    digest = hashlib.sha256(content if said is None else said).hexdigest()
    guarded.sql.execute(
        "select treadle.store_artifact(%s, %s, %s, %s, %s)",
        (claim["id"], claim["token"], made, len(content), digest),
    )
    return str(made)


def test_a_file_comes_as_it_was_stored(guarded: Closed, http: httpx2.Client, folder: Path) -> None:
    made = put(guarded, folder)
    shown = shaped(models.Artifact, http.get(f"/v1/artifacts/{made}"))
    answer = http.get(f"/v1/artifacts/{made}/content")

    assert (shown["name"], shown["status"], shown["bytes"]) == (NAME, "stored", len(CONTENT))
    assert answer.status_code == 200
    assert answer.content == CONTENT
    headers = answer.headers
    assert headers["content-type"] == "application/pdf"
    assert headers["content-length"] == str(len(CONTENT))
    assert headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"' == f'"{shown["sha256"]}"'
    assert headers["content-disposition"] == (
        "attachment; filename*=UTF-8''%C3%BCber%20%22x%22.pdf"
    )
    assert headers["x-content-type-options"] == "nosniff"
    again = http.get(f"/v1/artifacts/{made}/content", headers={"If-None-Match": headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_an_empty_file_is_one_too(guarded: Closed, http: httpx2.Client, folder: Path) -> None:
    answer = http.get(f"/v1/artifacts/{put(guarded, folder, b'')}/content")

    assert (answer.status_code, answer.content) == (200, b"")


def test_a_media_type_that_is_not_a_valid_header_is_sent_as_bytes(
    guarded: Closed, http: httpx2.Client, folder: Path
) -> None:
    answer = http.get(f"/v1/artifacts/{put(guarded, folder, b'x', kind='ü/ä')}/content")

    assert (answer.status_code, answer.content) == (200, b"x")
    assert answer.headers["content-type"] == "application/octet-stream"


def test_a_missing_object_is_not_found(guarded: Closed, http: httpx2.Client, folder: Path) -> None:
    gone = put(guarded, folder)
    for file in folder.rglob(f"*{gone}*"):
        file.unlink()

    for path in (f"/v1/artifacts/{UNKNOWN_ID}", f"/v1/artifacts/{UNKNOWN_ID}/content"):
        assert code_of(http.get(path)) == (404, "artifact-not-found")
    assert code_of(http.get(f"/v1/artifacts/{gone}/content")) == (404, "artifact-not-found")


def test_the_content_of_a_linked_file_is_not_sent(
    guarded: Closed, http: httpx2.Client, folder: Path
) -> None:
    enqueue(http)
    linked = act(http, take_one(http), "artifacts", name="a", uri="https://example.org/a").json()
    other = put(guarded, folder, url="s3://other/place")

    for made, word in ((linked["id"], "example.org/a"), (other, "s3://other/place")):
        answer = http.get(f"/v1/artifacts/{made}/content")
        assert code_of(answer) == (409, "conflict")
        assert word in answer.json()["detail"]
        assert answer.json()["hint"]


def test_a_damaged_file_is_sent_incomplete(
    guarded: Closed, http: httpx2.Client, folder: Path
) -> None:
    small = put(guarded, folder, b"damaged", said=b"as it was")
    large = put(guarded, folder, said=b"as it was")

    assert code_of(http.get(f"/v1/artifacts/{small}/content")) == (503, "store")
    with pytest.raises(httpx2.RemoteProtocolError):
        http.get(f"/v1/artifacts/{large}/content")


@pytest.mark.requirement("B10")
def test_a_file_of_a_task_elsewhere_is_not_for_a_token_of_a_queue(
    guarded: Closed, folder: Path
) -> None:
    made = put(guarded, folder)
    with guarded.client(create(guarded.sql, "mailer", "read", queues=["mail"])) as mailer:
        for part in ("", "/content"):
            assert code_of(mailer.get(f"/v1/artifacts/{made}{part}")) == FORBIDDEN
