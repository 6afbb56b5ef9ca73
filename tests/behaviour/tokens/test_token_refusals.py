"""Invalid tokens are rejected, and their text is not echoed."""

from typing import Any

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.tokens import SHAPE, create, listed


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scopes": []}, "scopes must"),
        ({"scopes": None}, "scopes must"),
        ({"scopes": ["read", "fly"]}, "scopes must"),
        ({"scopes": ["read", None]}, "scopes must"),
        ({"scopes": "read"}, "cannot be created|scopes"),
        ({"queues": []}, "queues must"),
        ({"queues": [""]}, "queues must"),
        ({"queues": [None]}, "queues must"),
        ({"queues": ["x" * 201]}, "queues must"),
        ({"queues": [f"q{n}" for n in range(101)]}, "queues must"),
        ({"agent": ""}, "agent must"),
        ({"agent": "x" * 201}, "agent must"),
        ({"project": ""}, "project must"),
        ({"expires_s": 0}, "expires_s must"),
        ({"expires_s": -5}, "expires_s must"),
        ({"expires_s": 1e10}, "less than 100 years"),
        ({"expires_s": 1e300}, "cannot be created"),
        ({"expires_s": "soon"}, "cannot be created"),
        ({"secret_hash": "00"}, "unknown setting"),
        ({"revoked_at": "2020-01-01"}, "unknown setting"),
        ({"id": "000000000000"}, "unknown setting"),
    ],
)
def test_a_token_that_could_not_work_is_refused(
    driver: Driver, settings: dict[str, Any], words: str
) -> None:
    with unchanged(driver), refused("TR001", words):
        create(driver, "ci", **settings)


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 101, "é", "a\nb", "a\n", "local", None])
def test_a_name_that_is_none_is_refused(driver: Driver, name: str) -> None:
    with unchanged(driver), refused("TR001", "name "):
        create(driver, name)


@pytest.mark.parametrize("name", ["x" * 100, "ada@host-3.example_x", "7"])
def test_a_name_may_be_long_and_unusual(driver: Driver, name: str) -> None:
    create(driver, name)

    assert [each["name"] for each in listed(driver)] == [name]


def test_an_unknown_name_cannot_be_revoked(driver: Driver) -> None:
    with unchanged(driver), refused("TR217", "there is no token 'x'"):
        driver.rows("select treadle.revoke_token('x')")
    with refused("TR217"):
        driver.rows("select treadle.revoke_token(null)")


def test_a_complete_token_in_an_argument_is_not_echoed(driver: Driver) -> None:
    text = create(driver, "ci")
    driver.rows("delete from treadle.api_tokens")

    with pytest.raises(psycopg.Error, match="there is no token") as raised:
        driver.rows("select treadle.revoke_token(%s)", text)

    assert text[17:] not in f"{raised.value} {raised.value.diag.message_detail}"


def test_an_id_comes_before_a_name_that_looks_like_one(driver: Driver) -> None:
    first = create(driver, "a").split("_")[1]
    create(driver, first)

    assert driver.value("select treadle.revoke_token(%s)", first) == first
    assert {each["name"]: each["status"] for each in listed(driver)} == {
        "a": "revoked",
        first: "live",
    }


def test_no_view_shows_a_hash(driver: Driver) -> None:
    create(driver, "ci")

    [shown] = listed(driver)

    assert not any(isinstance(value, bytes | memoryview) for value in shown.values())
    assert "secret_hash" not in shown
    assert SHAPE not in str(shown)
