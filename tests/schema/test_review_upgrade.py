"""Dead letters from before there were groups get theirs, and decisions from before are kept."""

import json

import psycopg
import pytest

from tests.schema.test_upgrade import install_old
from treadle.db.install import migrate as schema

ERRORS = [
    "ValueError: no order 17\n\nTraceback (most recent call last):\n  File 'a.py'",
    "ValueError: no order 4711",
    "Traceback (most recent call last):\n  File 'a.py'\n    x()\nKeyError: 'user'",
    "HTTPStatusError: Client error '404 Not Found' for url 'https://x/y'",
    "\n\n  cannot read /var/lib/x.txt since 2026-11-16T13:50:34Z, req_011CSHoEeqs5C35K2UUqR7Fy",
    "",
]


@pytest.mark.requirement("R3")
def test_letters_and_decisions_of_version_4_are_there_after_the_upgrade(
    empty_database_url: str,
) -> None:
    install_old(empty_database_url, 4)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        conn.execute("select treadle.register_agent('a')")
        for error in ERRORS:
            conn.execute("select treadle.enqueue_task('default', 'code')")
            query = "select id, claim_token from treadle.claim_tasks('a')"
            [claimed] = conn.execute(query).fetchall()
            conn.execute(
                "select treadle.fail_tasks(array[%s], array[%s], array['error'], array[%s],"
                " array['fail'])",
                (*claimed, error),
            )
        conn.execute(
            "select treadle.retry_task(%s, 'modify_and_retry', %s, 'ada', 'fixed')",
            (claimed[0], json.dumps({"priority": 3})),
        )

        schema.migrate(empty_database_url)

        letters = conn.execute(
            """
            select
              dead_letters.about,
              coalesce(
                treadle.error_about(attempts.error), treadle.error_about(attempts.reason)
              ),
              dead_letters.fingerprint,
              treadle.error_fingerprint(dead_letters.class, dead_letters.about)
            from treadle.dead_letters
            inner join treadle.attempts on dead_letters.task_id = attempts.task_id
            order by dead_letters.dead_lettered_at
            """
        ).fetchall()
        kept = conn.execute(
            "select decision, actor, note, changes, task_id from treadle.dead_letter_log"
        ).fetchall()

    assert len(letters) == len(ERRORS)
    for about, expected, fingerprint, computed in letters:
        assert (about, fingerprint) == (expected, computed)
    assert letters[0][0] == letters[1][0] == "ValueError: no order <n>"
    assert kept == [("modify_and_retry", "ada", "fixed", {"priority": 3}, claimed[0])]
