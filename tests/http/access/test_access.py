"""A caller is identified by its token and may do what the token allows; the rest is rejected."""

import base64
import hashlib
from collections.abc import Iterator
from functools import partial
from typing import get_args
from uuid import UUID

import anyio
import httpx2
import pytest
from fastapi import FastAPI

from tests.drivers.http.tokens import SCOPES, Closed, accepted_for, bearer, create
from tests.drivers.processes.children import until
from treadle import Treadle
from treadle.api import problems
from treadle.api.access import OPEN, Principal, Scope, requires
from treadle.api.app import make_app
from treadle.errors import Forbidden

# A route that needs to read, and nothing else.
READ = "/openapi.json"


@pytest.fixture
def anonymous(guarded: Closed) -> Iterator[httpx2.Client]:
    with guarded.client() as client:
        yield client


def resealed(text: str) -> str:
    """A token with the checksum that its other parts should have."""
    digest = hashlib.sha256(text[:60].encode()).digest()
    return text[:60] + base64.urlsafe_b64encode(digest).decode()[:6]


@pytest.mark.requirement("B10")
def test_a_request_without_a_token_gets_a_hint_how_to_create_one(anonymous: httpx2.Client) -> None:
    answer = anonymous.get(READ)

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json() == {
        "type": "/problems/unauthenticated",
        "title": "Unauthenticated",
        "status": 401,
        "detail": "this request needs a token",
        "code": "unauthenticated",
        "instance": READ,
        "hint": "Send Authorization: Bearer TOKEN; create one: treadle tokens create",
    }


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("scope", "status"),
    [("read", 200), ("operate", 200), ("admin", 200), ("enqueue", 403), ("work", 403)],
)
def test_a_scope_opens_what_it_names(guarded: Closed, scope: str, status: int) -> None:
    with guarded.client(guarded.tokens[scope]) as client:
        answer = client.get(READ)

    assert answer.status_code == status
    if status == 403:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert (problem["code"], problem["scope"]) == ("forbidden", "read")
        assert problem["detail"] == f"{scope} lacks the scope read"


@pytest.mark.requirement("B10")
def test_an_invalid_authorization_header_is_rejected(
    guarded: Closed, anonymous: httpx2.Client
) -> None:
    good = guarded.tokens["read"]
    other = guarded.tokens["admin"]
    wrong = {
        "none": "",
        "a scheme alone": "Bearer",
        "another scheme": f"Basic {good}",
        "no scheme": good,
        "garbage": "Bearer hunter2",
        "a part": f"Bearer {good[:-1]}",
        "more": f"Bearer {good}x",
        "two": f"Bearer {good} {good}",
        "in quotes": f'Bearer "{good}"',
        "a wrong checksum": f"Bearer {good[:-6]}AAAAAA",
        "another secret": f"Bearer {resealed(good[:17] + 'A' * 43)}",
        "the secret of another": f"Bearer {resealed(good[:17] + other[17:60])}",
        "an unknown id": f"Bearer {resealed('trd_' + '0' * 12 + good[16:60])}",
        "an id that is no id": f"Bearer {resealed('trd_' + 'A' * 12 + good[16:60])}",
        "much": f"Bearer {'a' * 8000}",
    }

    # The server knows the good one by heart from here on: what is wrong is wrong all the same.
    assert anonymous.get(READ, headers={"authorization": f"bEARER   {good}"}).status_code == 200
    found = {name: anonymous.get(READ, headers={"Authorization": wrong[name]}) for name in wrong}

    assert {name: answer.status_code for name, answer in found.items()} == dict.fromkeys(wrong, 401)
    assert good[17:] not in "".join(answer.text for answer in found.values())


def test_two_tokens_are_none(guarded: Closed, anonymous: httpx2.Client) -> None:
    headers = [("Authorization", f"Bearer {guarded.tokens[each]}") for each in ("read", "admin")]

    assert anonymous.get(READ, headers=headers).status_code == 401


@pytest.mark.requirement("B10")
def test_a_token_in_an_address_or_a_cookie_is_not_looked_at(
    guarded: Closed, anonymous: httpx2.Client
) -> None:
    token = guarded.tokens["admin"]

    for name in ("token", "access_token", "authorization", "bearer"):
        assert anonymous.get(READ, params={name: token}).status_code == 401
        assert anonymous.get(READ, headers={"Cookie": f"{name}={token}"}).status_code == 401
        assert anonymous.get(READ, headers={f"X-{name}": token}).status_code == 401


@pytest.mark.requirement("B10")
@pytest.mark.parametrize(
    ("end", "word"),
    [
        ("select treadle.revoke_token('{}')", "revoked"),
        (
            "update treadle.api_tokens set expires_at = clock_timestamp() where name = '{}'",
            "expired",
        ),
    ],
)
def test_a_token_that_ends_is_refused_within_five_seconds(
    guarded: Closed, end: str, word: str
) -> None:
    name = f"short-{word}"
    with guarded.client(create(guarded.sql, name)) as client:
        assert client.get(READ).status_code == 200

        guarded.sql.execute(end.format(name).encode())

        assert accepted_for(client, READ) < 5
        assert client.get(READ).json()["detail"] == f"the token {name} is {word}"


@pytest.mark.requirement("B10")
def test_the_last_use_is_noted_and_not_each_time(guarded: Closed) -> None:
    def used() -> object:
        found = guarded.sql.execute(
            "select last_used_at from treadle.token_status where name = 'used'"
        ).fetchone()
        return found[0] if found else None

    with guarded.client(create(guarded.sql, "used")) as client:
        assert used() is None
        for _ in range(20):
            assert client.get(READ).status_code == 200
        anyio.run(until, used)
        first = used()
        for _ in range(20):
            assert client.get(READ).status_code == 200

    assert used() == first


@pytest.mark.requirement("B10")
def test_no_token_is_in_the_log(guarded: Closed, anonymous: httpx2.Client) -> None:
    for token in guarded.tokens.values():
        anonymous.get(READ, headers=bearer(token))
        anonymous.get(READ, params={"token": token})
        anonymous.post("/nowhere", headers=bearer(token), json={"token": token})

    log = guarded.server.child.log.read_text()
    assert "server.started" in log
    assert [each for each in guarded.tokens.values() if each[17:] in log] == []


@pytest.mark.requirement("B10")
async def test_a_route_without_access_checks_is_still_behind_the_middleware() -> None:
    app = make_app(Treadle("postgresql://nowhere/nothing"))
    app.get("/forgotten")(lambda: "secret")

    async with reach(app) as client:
        assert (await client.get("/forgotten")).status_code == 401
        assert (await client.get("/healthz")).status_code == 200


@pytest.mark.requirement("B10")
async def test_without_the_middleware_every_request_is_rejected() -> None:
    app = FastAPI()
    problems.install(app)
    app.get("/guarded", dependencies=[requires("read", on=OPEN)])(lambda: "secret")

    async with reach(app) as client:
        assert (await client.get("/guarded")).status_code == 401


def reach(app: FastAPI) -> httpx2.AsyncClient:
    """A client of an application in this process."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost")


SITE = UUID(int=7)


def test_what_a_principal_may_do() -> None:
    everything = Principal("ada", frozenset({"admin"}))
    little = Principal("ci", frozenset({"operate"}), frozenset({"mail"}), "host-3", SITE)

    scopes = get_args(Scope)
    assert [scope for scope in scopes if everything.may(scope)] == list(SCOPES)
    assert [scope for scope in scopes if little.may(scope)] == ["read", "operate"]
    assert everything.sees("mail")
    assert [queue for queue in ("mail", "mai", "mails", None) if little.sees(queue)] == ["mail"]
    little.check_queue("mail")
    little.check_agent("host-3")
    little.check_project(SITE)
    for wrong in (
        partial(little.check_queue, "mai"),
        partial(little.check_agent, "host-33"),
        partial(little.check_agent, None),
        partial(little.check_project, UUID(int=8)),
        partial(little.check_project, None),
    ):
        with pytest.raises(Forbidden):
            wrong()
