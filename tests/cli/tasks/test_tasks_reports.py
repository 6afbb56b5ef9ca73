"""`treadle tasks show` prints decision reports, models and poison pills."""

import json

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn

REPORT = {
    "summary": "Moved to B",
    "confidence": 0.8,
    "decisions": [{"decision": "B", "reason": "half the cost", "options": ["A", "B"]}],
    "risks": ["B is new"],
}


def claimed(conn: Conn, options: str) -> tuple[str, str]:
    conn.execute("select treadle.register_agent('coder-1')")
    conn.execute(
        "select treadle.enqueue_batch('default', 'code', array['{}']::jsonb[], %s)", (options,)
    )
    row = conn.execute("select id, claim_token from treadle.claim_tasks('coder-1')").fetchone()
    assert row is not None
    return str(row[0]), str(row[1])


@pytest.mark.requirement("R7")
def test_show_prints_the_decision_report(cli: Cli, sync_conn: Conn, database_url: str) -> None:
    task, token = claimed(sync_conn, '{"report": "required", "models": ["large"]}')
    sync_conn.execute(
        "select treadle.complete_task(%s, %s, '1', %s)", (task, token, json.dumps(REPORT))
    )

    shown = commands.on_terminal("tasks", "show", task, TREADLE_DATABASE_URL=database_url)
    as_json = cli("tasks", "show", task, "--json").json

    assert "Moved to B (80% sure)" in shown
    assert "decided: B (of A, B): half the cost" in shown
    assert "risks: B is new" in shown
    assert as_json["decision_report"] == REPORT
    assert (as_json["report"], as_json["models"]) == ("required", ["large"])


@pytest.mark.requirement("F17")
def test_show_marks_a_poison_pill(cli: Cli, sync_conn: Conn, database_url: str) -> None:
    task, token = claimed(sync_conn, '{"retry": {"strategy": "immediate"}, "max_attempts": 9}')
    sync_conn.execute("select treadle.register_agent('coder-2')")
    for agent in ("coder-2", "coder-1", None):
        sync_conn.execute("select treadle.fail_task(%s, %s, 'boom')", (task, token))
        row = sync_conn.execute(
            "select claim_token from treadle.claim_tasks(coalesce(%s, 'coder-1'))", (agent,)
        ).fetchone()
        token = str(row[0]) if row else token

    shown = commands.on_terminal("tasks", "show", task, TREADLE_DATABASE_URL=database_url)
    assert "poison_pill" in shown
    assert cli("tasks", "show", task, "--json").json["poison_pill"] is True
