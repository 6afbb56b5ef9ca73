"""Tokens for HTTP: random, shown once, stored as a hash, for named scopes, revoked for good."""

import base64
import hashlib
import json
import re

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.roles import become
from tests.drivers.tokens import SHAPE, create, find, listed, one


@pytest.mark.requirement("B10")
def test_a_token_is_shown_once_and_only_its_hash_is_stored(driver: Driver) -> None:
    text = create(driver, "ci", scopes=["enqueue"])

    found = re.fullmatch(SHAPE, text)
    assert found is not None
    token_id, secret, checksum = found.groups()
    digest = hashlib.sha256(f"trd_{token_id}_{secret}".encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode()[:6] == checksum
    assert one(driver, token_id)["secret_hash"] == hashlib.sha256(secret.encode()).digest()
    assert secret not in json.dumps(driver.contents())


@pytest.mark.requirement("B10")
def test_no_two_tokens_are_alike(driver: Driver) -> None:
    made = [create(driver, f"t{n}") for n in range(50)]

    assert len({text[4:16] for text in made}) == 50
    assert len({text[17:60] for text in made}) == 50
    # All of the 256 bits vary.
    secrets = [base64.urlsafe_b64decode(text[17:60] + "=") for text in made]
    ones = [sum(secret[n // 8] >> n % 8 & 1 for secret in secrets) for n in range(256)]
    assert min(ones) > 0
    assert max(ones) < 50


def test_the_restrictions_of_a_token_are_found_by_its_id(driver: Driver) -> None:
    project_id = driver.value("select id from treadle.define_project('site')")
    text = create(
        driver, "steve", scopes=["read", "work"], queues=["a", "b"], agent="steve-w", project="site"
    )

    found = find(driver, text)

    assert found is not None
    assert (found["name"], found["status"], found["used"]) == ("steve", "live", False)
    assert found["scopes"] == ["read", "work"]
    assert found["queues"] == ["a", "b"]
    assert (found["agent"], found["project"]) == ("steve-w", "site")
    assert found["project_id"] == project_id
    assert find(driver, "trd_000000000000_") is None


@pytest.mark.requirement("B10")
def test_a_token_expires_by_itself(driver: Driver) -> None:
    text = create(driver, "short", expires_s=60)
    assert driver.rows("select wanted, live from treadle.has_tokens()") == [(True, True)]

    driver.rows("update treadle.api_tokens set expires_at = treadle.clock()")

    found = find(driver, text)
    assert found is not None
    assert found["status"] == "expired"
    # No token is valid, and that does not make the server open.
    assert driver.rows("select wanted, live from treadle.has_tokens()") == [(True, False)]


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("by", ["name", "id", "text"])
def test_a_token_is_revoked_for_good(driver: Driver, by: str) -> None:
    text = create(driver, "ci")
    token_id = text.split("_")[1]
    key = {"name": "ci", "id": token_id, "text": text}[by]

    assert driver.value("select treadle.revoke_token(%s, 'ada')", key) == token_id

    found = find(driver, text)
    assert found is not None
    assert found["status"] == "revoked"
    assert driver.rows("select wanted, live from treadle.has_tokens()") == [(False, False)]
    row = one(driver, token_id)
    assert row["revoked_by"] == "ada"
    # Again changes nothing; the name is free.
    with unchanged(driver):
        driver.rows("select treadle.revoke_token(%s, 'bob')", token_id)
    assert create(driver, "ci") != text
    assert [each["status"] for each in listed(driver)] == ["revoked", "live"]


def test_one_valid_token_among_many_is_enough(driver: Driver) -> None:
    assert driver.rows("select wanted, live from treadle.has_tokens()") == [(False, False)]
    create(driver, "old", expires_s=60)
    create(driver, "new", expires_s=600)
    create(driver, "gone")
    driver.rows("update treadle.api_tokens set expires_at = treadle.clock() where name = 'old'")
    driver.rows("select treadle.revoke_token('gone')")

    assert driver.rows("select wanted, live from treadle.has_tokens()") == [(True, True)]


def test_a_name_belongs_to_one_token(driver: Driver) -> None:
    create(driver, "ci")

    with unchanged(driver), refused("TR001", "there is already a token 'ci'"):
        create(driver, "ci")


def test_of_two_that_want_a_name_at_once_one_is_refused(driver: Driver) -> None:
    other = driver.another()
    driver.rows("begin")
    create(driver, "ci")
    other.rows("set lock_timeout = '50ms'")
    with refused("55P03"):
        create(other, "ci")
    driver.rows("commit")

    with refused("TR001", "already"):
        create(other, "ci")


@pytest.mark.requirement("B10")
def test_the_last_use_is_kept_to_the_minute(driver: Driver) -> None:
    token_id = create(driver, "ci").split("_")[1]
    use = "select treadle.record_token_use(%s)"

    assert driver.value(use, token_id) is True
    first = one(driver, token_id)["last_used_at"]
    assert driver.value(use, token_id) is False
    assert one(driver, token_id)["last_used_at"] == first
    driver.rows("update treadle.api_tokens set last_used_at = last_used_at - interval '61 s'")
    assert driver.value(use, token_id) is True
    assert one(driver, token_id)["last_used_at"] >= first
    assert driver.value(use, "nobody") is False


def test_recording_a_use_does_not_wait_for_locks(driver: Driver) -> None:
    token_id = create(driver, "ci").split("_")[1]
    other = driver.another()
    other.rows("begin")
    other.rows("select treadle.revoke_token('ci')")
    driver.rows("set lock_timeout = '1s'")

    assert driver.value("select treadle.record_token_use(%s)", token_id) is False


@pytest.mark.requirement("B10")
def test_creating_and_revoking_a_token_are_events_with_their_actors(driver: Driver) -> None:
    text = create(driver, "ci", scopes=["enqueue"], queues=["mail"], actor="ada")
    driver.rows("select treadle.revoke_token('ci', 'bob')")

    made, ended = driver.records("select * from treadle.events where kind like 'token.%%'")
    assert (made["kind"], made["actor"]) == ("token.created", "ada")
    assert (ended["kind"], ended["actor"]) == ("token.revoked", "bob")
    assert made["data"] == {
        "token": "ci",
        "id": text.split("_")[1],
        "scopes": ["enqueue"],
        "queues": ["mail"],
    }


@pytest.mark.requirement("B10")
@pytest.mark.parametrize("role", ["treadle_producer", "treadle_worker", "treadle_observer"])
def test_only_operators_get_at_tokens(driver: Driver, role: str) -> None:
    create(driver, "ci")
    session = become(driver, role)

    for call in (
        """create_token('x', '{"scopes": ["read"]}')""",
        "revoke_token('ci')",
        "find_token('000000000000')",
        "record_token_use('000000000000')",
        "has_tokens()",
    ):
        with refused("42501", "permission denied for function"):
            session.rows(f"select * from treadle.{call}")
    with refused("42501"):
        session.rows("select secret_hash from treadle.api_tokens")


def test_an_operator_does_all_of_it(driver: Driver) -> None:
    session = become(driver, "treadle_operator")
    text = create(session, "ci")

    assert find(session, text) is not None
    assert session.value("select treadle.record_token_use(%s)", text.split("_")[1]) is True
    assert session.rows("select wanted from treadle.has_tokens()") == [(True,)]
    assert len(listed(session)) == 1
    assert session.value("select treadle.revoke_token('ci')") == text.split("_")[1]
