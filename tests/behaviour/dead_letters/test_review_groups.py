"""Dead letters with the same error form a group, whatever numbers, names and paths it contains."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.drivers.dead_letters import dead, letter_of, resolve
from tests.drivers.engine import Driver

pytestmark = pytest.mark.requirement("R3")

SAME = {
    "numbers": ["took 12 ms", "took 12345678 ms", "took -3.5 ms"],
    "ids": [
        "no order 8f3a21c4",
        "no order 0199a1b2-0000-7000-8000-0123456789ab",
        "no order 0x7f2a",
        "no order req_011CSHoEeqs5C35K2UUqR7Fy",
        "no order 17",
    ],
    "quoted text": ["KeyError: 'user'", "KeyError: 'it is \\'so\\''", 'KeyError: "other"'],
    "paths": [
        "cannot read /var/lib/a/b.txt",
        "cannot read ~/c.txt",
        "cannot read C:\\Users\\bob\\x.txt",
        "cannot read data/user17/file.txt",
    ],
    "addresses": ["GET https://a.example/x?y=1 failed", "GET http://b.example:8080/ failed"],
    "mail": ["no such user ada@example.org", "no such user bob.b@mail.example.com"],
    "moments": ["late since 2026-11-16 13:50:34.123+00:00", "late since 2025-01-01T00:00:00Z"],
    "hosts": ["refused by 10.0.0.12:8080", "refused by 192.168.1.4:80"],
    "lists": ["unexpected keys 'a', 'b', 'c'", "unexpected keys 'a', 'b'", "unexpected keys 'z'"],
    "long codes of an exit": ["exit code 3221225477", "exit code 1234"],
    "spaces": ["too   much\tof it", "too much of it"],
    "tracebacks": [
        "ValueError: no luck",
        "\n\nValueError: no luck\n\nTraceback (most recent call last):\n  File 'x'\nOther: 1",
        'Traceback (most recent call last):\n  File "a.py", line 3\n    x()\nValueError: no luck',
        "Traceback (most recent call last):\r\n  File 'b.py'\r\nValueError: no luck\r\n",
    ],
}
DIFFERENT = [
    "ValueError: no luck",
    "TypeError: no luck",
    "can't read it because it isn't there",
    "can't read it because it wasn't there",
    "HTTPStatusError: Client error '404 Not Found' for url 'https://x'",
    "HTTPStatusError: Client error '403 Forbidden' for url 'https://x'",
    "HTTP/1.1 503 from upstream",
    "HTTP/1.1 500 from upstream",
    "Error code: 529 - overloaded",
    "Error code: 400 - overloaded",
    "exit code 137",
    "exit code 1",
    "exit code 3",
    "returned non-zero exit status 2.",
    "returned non-zero exit status 127.",
    "signal 9",
    "signal: 11",
    "take this and/or that",
    "text/html is n/a",
]


def about(driver: Driver, error: str) -> str:
    return str(driver.value("select treadle.error_pattern(%s)", error))


@pytest.mark.parametrize("name", SAME)
def test_variable_parts_of_an_error_do_not_split_a_group(driver: Driver, name: str) -> None:
    assert len({about(driver, error) for error in SAME[name]}) == 1


def test_other_errors_are_other_groups(driver: Driver) -> None:
    assert len({about(driver, error) for error in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize("error", ["", "\n \n", "'" * 3000, "a1 " * 5000, "x\n" * 20000, "\\" * 99])
def test_an_unusual_error_text_is_accepted_and_shortened(driver: Driver, error: str) -> None:
    found = driver.value("select treadle.error_pattern(%s)", error)

    assert found is None or 0 < len(found) <= 300


def test_a_letter_keeps_its_group_and_what_it_is_about(driver: Driver) -> None:
    one = dead(driver, "ValueError: no order 17\n\nTraceback")
    other = dead(driver, "ValueError: no order 4711")
    late = dead(driver, "ValueError: no order 4711", "timeout")

    first, second, third = (letter_of(driver, each) for each in (one, other, late))

    assert first["about"] == "ValueError: no order <n>"
    assert first["fingerprint"] == second["fingerprint"] != third["fingerprint"]
    assert len(first["fingerprint"]) == 12


def test_a_failure_without_a_text_has_a_group_too(driver: Driver) -> None:
    lost = driver.enqueue(max_attempts=1)
    driver.expire(driver.claim_one())
    silent = dead(driver, "\n")

    letters = [letter_of(driver, each) for each in (lost, silent)]

    assert [each["about"] for each in letters] == [
        *("no heartbeat: the worker has stopped or hangs", "handler")
    ]
    assert letters[0]["fingerprint"] != letters[1]["fingerprint"]


def test_groups_have_counts_queues_agents_times_and_costs(driver: Driver) -> None:
    driver.rows("select treadle.define_queue('mail')")
    driver.set_clock(timedelta(0), stopped=True)
    tasks = [
        dead(driver, "no order 1", agent="a"),
        dead(driver, "no order 2", agent="b", queue="mail"),
        dead(driver, "no order 3", agent="a", type="test"),
    ]
    driver.rows("update treadle.dead_letters set total_cost_usd = 0.5")
    driver.rows(
        "update treadle.dead_letters set poison_pill = true, dead_lettered_at = dead_lettered_at"
        " + interval '1 hour' where task_id = %s",
        tasks[1],
    )
    dead(driver, "no luck")

    group, other = driver.records("select * from treadle.dead_letter_groups order by letters desc")

    assert (group["letters"], group["class"], group["about"]) == (3, "error", "no order <n>")
    assert (group["types"], group["queues"]) == (["code", "test"], ["default", "mail"])
    assert (group["agents"], group["attempts"]) == (["a", "b"], 3)
    assert (float(group["total_cost_usd"]), group["poison_pills"]) == (1.5, 1)
    assert group["last_at"] - group["first_at"] == timedelta(hours=1)
    assert (group["sample_task"], group["sample_reason"]) == (tasks[1], "no order 2")
    assert (other["letters"], other["about"]) == (1, "no luck")


def test_resolved_letters_are_in_no_group(driver: Driver) -> None:
    tasks = [dead(driver, f"no order {n}") for n in range(3)]

    resolve(driver, tasks[:2], "cancel")

    assert driver.rows("select letters from treadle.dead_letter_groups") == [(1,)]


@pytest.mark.requirement("F15")
def test_the_history_of_a_letter_has_every_attempt_up_to_it(driver: Driver) -> None:
    driver.enqueue(retry={"strategy": "immediate", "poison": False})
    for number, agent in enumerate(["a", "b", "a"], start=1):
        claim = driver.claim_one(agent)
        driver.age_claim(claim.id, timedelta(seconds=10 * number))
        driver.rows("update treadle.tasks set cost_usd = cost_usd + %s", 0.25 * number)
        driver.fail(claim, f"error {number}")
    driver.retry(claim.id)
    driver.fail(driver.claim_one("b"), "again", action="fail")

    query = "select * from treadle.dead_letter_attempts where letter_id = %s order by ended_at"
    letters = driver.records("select id from treadle.dead_letters order by dead_lettered_at")
    first, second = (driver.records(query, letter["id"]) for letter in letters)

    assert [each["agent_id"] for each in first] == ["a", "b", "a"]
    assert [int(each["duration_s"] // 10) for each in first] == [1, 2, 3]
    assert [float(each["cost_usd"]) for each in first] == [0.25, 0.5, 0.75]
    assert [each["error"] for each in second] == ["error 1", "error 2", "error 3", "again"]
    assert all(one["ended_at"] <= other["ended_at"] for one, other in pairwise(second))


@pytest.mark.requirement("F15")
def test_the_event_of_a_dead_letter_has_class_reason_attempts_and_cost(driver: Driver) -> None:
    driver.enqueue(max_attempts=2, retry={"strategy": "immediate"})
    for _ in range(2):
        claim = driver.claim_one()
        driver.rows("update treadle.tasks set cost_usd = cost_usd + 0.25")
        driver.fail(claim, "no luck")

    letter = letter_of(driver, claim.id)
    data = driver.events(claim.id)[-1]["data"]

    assert (data["class"], data["reason"], data["attempts"]) == ("error", "no luck", 2)
    assert (data["total_cost_usd"], data["poison_pill"]) == (0.5, False)
    assert (data["letter_id"], data["fingerprint"]) == (str(letter["id"]), letter["fingerprint"])
