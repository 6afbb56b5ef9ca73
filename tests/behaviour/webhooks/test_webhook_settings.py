"""Webhooks are made, changed and removed by operators, and their secrets stay secret."""

import json
import re

import psycopg
import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused, unchanged
from tests.drivers.roles import become
from tests.drivers.webhooks import SECRET, URL, add, emit, hook, read, take


def define(driver: Driver, name: str, **settings: object) -> str | None:
    value: str | None = driver.value(
        "select secret from treadle.define_webhook(%s, %s::jsonb)", name, json.dumps(settings)
    )
    return value


def test_a_new_webhook_begins_now_or_with_the_oldest_event(driver: Driver) -> None:
    emit(driver, 1, 2)
    add(driver, "now", URL)
    add(driver, "all", URL, from_start=True)
    emit(driver, 3)

    token, names = take(driver)

    assert sorted(names) == ["all", "now"]
    assert [n for _, _, n in read(driver, "now", token)] == [3]
    assert [n for _, _, n in read(driver, "all", token)] == [1, 2, 3]


def test_what_is_still_open_when_a_webhook_is_made_comes_to_it(driver: Driver) -> None:
    late = driver.another()
    late.rows("begin")
    emit(late, 1)
    add(driver, "ops", URL)
    late.rows("commit")

    token, _ = take(driver)

    assert [n for _, _, n in read(driver, "ops", token)] == [1]


def test_a_secret_is_shown_once_and_is_in_no_view_and_no_event(driver: Driver) -> None:
    secret = define(driver, "ops", url=URL)
    assert secret is not None
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    assert define(driver, "ops", kinds=["dag.*"]) is None
    new = driver.value("select treadle.rotate_webhook('ops')")
    assert new not in (None, secret)

    shown = json.dumps(
        [
            driver.records(f"select to_jsonb(t) from treadle.{name} as t")
            for name in ("webhook_status", "webhook_delivery_log", "events")
        ]
    )
    for hidden in (secret, new, "s3cr3t-path"):
        assert hidden not in shown
    assert hook(driver, "ops")["address"] == "https://example.org"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rediss://me:hunter2@cache.example.org:6380/1", "rediss://cache.example.org:6380"),
        ("redis://:p@ss@cache", "redis://cache"),
    ],
)
def test_a_password_in_an_address_is_not_shown(driver: Driver, url: str, shown: str) -> None:
    define(driver, "feed", url=url, format="redis", stream="events")

    assert hook(driver, "feed")["address"] == shown


@pytest.mark.parametrize("role", ["treadle_producer", "treadle_worker", "treadle_observer"])
def test_only_operators_get_at_secrets_and_targets(driver: Driver, role: str) -> None:
    define(driver, "ops", url=URL)
    session = become(driver, role)

    for call in (
        "test_webhook('ops')",
        "take_webhooks(gen_random_uuid())",
        "define_webhook('ops', '{}')",
        "rotate_webhook('ops')",
        "read_webhook('ops', gen_random_uuid())",
    ):
        with refused("42501", "permission denied for function"):
            session.rows(f"select * from treadle.{call}")
    with refused("42501"):
        session.rows("select secret from treadle.webhooks")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "url must"),
        ({"url": "ftp://example.org"}, "url must be https"),
        ({"url": "https://me:secret@example.org/"}, "without user"),
        ({"url": "https://example.org/#part"}, "fragment"),
        ({"url": "https://example.org/a b"}, "printable"),
        ({"url": "https://example.org/\n"}, "printable"),
        ({"url": "https:///path"}, "with a host"),
        ({"url": f"https://example.org/{'x' * 2000}"}, "at most 2000"),
        ({"url": URL, "format": "xml"}, "format must"),
        ({"url": "redis://cache", "format": "redis"}, "stream must"),
        ({"url": "redis://cache"}, "redis url needs the name of a stream"),
        ({"url": URL, "format": "redis", "stream": "s"}, "redis://"),
        ({"url": URL, "kinds": []}, "kinds must"),
        ({"url": URL, "kinds": ["x" * 201]}, "kinds must"),
        ({"url": URL, "kinds": "all"}, "cannot be defined|kinds"),
        ({"url": URL, "filter": [1]}, "filter must"),
        ({"url": URL, "secret": "abc"}, "secret must"),
        ({"url": URL, "secret": "whsec_c2hvcnQ="}, "secret must"),
        ({"url": URL, "allow_private": None}, "cannot be defined"),
        ({"url": URL, "token": "x"}, "unknown setting"),
        ({"url": URL, "from_start": "perhaps"}, "cannot be defined"),
    ],
)
def test_a_webhook_that_could_not_work_is_refused(
    driver: Driver, settings: dict[str, object], words: str
) -> None:
    with unchanged(driver), refused("TR001", words):
        define(driver, "ops", **settings)


def test_a_refusal_does_not_repeat_the_secret(driver: Driver) -> None:
    with pytest.raises(psycopg.Error, match="secret must be whsec_") as raised:
        define(driver, "ops", url=URL, secret="my-own-secret-that-is-wrong")

    assert "my-own" not in f"{raised.value} {raised.value.diag.message_detail}"


def test_an_unknown_name_is_an_error(driver: Driver) -> None:
    for call in (
        "pause_webhook('x')",
        "resume_webhook('x')",
        "rotate_webhook('x')",
        "remove_webhook('x')",
        "test_webhook('x')",
    ):
        with refused("TR213", "there is no webhook 'x'"):
            driver.rows(f"select treadle.{call}")


def test_a_webhook_that_is_removed_leaves_nothing_behind(driver: Driver) -> None:
    add(driver, "ops", URL, secret=SECRET)
    emit(driver, 1)
    token, _ = take(driver)
    driver.rows("select treadle.fail_webhook('ops', %s, 1, 500, 'x')", token)

    driver.rows("select treadle.remove_webhook('ops', 'ada')")

    assert driver.rows("select from treadle.webhooks") == []
    assert driver.rows("select from treadle.webhook_deliveries") == []
    assert driver.rows("select from treadle.event_readers where name like 'webhook:%%'") == []
    kind, actor = driver.rows("select kind, actor from treadle.events order by id desc limit 1")[0]
    assert (kind, actor) == ("webhook.removed", "ada")


def test_a_hundred_tries_are_kept(driver: Driver) -> None:
    add(driver, "ops", URL)
    driver.rows(
        "select treadle.record_delivery('ops', n, 200, null, 1) from generate_series(1, 130) as n"
    )

    kept = driver.rows("select event_id from treadle.webhook_delivery_log order by id")

    assert [event for (event,) in kept] == list(range(31, 131))


def test_an_operator_does_all_of_it(driver: Driver) -> None:
    session = become(driver, "treadle_operator")
    nobody = "00000000-0000-7000-8000-000000000000"

    for call in (
        """define_webhook('w', '{"url": "https://example.org/"}')""",
        "pause_webhook('w')",
        "resume_webhook('w')",
        "rotate_webhook('w')",
        "test_webhook('w')",
        "listen_webhooks()",
        f"take_webhooks('{nobody}')",
        f"read_webhook('w', '{nobody}')",
        f"ack_webhook('w', '{nobody}', '1', 1)",
        f"fail_webhook('w', '{nobody}', 1, 500, 'x')",
        f"release_webhook('w', '{nobody}')",
        "next_webhook_at()",
        "remove_webhook('w')",
    ):
        session.rows(f"select * from treadle.{call}")
