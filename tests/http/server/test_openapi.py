"""The OpenAPI document is accurate: the server behaves as it describes.

Requests are made from the document, as it says and as it does not, for every operation. A longer
run by hand: TREADLE_API_EXAMPLES=100 pytest tests/http/server/test_openapi.py
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.furnished import furnish, write_config
from tests.drivers.http.tokens import Closed, closed
from tests.drivers.http.v1 import code_of
from treadle.api.auth import OPEN_PATHS

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "ignored_auth",
)
# It never ends; its own tests look at it.
ENDLESS = "/v1/events/stream"
IN_FRONT = {"400", "401", "403", "408", "413", "414", "415", "422", "429", "431", "503"}
EXAMPLES = int(os.environ.get("TREADLE_API_EXAMPLES", "0"))
QUICK = ("--phases", "fuzzing", "-n", "8")


@pytest.fixture(scope="module")
def closed_server(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Closed]:
    with closed(new_database, tmp_path_factory.mktemp("openapi"), poll_s=0.2) as server:
        yield server


def test_the_server_behaves_as_its_openapi_document_describes(
    closed_server: Closed, tmp_path: Path
) -> None:
    with closed_server.client(closed_server.tokens["admin"]) as http:
        write_config(tmp_path / "schemathesis.toml", furnish(http))
        # The server makes the document once. Schemathesis waits for it only a few seconds.
        assert http.get("/openapi.json", timeout=120).status_code == 200

    # Every boundary of every field takes minutes; a run by hand looks at them too.
    effort = ("--phases", "coverage,fuzzing", "-n", str(EXAMPLES)) if EXAMPLES else QUICK
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli"),
            *("--config-file", str(tmp_path / "schemathesis.toml")),
            *("run", f"{closed_server.server.url}/openapi.json"),
            *("-H", f"Authorization: Bearer {closed_server.tokens['admin']}"),
            *("--exclude-path", ENDLESS, "--checks", ",".join(CHECKS), *effort),
            *("--generation-deterministic", "--request-timeout", "40", "--no-color"),
            *("--continue-on-failure", "--warnings", "off"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]
    broken = closed_server.server.child.events("request.crashed")
    assert not broken


def test_the_document_describes_the_responses_of_the_middlewares(closed_server: Closed) -> None:
    with closed_server.client(closed_server.tokens["read"]) as http:
        document = http.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    operations = {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for (_, path), operation in operations.items():
        assert set(operation["responses"]) >= IN_FRONT
        assert ("security" in operation) == (path not in OPEN_PATHS), path
    names = [operation["operationId"] for operation in operations.values()]
    assert len(names) == len(set(names))
    # Two models of one name would get long ones, made of their modules.
    assert [name for name in document["components"]["schemas"] if "__" in name] == []


def test_the_endless_answer_is_refused_as_the_others_are(closed_server: Closed) -> None:
    with closed_server.client() as stranger:
        assert code_of(stranger.get(ENDLESS)) == (401, "unauthenticated")
    with closed_server.client(closed_server.tokens["enqueue"]) as producer:
        assert code_of(producer.get(ENDLESS)) == (403, "forbidden")
