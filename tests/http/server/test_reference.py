"""The pages at / and /docs lead to the OpenAPI document and load nothing from other hosts."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests import vendor
from tests.drivers.databases import NewDatabase
from tests.drivers.http.browser import CHROMIUM, Page, browser
from tests.drivers.http.servers import Serve, Served

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
# The paths of the operations that the page shows.
SHOWN = "[...document.querySelectorAll('.opblock [data-path]')].map((each) => each.dataset.path)"
# What the page leaves in the browser.
KEPT = "localStorage.length + sessionStorage.length + document.cookie.length"


@pytest.fixture
def http(server: Served) -> Iterator[httpx2.Client]:
    """A client that leaves the database alone: these pages never ask it."""
    with httpx2.Client(base_url=server.url, timeout=30) as client:
        yield client


class Links(HTMLParser):
    """What a page loads and links to, and whether it has scripts or styles of its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.inline: list[str] = []
        self.followed: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("script", "link", "img"):
            self.loaded.append(named.get("src") or named.get("href") or "")
        if tag == "a":
            self.followed.append(named.get("href") or "")
        if tag == "style" or "style" in named or (tag == "script" and "src" not in named):
            self.inline.append(tag)
        self.inline += [name for name in named if name.startswith("on")]


def test_the_page_takes_all_its_files_from_here(http: httpx2.Client) -> None:
    page = http.get("/docs")
    links = Links(page.text)
    files = [link for link in links.loaded if link != "data:,"]

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert links.inline == []
    assert files == ["docs/swagger-ui.css", "docs/swagger-ui-bundle.js", "docs/docs.js"]
    types = [http.get(f"/{file}").headers["content-type"].partition(";")[0] for file in files]
    assert types == ["text/css", "text/javascript", "text/javascript"]
    assert "openapi.json" in http.get("/docs/docs.js").text
    assert http.get("/openapi.json").json()["openapi"].startswith("3.")


@pytest.mark.requirement("F28")
def test_the_index_leads_browsers_and_programs_to_the_same_pages(http: httpx2.Client) -> None:
    page = http.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    index = http.get("/")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    links = Links(page.text)
    assert (links.inline, links.loaded) == ([], ["data:,"])
    assert set(links.followed) == set(index.json().values())
    assert {link: http.get(f"/{link}").status_code for link in links.followed} == dict.fromkeys(
        links.followed, 200
    )
    assert "Accept" in page.headers["vary"].split(", ")
    assert "Accept" in index.headers["vary"].split(", ")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline(
    http: httpx2.Client, path: str
) -> None:
    headers = http.get(path).headers

    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'"} <= set(policy)
    assert {"frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    sources = {word for rule in policy for word in rule.split()[1:]}
    assert sources == {"'none'", "'self'", "data:"}
    assert headers["x-content-type-options"] == "nosniff"


def test_the_files_are_those_of_the_package(http: httpx2.Client) -> None:
    locked = vendor.read_lock()["swagger-ui-dist"]["files"]

    for name in ("swagger-ui-bundle.js", "swagger-ui.css"):
        sent = http.get(f"/docs/{name}").content
        assert hashlib.sha256(sent).hexdigest() == locked[name]


def test_what_a_browser_has_already_is_not_sent_again(http: httpx2.Client) -> None:
    first = http.get("/docs/swagger-ui.css")
    tag = first.headers["etag"]

    same = http.get("/docs/swagger-ui.css", headers={"If-None-Match": tag})
    other = http.get("/docs/swagger-ui.css", headers={"If-None-Match": '"another"'})

    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert (other.status_code, other.content) == (200, first.content)
    assert first.headers["cache-control"] == "no-cache"


def test_a_file_is_compressed_for_clients_that_accept_it(http: httpx2.Client) -> None:
    path = "/docs/swagger-ui-bundle.js"
    plain = http.get(path, headers={"Accept-Encoding": "identity"})
    with http.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        sent = b"".join(packed.iter_raw())

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(sent) == plain.content
    assert len(sent) < len(plain.content) / 3
    assert packed.headers["etag"] != plain.headers["etag"]
    assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "name", ["vendor.lock", "LICENSE", "..%2Freference.py", "%2e%2e/app.py", "docs.html", "x.js"]
)
def test_no_other_file_is_shown(http: httpx2.Client, name: str) -> None:
    answer = http.get(f"/docs/{name}")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@in_a_browser
def test_a_browser_shows_the_operations_and_asks_no_other_host(
    server: Served, http: httpx2.Client, tmp_path: Path
) -> None:
    document = http.get("/openapi.json").json()

    with browser(tmp_path) as page:
        page.open(f"{server.url}/docs")
        page.until(f"new Set({SHOWN}).size >= {len(document['paths'])}")
        shown = page.value(SHOWN)

    assert len(document["paths"]) > 2
    assert set(shown) == set(document["paths"])
    assert page.complaints == []
    assert {url.removeprefix(server.url) for url in page.asked if url[:5] != "data:"} == {
        "/docs",
        "/docs/swagger-ui.css",
        "/docs/swagger-ui-bundle.js",
        "/docs/docs.js",
        "/openapi.json",
    }


@in_a_browser
def test_where_tokens_are_wanted_the_page_asks_for_one(
    new_database: NewDatabase, serve: Serve, tmp_path: Path
) -> None:
    with new_database() as url:
        with psycopg.connect(url) as conn:
            query = """select treadle.create_token('reader', '{"scopes": ["read"]}')"""
            [token] = conn.execute(query).fetchone() or [""]
        closed = serve(database_url=url)

        with browser(tmp_path) as page:
            page.open(f"{closed.url}/docs")
            page.until("document.querySelector('form')?.hidden === false")
            give(page, "wrong")
            refused = page.until("document.querySelector('output').textContent")
            give(page, token)
            page.until(f"{SHOWN}.length > 0")
            # The token is sent with what is tried out from here, too.
            page.until("document.querySelector('.authorize.locked') !== null")
            hidden, kept = page.value("document.querySelector('form').hidden"), page.value(KEPT)
        closed.child.end()

    assert "token" in refused
    assert hidden
    assert kept == 0


def give(page: Page, token: str) -> None:
    """Type a token into the form and send it."""
    page.value(f"document.querySelector('input').value = {json.dumps(token)}")
    page.value("document.querySelector('form button').click()")
