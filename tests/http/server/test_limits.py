"""Requests are limited before they are parsed: size, time, media type, depth, headers, rate."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.drivers.databases import NewDatabase
from tests.drivers.http.servers import Served, served
from tests.drivers.http.sockets import answer, ask, connect, head, is_closed
from treadle.api import limits
from treadle.api.auth import MAX_HEAD, MAX_TARGET
from treadle.api.limits import MAX_BRACKETS, SMALL

# Behind the limits there is no such route: 404 says that a request got through them.
PATH = "/nowhere"
JSON = "Content-Type: application/json"
MOST = 100_000


@pytest.fixture(scope="module")
def bounded(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("bounded") / "server.log"
    settings = {"header_timeout_s": 3, "max_body_bytes": MOST}
    with new_database() as url, served(url, log, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def impatient(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """The same server with short timeouts, for clients that wait for the end of the connection."""
    log = tmp_path_factory.mktemp("impatient") / "server.log"
    settings: dict[str, Any] = {
        "body_timeout_s": 1,
        "header_timeout_s": 1,
        "max_body_bytes": MOST,
        "constants": [(limits, "SILENCE_S", 0.3), (limits, "SMALL_S", 0.3)],
    }
    with new_database() as url, served(url, log, **settings) as server:
        yield server


@pytest.fixture(scope="module")
def roomy(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same, with the usual size of a body."""
    log = tmp_path_factory.mktemp("roomy") / "server.log"
    with new_database() as url, served(url, log) as server:
        yield server


@pytest.fixture
def client(bounded: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=bounded.url, timeout=30) as client:
        yield client


def post(client: httpx2.Client, body: bytes, kind: str = "application/json") -> httpx2.Response:
    return client.post(PATH, content=body, headers={"Content-Type": kind})


@pytest.mark.requirement("B10")
def test_a_body_that_is_announced_too_large_is_refused_unread(impatient: Served) -> None:
    found = ask(impatient.url, head("POST", PATH, JSON, f"Content-Length: {100 * 2**20}"))

    assert found.status == 413
    assert found.problem["code"] == "too-large"
    assert found.problem["max_bytes"] == MOST


@pytest.mark.requirement("B10")
def test_a_client_that_waits_to_be_asked_is_not_asked_for_too_much(impatient: Served) -> None:
    lines = head("POST", PATH, JSON, "Expect: 100-continue", f"Content-Length: {2**30}")

    assert ask(impatient.url, lines).status == 413


@pytest.mark.requirement("B10")
def test_a_body_that_is_not_announced_is_cut_off(bounded: Served) -> None:
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with connect(bounded.url) as line:
        line.sendall(head("POST", PATH, JSON, "Transfer-Encoding: chunked") + chunk + chunk)
        assert line.recv(12) == b"HTTP/1.1 413"
        sent = 0
        try:
            # 100 MB, or until the server has had enough.
            while sent < 100 * 2**20:
                line.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
    assert sent < 100 * 2**20


def test_an_honest_client_reads_why_its_body_was_too_large(client: httpx2.Client) -> None:
    for size in (MOST + 1, 3 * 2**20):
        found = post(client, b" " * size)
        assert (found.status_code, found.json()["code"]) == (413, "too-large")
    assert post(client, b"[" + b" " * (MOST - 2) + b"]").status_code == 404


@pytest.mark.requirement("B10")
def test_a_body_that_does_not_come_is_not_waited_for(impatient: Served) -> None:
    with connect(impatient.url) as line:
        line.sendall(head("POST", PATH, JSON, "Content-Length: 100") + b'{"a"')
        found = answer(line)

    assert found.status == 408
    assert found.problem["detail"] == "the body did not arrive within 1 s"
    assert found.closed


@pytest.mark.requirement("B10")
def test_a_body_that_drips_is_not_waited_for(impatient: Served) -> None:
    with connect(impatient.url) as line:
        line.sendall(head("POST", PATH, JSON, "Content-Length: 100000"))
        began = time.monotonic()
        line.settimeout(0.1)
        while time.monotonic() - began < 10:
            line.sendall(b" ")
            try:
                first = line.recv(20)
                break
            except TimeoutError:
                pass
        assert first.startswith(b"HTTP/1.1 408")


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: loc"])
def test_headers_that_do_not_come_are_not_waited_for(impatient: Served, sent: bytes) -> None:
    with connect(impatient.url) as line:
        line.sendall(sent)
        assert is_closed(line, 10)


def test_headers_of_a_later_request_are_not_waited_for_either(bounded: Served) -> None:
    with connect(bounded.url) as line:
        line.sendall(head("GET", "/healthz"))
        assert answer(line).status == 200
        line.sendall(b"GET /hea")
        assert is_closed(line, 10)


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"hello\r\n\r\n", 400, "bad-request"),
        (b"\r\n", 400, "bad-request"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "bad-request"),
        (head("GET", "/", "Host: other"), 400, "bad-request"),
        (head("GET", "/", "bad header"), 400, "bad-request"),
        (head("POST", "/", "Content-Length: -1"), 400, "bad-request"),
        (head("POST", "/", "Content-Length: 1", "Content-Length: 2"), 400, "bad-request"),
        (head("POST", "/", "Transfer-Encoding: gzip"), 501, "not-implemented"),
        (head("GET", "/", f"X: {'a' * MAX_HEAD}"), 431, "request-header-fields-too-large"),
        (head("GET", "/", "X: " + "a" * 600_000), 431, "request-header-fields-too-large"),
        (head("GET", f"/?{'a' * MAX_TARGET}"), 414, "uri-too-long"),
        (head("POST", "/", "Content-Length: 5", "Transfer-Encoding: chunked"), 400, "bad-request"),
    ],
)
def test_invalid_http_gets_a_problem_document(
    impatient: Served, data: bytes, status: int, code: str
) -> None:
    found = ask(impatient.url, data)

    assert found.status == status
    assert (found.problem["status"], found.problem["code"]) == (status, code)
    assert found.closed
    assert ask(impatient.url, head("GET", found.problem["type"])).status == 200


def test_a_body_that_breaks_off_does_no_harm(bounded: Served, client: httpx2.Client) -> None:
    for rest in (b"zz\r\n", b"5\r\nabcdefgh", b"f" * 21 + b"\r\n"):
        with connect(bounded.url) as line:
            line.sendall(head("POST", PATH, JSON, "Transfer-Encoding: chunked") + rest)
            assert answer(line).status == 400
    # Here the application answers without a look at the body, when the line is closed already.
    refused = head("POST", PATH, JSON, "Transfer-Encoding: chunked", host="evil.example")
    assert ask(bounded.url, refused + b"zz\r\n").status == 400
    with connect(bounded.url) as line:
        line.sendall(head("POST", PATH, JSON, "Content-Length: 100") + b"{")

    assert client.get("/healthz").status_code == 200
    assert "Traceback" not in bounded.child.log.read_text()


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 202 + b"]" * 202, "recursion limit"),
        (b'{"a":' * 202 + b"1" + b"}" * 202, "recursion limit"),
        (b"[" * 40_000, "recursion limit"),
        (b"[NaN]", "read as JSON"),
        (b"[-Infinity]", "read as JSON"),
        (b"[" + b"9" * 5000 + b"]", "number out of range"),
        (b'["\\u0000"]', "NUL"),
        (b'["\\\\\\u0000"]', "NUL"),
        (b'["\x00"]', "control character"),
        (b'["\\ud800"]', "hex escape"),
        (b'["\\udc00\\ud800"]', "surrogate"),
        (b'["\\ud800\\\\\\udc00"]', "hex escape"),
        (b'["\xff"]', "unicode"),
        (b'["\xed\xa0\x80"]', "unicode"),
        ("[1]".encode("utf-16"), "read as JSON"),
        ("[1]".encode("utf-16-le"), "read as JSON"),
        (b'{"a": 1', "read as JSON"),
        (b"[" + b"[]," * 33_000 + b"[]]", None),
        (b"[" * 200 + b"]" * 200, None),
        (b'["' + b"[" * 300 + b'"]', None),
        (b'["NaN", "1e999", "' + b"9" * 5000 + b'"]', None),
        (b'["\\\\u0000", "\\ud83d\\ude00", 1e308, 1E+0308, 5e-999]', None),
        ('["é 😀"]'.encode(), None),
    ],
)
def test_json_that_cannot_be_stored_is_rejected(
    client: httpx2.Client, body: bytes, words: str | None
) -> None:
    found = post(client, body)

    if words is None:
        assert found.status_code == 404
    else:
        assert (found.status_code, found.json()["code"]) == (422, "invalid-argument")
        assert words in found.json()["detail"]


@pytest.mark.requirement("B10")
def test_more_brackets_than_a_parser_should_see_are_refused(roomy: Served) -> None:
    with httpx2.Client(base_url=roomy.url, timeout=30) as client:
        found = post(client, b"[" + b"{}," * MAX_BRACKETS + b"1]")
        assert (found.status_code, found.json()["code"]) == (422, "invalid-argument")
        assert f"more than {MAX_BRACKETS} opening brackets" in found.json()["detail"]
        assert post(client, b"[" + b"{}," * (MAX_BRACKETS - 1) + b"1]").status_code == 404


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested more than 64 levels deep"),
        (b'{"a": 1e999}', "spec.a is inf"),
        (b'{"a": -2.5E+400}', "spec.a is -inf"),
    ],
)
def test_a_document_that_jsonb_cannot_hold_is_refused(
    client: httpx2.Client, spec: bytes, words: str
) -> None:
    body = b'{"type": "code", "spec": ' + spec + b"}"
    found = client.post("/v1/tasks", content=body, headers={"Content-Type": "application/json"})

    assert (found.status_code, found.json()["code"]) == (422, "invalid-argument")
    assert words in found.json()["detail"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *(("application/json", 404), ("application/json; charset=utf-8", 404)),
        *(("Application/Merge-Patch+JSON", 404), ("text/plain", 415), ("text/json", 415)),
        *(("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=x", 415)),
        *(("", 415), ("application/jsonp", 415)),
    ],
)
def test_a_body_needs_the_media_type_json(client: httpx2.Client, kind: str, status: int) -> None:
    found = post(client, b'{"a": 1}', kind)

    assert found.status_code == status
    if status == 415:
        assert found.json()["code"] == "unsupported-media-type"


def test_a_body_is_not_unpacked(client: httpx2.Client) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}

    assert client.post(PATH, content=b"{}", headers=headers).status_code == 415


def test_a_body_of_any_size_arrives_completely(client: httpx2.Client) -> None:
    for size in (1, SMALL - 1, SMALL, SMALL + 1, MOST):
        whole = b"[" + b" " * (size - 2) + b"]" if size > 1 else b"1"
        assert post(client, whole).status_code == 404
