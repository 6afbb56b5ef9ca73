"""`treadle budgets`: list, set and delete budgets, list costs; answers with an amount."""

from decimal import Decimal

import pytest
from psycopg.types.json import Jsonb

from tests.drivers.commands import Cli, Conn
from treadle.cli import budgets as command

pytestmark = pytest.mark.requirement("F25")


def agent(conn: Conn, name: str = "coder-1") -> str:
    conn.execute("select treadle.register_agent(%s)", (name,))
    return name


def spend(conn: Conn, usd: object, model: str = "large", **options: object) -> None:
    """One task that has spent so much."""
    conn.execute(
        "select treadle.enqueue_batch('default', 'code', array['{}'::jsonb], %s)",
        (Jsonb(options),),
    )
    query = "select id, claim_token from treadle.claim_tasks('coder-1')"
    [(task_id, token)] = conn.execute(query).fetchall()
    calls = Jsonb([{"usd": str(usd), "model": model, "input_tokens": 900}])
    conn.execute("select treadle.record_spend(%s, %s, %s)", (task_id, token, calls))


def test_a_budget_is_set_shown_changed_and_removed(cli: Cli, sync_conn: Conn) -> None:
    agent(sync_conn)
    done = cli(
        *("budgets", "set", "agent:coder-1", "20"),
        *("--period", "day", "--on-exhausted", "fail"),
    )
    assert done.err == "agent:coder-1 may spend $20.00 per day\n"
    spend(sync_conn, "5.5", max_cost_usd=8)

    [row] = cli("budgets", "--json").json["items"]

    assert (row["scope"], row["key"], row["period"]) == ("agent", "coder-1", "day")
    assert [Decimal(str(row[name])) for name in ("limit_usd", "spent_usd", "reserved_usd")] == [
        *(20, Decimal("5.5"), Decimal("2.5")),
    ]
    assert (row["on_exhausted"], row["parked_tasks"]) == ("fail", 0)
    cli("budgets", "set", "agent:coder-1", "$30.25", "--period", "day")
    head, shown = cli("budgets").rows
    assert head[0] == "scope"
    assert shown[:2] == ["agent:coder-1", "day"]
    cli("budgets", "delete", "agent:coder-1", "--period", "day", "--yes")
    assert cli("budgets").err.startswith("no budgets, so spending is not limited; ")


def test_what_was_spent_is_summed_up_by_what_one_asks_for(cli: Cli, sync_conn: Conn) -> None:
    agent(sync_conn)
    spend(sync_conn, 1)
    spend(sync_conn, 2, "small")
    sync_conn.execute("update treadle.spend set at = at - interval '3 days' where model = 'large'")

    by_model = cli("budgets", "costs", "--group-by", "model", "--json").json["items"]
    assert [(row["model"], row["calls"]) for row in by_model] == [("small", 1), ("large", 1)]
    assert [Decimal(str(row["usd"])) for row in by_model] == [2, 1]
    assert cli("budgets", "costs", "--group-by", "agent").rows[1][0] == "coder-1"
    days = cli("budgets", "costs", "--group-by", "day", "--days", "2").rows
    assert len(days) == 2
    assert cli("budgets", "costs", "--group-by", "colour").code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("set", "agent:nobody", "1"), 3),
        (("set", "team:x", "1"), 2),
        (("set", "all", "much"), 2),
        (("set", "all", "-1"), 2),
        (("set", "all", "NaN"), 2),
        (("set", "all", "1", "--period", "year"), 2),
        (("delete", "all", "--yes"), 3),
        (("delete", "all"), 2),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    assert cli("budgets", *arguments).code == code


@pytest.mark.parametrize(("answer", "status"), [("9.5", "ready"), ("false", "dead_lettered")])
def test_a_question_about_money_is_answered(
    cli: Cli, sync_conn: Conn, answer: str, status: str
) -> None:
    agent(sync_conn)
    cli("budgets", "set", "all", "1")
    sync_conn.execute(
        "select treadle.enqueue_batch('default', 'code', array['{}'::jsonb],"
        " '{\"max_cost_usd\": 2}')"
    )
    sync_conn.execute("select treadle.claim_tasks('coder-1')")
    sync_conn.execute("select treadle.review_budgets()")
    [wait] = cli("waits", "--json").json["items"]
    assert wait["kind"] == "budget"
    assert cli("waits", "answer", wait["id"], "lots").code == 2

    assert cli("waits", "answer", wait["id"], answer, "--actor", "alice").code == 0

    assert sync_conn.execute("select status from treadle.tasks").fetchall() == [(status,)]


@pytest.mark.parametrize(
    ("spent", "reserved", "shown", "colour"),
    [
        (0, 0, "░░░░░░░░░░░░   0%", "green"),
        (5, 2, "██████▒▒░░░░  50%", "green"),
        (6, 2, "███████▒▒▒░░  60%", "yellow"),
        (10, 0, "████████████ 100%", "red"),
        (15, 3, "████████████ 150%", "red"),
    ],
)
def test_the_bar_shows_spent_and_reserved(
    spent: int, reserved: int, shown: str, colour: str
) -> None:
    made = command.usage_bar(
        {"limit_usd": Decimal(10), "spent_usd": Decimal(spent), "reserved_usd": Decimal(reserved)}
    )

    assert (made.plain, str(made.style)) == (shown, colour)


def test_a_budget_of_nothing_is_full() -> None:
    nothing = {"limit_usd": Decimal(0), "spent_usd": Decimal(0), "reserved_usd": Decimal(0)}

    assert command.usage_bar(nothing).plain == "████████████ 100%"


def test_dollars_have_cents_and_more_digits_where_there_are_some() -> None:
    amounts = ["0", "20.000000", "0.5", "0.000125", "1234.5"]

    shown = [command.dollars(Decimal(each)) for each in amounts]

    assert shown == ["$0.00", "$20.00", "$0.50", "$0.000125", "$1234.50"]
