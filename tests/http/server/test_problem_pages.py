"""The `type` of every problem links to a page that explains it."""

import ast
import html
from collections.abc import Iterator

import httpx2
import pytest

from tests.drivers import tree
from tests.drivers.http.servers import Served
from tests.drivers.tree import error_classes
from treadle.api.problems import code_of, phrase
from treadle.errors import QueueFull

OURS = [cls for cls in error_classes() if cls.__module__ == "treadle.errors"]


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    """A client that leaves the database alone: these pages never ask it."""
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


def codes_in_the_source() -> set[str]:
    """What the server passes to `problem(...)` as a code, where it is a plain word."""
    found = set()
    for path, module in tree.modules():
        for node in ast.walk(module):
            if path.startswith("api/") and isinstance(node, ast.Call) and len(node.args) > 1:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else None
                name = node.func.id if isinstance(node.func, ast.Name) else name
                code = node.args[1]
                if name == "problem" and isinstance(code, ast.Constant):
                    found.add(str(code.value))
    return found


def test_every_error_has_its_page(http: httpx2.Client) -> None:
    for cls in OURS:
        page = http.get(f"/problems/{cls.code}")

        assert page.status_code == 200, cls
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert html.escape(" ".join(str(cls.__doc__).split())) in page.text
        assert f"{cls.http_status} {phrase(cls.http_status)}" in page.text
        assert f"treadle.errors.{cls.__name__}<" in page.text


def test_a_code_belongs_to_one_error() -> None:
    assert len({cls.code for cls in OURS}) == len(OURS)


def test_every_code_that_the_server_names_itself_has_its_page(http: httpx2.Client) -> None:
    named = codes_in_the_source()

    assert "internal-error" in named
    assert {code: http.get(f"/problems/{code}").status_code for code in named} == dict.fromkeys(
        named, 200
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (413, "content-too-large"),
        (414, "uri-too-long"),
        (416, "range-not-satisfiable"),
        (422, "unprocessable-content"),
    ],
)
def test_a_status_has_one_name_in_every_python(http: httpx2.Client, status: int, code: str) -> None:
    assert code_of(status) == code
    assert http.get(f"/problems/{code}").status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/nowhere"), ("DELETE", "/healthz")])
def test_the_type_of_a_problem_links_to_its_page(
    http: httpx2.Client, method: str, path: str
) -> None:
    refused = http.request(method, path).json()

    page = http.get(refused["type"])

    assert page.status_code == 200
    assert f"<h1>{refused['title']}</h1>" in page.text


def test_the_problem_page_says_whether_to_retry_and_what_to_do(http: httpx2.Client) -> None:
    full = http.get(f"/problems/{QueueFull.code}").text
    lost = http.get("/problems/claim-lost").text

    assert "<th>retry</th><td>later</td>" in full
    assert "<th>retry</th><td>not without a change</td>" in lost
    assert "Drop the result" in lost
    assert "TR101" in lost


def test_the_index_links_to_every_page(http: httpx2.Client) -> None:
    text = http.get("/problems").text

    assert all(f'href="problems/{cls.code}"' in text for cls in OURS)


def test_an_unknown_code_is_a_problem_itself(http: httpx2.Client) -> None:
    answer = http.get("/problems/<b>")

    assert answer.status_code == 404
    assert answer.json()["code"] == "not-found"


def test_the_pages_may_load_nothing_from_elsewhere(http: httpx2.Client) -> None:
    page = http.get("/problems/not-found")

    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in page.text
