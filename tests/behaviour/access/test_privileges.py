"""Least privilege: each role can do its own work and nothing else."""

import pytest

from tests.drivers.engine import Driver
from tests.drivers.refusals import refused
from tests.drivers.roles import A_DAG, A_SCHEDULE, A_TRIGGER, ROLES, UNKNOWN_ID, become

ONE = f"array['{UNKNOWN_ID}']::uuid[]"

PRODUCE = (
    "receive_webhook('w', '{}')",
    "enqueue_harness_task('http://a', '{}')",
    f"take_actions('{UNKNOWN_ID}')",
    f"renew_actions({ONE}, {ONE})",
    f"finish_action('{UNKNOWN_ID}', '{UNKNOWN_ID}')",
    *("interrupt_actions()", "next_action_at()"),
    f"create_dag('{A_DAG}')",
    *("open_dag('x')", "enqueue_task('default', 'code')", "enqueue_tasks('[]')"),
    *(f"cancel_tasks({ONE})", f"read_results({ONE})", "take_results('me')"),
    *("create_project('shop')", "create_work_item('code', 'Fix it')"),
)
REPLY = ("begin_reply('k', 'me', 'r', 'h')", "save_reply('k', 'me', 'r', 'h', 200, '{}', '')")
WORK = (
    *("register_agent('w')", "heartbeat_agent('a')", "claim_tasks('a')"),
    *(f"start_tasks({ONE}, {ONE})", f"heartbeat_tasks({ONE}, {ONE})"),
    f"validate_tasks({ONE}, {ONE})",
    f"claim_owners({ONE}, {ONE})",
    *(f"{each}_tasks({ONE}, {ONE})" for each in ("complete", "fail", "release")),
    "artifacts_to_delete()",
    f"claim_harness_task('http://a', '{UNKNOWN_ID}')",
    *("take_nudges()", "record_nudge('http://a')", "requeue_harness_tasks()"),
    "reap_claims()",
    "promote_tasks()",
    *("due_schedules()", "next_schedule_at()"),
    f"fire_schedule('{UNKNOWN_ID}', 1, '{{}}', now())",
    f"mark_schedule_invalid('{UNKNOWN_ID}', 1, 'no line')",
    "fire_triggers()",
    "check_failure_rates()",
    *("rerank_tasks()", "admit_waiting_tasks()", "reopen_gates()", "review_budgets()"),
    *("prune_tasks()", "prune_events()", "prune_other()", "oldest_open_at()"),
    *("dispatch_targets()", "record_push_heartbeats('{a}')"),
    *(f"{each}_dispatches('{UNKNOWN_ID}')" for each in ("take_over", "renew", "release")),
    f"dispatch_task('a', '{UNKNOWN_ID}', '{UNKNOWN_ID}')",
    f"accept_dispatch('{UNKNOWN_ID}', '{UNKNOWN_ID}', '{UNKNOWN_ID}', 't')",
    f"end_dispatch('{UNKNOWN_ID}', '{UNKNOWN_ID}', '{UNKNOWN_ID}', 'busy')",
    f"expire_dispatch('{UNKNOWN_ID}', '{UNKNOWN_ID}', '{UNKNOWN_ID}', 'silent')",
)
OPERATE = (
    "set_retention('events', 86400)",
    *("define_push_agent('p', 'https://example.org')", "remove_push_agent('p')"),
    *(
        "pause_queue('default')",
        "resume_queue('default')",
        "define_queue('q')",
        "remove_queue('q')",
    ),
    *("define_type('t')", "pause_type('code')", "resume_type('code')"),
    *("define_gate('g')", "close_gate('type:code', 60)", "open_gate('type:code')"),
    *("trip_breaker('code')", "reset_breaker('code')", "define_project('p')"),
    *("set_budget('all', null, 1)", "remove_budget('all')", "set_concurrency_limit('k', 1)"),
    A_SCHEDULE,
    "record_skipped_run('s', 'full')",
    *("run_schedule('s')", "pause_schedule('s')", "resume_schedule('s')", "remove_schedule('s')"),
    A_TRIGGER,
    """test_trigger('t', p_sample => '{"kind": "x"}')""",
    "pause_trigger('t')",
    "resume_trigger('t')",
    "remove_trigger('t')",
    "rebase_events()",
    "allow_nudges('http://a')",
    """cancel_tasks_where('{"queue": "default"}')""",
    """retry_tasks_where('{"queue": "default"}')""",
    f"resolve_dead_letters({ONE})",
    """resolve_dead_letters_where('{"queue": "default"}')""",
)


@pytest.mark.parametrize(
    ("role", "calls"),
    [
        ("treadle_producer", (*PRODUCE, *REPLY)),
        ("treadle_worker", (*WORK, *REPLY)),
        ("treadle_operator", (*PRODUCE, *WORK, *OPERATE, *REPLY)),
    ],
)
def test_a_role_can_do_its_work(driver: Driver, role: str, calls: tuple[str, ...]) -> None:
    session = become(driver, role)

    for call in calls:
        session.rows(f"select * from treadle.{call}")


@pytest.mark.parametrize(
    ("role", "calls"),
    [
        (
            "treadle_producer",
            (*WORK, *OPERATE, f"retry_task('{UNKNOWN_ID}')", f"retry_dag('{UNKNOWN_ID}')"),
        ),
        (
            "treadle_worker",
            (
                *OPERATE,
                f"cancel_tasks({ONE})",
                f"retry_task('{UNKNOWN_ID}')",
                f"retry_dag('{UNKNOWN_ID}')",
            ),
        ),
        (
            "treadle_observer",
            (
                *PRODUCE,
                *WORK,
                *OPERATE,
                *REPLY,
                f"retry_task('{UNKNOWN_ID}')",
                f"retry_dag('{UNKNOWN_ID}')",
            ),
        ),
    ],
)
def test_a_role_cannot_do_the_work_of_another(
    driver: Driver, role: str, calls: tuple[str, ...]
) -> None:
    session = become(driver, role)

    for call in calls:
        with refused("42501", "permission denied for function"):
            session.rows(f"select * from treadle.{call}")


def test_no_role_has_a_right_on_a_table(driver: Driver) -> None:
    rights = driver.rows(
        """
        select tables.tablename, roles.name, verbs.name
        from pg_tables as tables
        cross join unnest(%s::text[]) as roles (name)
        cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate']) as verbs (name)
        where
          tables.schemaname = 'treadle'
          and has_table_privilege(
            roles.name, format('treadle.%%I', tables.tablename), verbs.name
          )
        """,
        list(ROLES),
    )

    assert rights == []


@pytest.mark.parametrize("role", ROLES)
def test_no_role_reads_or_writes_a_table(driver: Driver, role: str) -> None:
    session = become(driver, role)

    for statement in (
        "select from treadle.tasks",
        "insert into treadle.tasks (type) values ('code')",
        "update treadle.tasks set priority = 0",
        "delete from treadle.attempts",
        "truncate treadle.dead_letters",
    ):
        with refused("42501", "permission denied for table"):
            session.rows(statement)


def test_a_login_without_a_role_may_call_no_function(driver: Driver) -> None:
    open_to_all = driver.rows(
        """
        select proname from pg_proc
        where pronamespace = 'treadle'::regnamespace
        and has_function_privilege('public', pg_proc.oid, 'execute')
        """
    )

    assert open_to_all == []


def test_no_function_looks_a_name_up_in_the_path_of_its_caller(fresh: Driver) -> None:
    # A database of its own: tests put another clock into the shared one.
    # Parsed bodies have no names left to look up. An empty path would not do: pg_temp is searched
    # first for types unless it is named.
    loose = fresh.rows(
        """
        select proname from pg_proc
        where pronamespace = 'treadle'::regnamespace
        and not coalesce('search_path=pg_catalog, pg_temp' = any (proconfig), false)
        and prosqlbody is null
        order by proname
        """
    )

    # They run with the rights of the caller, are inlined, and qualify all names and operators.
    assert loose == [("visible_dags",), ("visible_tasks",)]


def test_everything_belongs_to_an_owner_that_cannot_log_in(driver: Driver) -> None:
    owners = driver.rows(
        """
        select distinct relowner::regrole::text from pg_class
        where relnamespace = 'treadle'::regnamespace
        union
        select distinct proowner::regrole::text from pg_proc
        where pronamespace = 'treadle'::regnamespace
        """
    )

    assert owners == [("treadle_owner",)]
    assert driver.value("select not rolcanlogin from pg_roles where rolname = 'treadle_owner'")


def test_an_object_planted_in_another_schema_does_not_change_what_a_function_does(
    fresh: Driver,
) -> None:
    fresh.rows("create schema evil")
    fresh.rows("create table evil.tasks (like treadle.tasks including all)")
    fresh.rows(
        "create function evil.clock() returns timestamptz language sql"
        " as $$ select timestamptz 'epoch' $$"
    )
    fresh.rows("grant usage on schema evil to public")
    session = become(fresh, "treadle_producer")
    session.rows("set search_path = evil, treadle")

    task_id = session.value("select treadle.enqueue_task('default', 'code')")

    assert fresh.state_of(task_id) == "ready"
    assert fresh.rows("select * from evil.tasks") == []
