"""`treadle tasks`: list, enqueue, cancel, retry and explain tasks."""

from inspect import signature
from pathlib import Path

import pytest

from tests.drivers import commands
from tests.drivers.commands import NO_TASK, Cli, Conn
from treadle.cli import load, tasks
from treadle.cli.tasks.bulk import task_filters


def spec_of(conn: Conn, task_id: str) -> object:
    found = conn.execute("select spec from treadle.tasks where id = %s", (task_id,)).fetchone()
    assert found is not None
    return found[0]


def test_arguments_come_as_text_from_a_file_or_from_stdin(
    cli: Cli, sync_conn: Conn, folder: Path
) -> None:
    (folder / "spec.json").write_text('{"n": 2}')

    made = [
        cli("tasks", "enqueue", "code", '{"n": 1}'),
        cli("tasks", "enqueue", "code", "@spec.json"),
        cli("tasks", "enqueue", "code", "-", stdin='{"n": 3}'),
        cli("tasks", "enqueue", "code"),
    ]

    assert [spec_of(sync_conn, each.out.strip()) for each in made] == [
        {"n": 1}, {"n": 2}, {"n": 3}, {},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["code", "[1]"], 2, "must be a JSON object, not list"),
        (["code", "{"], 2, "spec is not JSON"),
        (["code", "@nothing.json"], 2, "nothing.json cannot be read"),
        (["code", '{"a": NaN}'], 2, "spec"),
        (["code", '{"a": "\\u0000"}'], 2, "spec"),
        (["code", "[" * 10_000 + "]" * 10_000], 2, "spec is not JSON"),
        (["code", "--priority", "101"], 2, "priority must be a whole number"),
        (["code", "--delay", "-1"], 2, "delay"),
        (["code", "--key", ""], 2, "idempotency_key"),
        (["code", "--set", "colour=red"], 2, "--set cannot set 'colour'"),
        (["code", "--set", "tags"], 2, "is not NAME=VALUE"),
        (["code", "--set", "title=t"], 2, "--set cannot set 'title'"),
        (["code", "--set", "notes=a", "--set", "notes=b"], 2, "given twice"),
        (["code", "--set", "tags=urgent"], 2, "tags must be a list"),
        (["code", "--set", "tags={}"], 2, "tags must be a list"),
        (["code", "--set", "parent_id=x"], 2, "parent_id must be a UUID"),
        (["code", "--set", "timeout_s=soon"], 2, "timeout_s must be a number"),
        (["code", "--set", "run_at=2027-01-31"], 2, "--set cannot set 'run_at'"),
        (["code", "--set", "validation=" + "[" * 10_000], 2, "validation"),
        (["code", "--queue", "nowhere"], 3, "there is no queue 'nowhere'"),
        (["code", "--after", NO_TASK], 2, "there is no task"),
        (["code", "--after", "123456"], 3, "no task id ends in 123456"),
        (["code", "--input", "brief"], 2, "is not NAME=REFERENCE"),
        (["code", "--input", "a=artifact:x", "--input", "a=artifact:y"], 2, "given twice"),
        (["code", "--input", "brief=artifact:x"], 2, "input brief refers to"),
        (["cdoe"], 3, "there is no task type 'cdoe'"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(
    arguments: list[str], code: int, said: str, still: Cli
) -> None:
    refused = still("tasks", "enqueue", *arguments)

    assert refused.code == code
    assert said in refused.err
    assert still("tasks", "list", "--json").json == {"items": []}


def test_options_of_a_task_are_kept(cli: Cli) -> None:
    options = ["--priority", "3", "--delay", "60", "--title", "t", "--max-attempts", "7"]

    task = cli("tasks", "enqueue", "code", *options).out.strip()

    shown = cli("tasks", "show", task, "--json").json
    assert (shown["priority"], shown["title"], shown["max_attempts"]) == (3, "t", 7)
    assert shown["status"] == "pending"
    assert shown["why"].startswith("scheduled for ")
    assert shown["reasons"][0]["reason"] == "run_at"


def test_every_python_option_of_a_task_can_be_set(cli: Cli, sync_conn: Conn) -> None:
    rules = '[{"validator": "regex", "pattern": "^ok$"}]'
    said = ["--set", "assigned_agent=a", "--set", 'tags=["x", "y"]', "--validation", rules]
    said += ["--report", "required", "--model", "large"]
    said += ["--set", "external_ref=gh=7", "--set", "hold=true"]

    made = cli("tasks", "enqueue", "code", *said)

    shown = cli("tasks", "show", made.out.strip(), "--json").json
    assert shown["assigned_agent"] == "a"
    assert (shown["tags"], shown["external_ref"], shown["status"]) == (
        ["x", "y"],
        "gh=7",
        "created",
    )
    assert [rule["pattern"] for rule in shown["validation"]] == ["^ok$"]
    assert (shown["report"], shown["models"]) == ("required", ["large"])


def test_waiting_for_a_result_prints_why_there_is_none(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "EXPLAIN_AFTER_S", 0.1)
    cli("types", "pause", "code", "--reason", "a storm")

    waited = cli("tasks", "enqueue", "code", "--wait", "--timeout", "3")

    assert waited.code == 7
    assert "type code has been paused" in waited.err
    assert "has not ended within 3 s" in waited.err


def test_the_same_content_is_enqueued_once_with_dedupe(cli: Cli) -> None:
    first, second, other = (
        cli("tasks", "enqueue", "code", spec, "--dedupe").out
        for spec in ('{"n": 1}', '{"n": 1}', '{"n": 2}')
    )

    assert first == second != other


def test_a_list_can_be_narrowed(cli: Cli, sync_conn: Conn) -> None:
    completed, ready = commands.complete(sync_conn, 1), commands.enqueue(sync_conn)

    assert cli("tasks", "list", "-q", "--status", "ready").out.split() == [ready]
    assert cli("tasks", "list", "-q", "--status", "completed").out.split() == [completed]
    assert cli("tasks", "list", "-q", "--type", "review").out == ""
    assert cli("tasks", "list", "-q", "-n", "1").out.split() == [ready]
    assert cli("tasks", "list", "-q").out.split() == [ready, completed]
    both = ("--status", "ready", "--status", "completed", "--created-after", "1h")
    assert cli("tasks", "list", "-q", *both).out.split() == [ready, completed]
    assert cli("tasks", "list", "-q", *both, "--tag", "x").out == ""


@pytest.mark.requirement("F28")
@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ('{"value": 0.5, "step": "upload"}', "50% step=upload"),
        ('{"value": 12, "of": 40}', "of=40 value=12"),
        ('"half"', "half"),
        (None, ""),
    ],
)
def test_a_list_shows_the_progress(
    cli: Cli, sync_conn: Conn, progress: str | None, shown: str
) -> None:
    task = commands.enqueue(sync_conn)
    sync_conn.execute("update treadle.tasks set progress = %s where id = %s", (progress, task))

    titles, row = cli("tasks", "list").rows

    assert row[titles.index("progress")] == shown


def test_list_cancel_and_retry_have_the_same_filters() -> None:
    group = load("tasks")
    options = [
        {name for each in group.commands[verb].params for name in each.opts}
        for verb in ("list", "cancel", "retry")
    ]

    shared = {f"--{name.replace('_', '-')}" for name in signature(task_filters).parameters}
    assert len(shared) == 13
    assert all(shared <= each for each in options)


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (("tasks", "list", "--status", "compleated"), 2, "Did you mean completed?"),
        (("tasks", "list", "--status", "dead"), 2, "Did you mean dead_lettered?"),
        (("tasks", "list", "--queue", "deafult"), 3, "default"),
        (("tasks", "list", "--type", "cdoe"), 3, "code"),
        (("tasks", "cancel", "--queue", "deafult"), 3, "default"),
        (("dead-letters", "list", "--queue", "deafult"), 3, "default"),
        (("dead-letters", "list", "--failure-class", "time_out"), 2, "timeout"),
    ],
)
def test_a_misspelt_filter_is_an_error(
    still: Cli, words: tuple[str, ...], code: int, hint: str
) -> None:
    wrong = still(*words)

    assert wrong.code == code
    assert hint in wrong.err


def test_the_shell_completes_states_queues_types_and_ids(
    cli: Cli, sync_conn: Conn, database_url: str
) -> None:
    task = commands.enqueue(sync_conn)

    def complete(*words: str) -> list[str]:
        line = " ".join(("treadle", *words))
        env = {
            "_TREADLE_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words)),
        }
        return commands.treadle(**env, TREADLE_DATABASE_URL=database_url).out.split()

    assert complete("tasks", "list", "--status", "dea") == ["dead_lettered"]
    assert complete("tasks", "list", "--queue", "def") == ["default"]
    assert complete("tasks", "list", "--type", "cod") == ["code"]
    assert complete("tasks", "show", task[-12:-6]) == [task[-12:]]


def test_the_end_of_an_id_is_enough(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn)

    for text in (task, task[-6:], f"…{task[-8:]}", task.upper()):
        assert cli("tasks", "show", text, "--json").json["id"] == task
    assert cli("tasks", "show", task[-5:]).code == 2
    assert cli("tasks", "show", "0" * 12).code == 3


def test_show_prints_why_a_task_waits(cli: Cli, sync_conn: Conn) -> None:
    task = commands.enqueue(sync_conn)

    assert "no live agent serves queue default" in cli("tasks", "show", task).out
    cli("queues", "pause", "default", "--reason", "provider is down")
    shown = cli("tasks", "show", task, "--json").json
    assert [each["reason"] for each in shown["reasons"]] == ["queue_paused", "no_agent"]
    assert shown["why"].endswith(": provider is down; no live agent serves queue default")


def test_cancel_prints_the_verdict_of_each_task(cli: Cli, sync_conn: Conn) -> None:
    ready, completed = commands.enqueue(sync_conn, priority=90), commands.complete(sync_conn, 1)

    done = cli("tasks", "cancel", ready, completed, "--reason", "enough", "--json")

    assert done.code == 4
    assert done.json["items"] == [
        {"id": ready, "verdict": "cancelled"},
        {"id": completed, "verdict": "ended"},
    ]
    assert cli("tasks", "cancel", ready).rows[1] == [ready, "already"]
    assert cli("tasks", "show", ready, "--json").json["why"] == "cancelled: enough"
    assert cli("tasks", "cancel", NO_TASK).code == 3


def test_one_task_that_cannot_be_retried_does_not_stop_the_others(
    cli: Cli, sync_conn: Conn
) -> None:
    completed, dead = commands.complete(sync_conn, 1), commands.dead_letter(sync_conn)

    done = cli("tasks", "retry", completed, dead, NO_TASK)

    assert done.code == 4
    assert [row[:2] for row in done.rows[1:]] == [[completed, ""], [dead, "ready"], [NO_TASK, ""]]
    assert commands.status(sync_conn, dead) == "ready"


@pytest.mark.requirement("F28")
def test_a_task_is_enqueued_after_another_by_the_end_of_its_id(cli: Cli, sync_conn: Conn) -> None:
    first, second = (cli("tasks", "enqueue", "code").out.strip() for _ in range(2))

    made = cli(
        *("tasks", "enqueue", "code", "--after", first[-8:], "--after", second),
        *("--input", f"brief=task:{first[-8:]}:output.summary"),
    )

    shown = cli("tasks", "show", made.out.strip(), "--json").json
    assert {each["id"] for each in shown["dependencies"]} == {first, second}
    assert shown["status"] == "pending"
    assert shown["inputs"] == {"brief": f"task:{first}:output.summary"}
    assert "waiting for 2 of 2 dependencies" in shown["why"]
