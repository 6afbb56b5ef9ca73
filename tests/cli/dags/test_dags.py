"""`treadle dags`: create DAGs from files, show their progress, start, cancel and retry them."""

import json
import re
from typing import Any

import pytest

from tests.drivers import commands, tree
from tests.drivers.commands import Cli, Conn

EXAMPLES = tree.ROOT / "examples"
EVIL = 'a "quoted" [b]\x1b[31m `c` #1; <d>'
NO_DAG = commands.NO_TASK
DIAMOND = {
    "name": "diamond",
    "tasks": [
        {"name": "a", "type": "code"},
        {"name": "b", "type": "code", "after": ["a"]},
        {"name": "c", "type": "code", "after": ["a"]},
        {"name": "d", "type": "test", "after": ["b", {"task": "c", "optional": True}]},
    ],
}


def make(cli: Cli, plan: dict[str, Any], *options: str) -> str:
    """The id of a new DAG."""
    made = cli("dags", "create", "-", *options, stdin=json.dumps(plan))
    assert made.code == 0, made.err
    return made.out.strip()


@pytest.mark.requirement("F3")
@pytest.mark.parametrize("ending", ["yaml", "json"])
def test_the_example_creates_all_its_tasks(cli: Cli, ending: str) -> None:
    made = cli("dags", "create", str(EXAMPLES / f"landing_page.{ending}"), "--json").json

    shown = cli("dags", "show", made["id"], "--json").json
    names = {node["id"]: node["name"] for node in shown["nodes"]}
    assert (shown["name"], shown["status"], shown["tasks"]) == ("Build landing page", "running", 5)
    assert [names[each] for each in shown["roots"]] == ["research", "design", "implement"]
    assert [names[each] for each in shown["leaves"]] == ["test_and_deploy"]
    assert list(names) == made["tasks"]


def test_both_examples_describe_the_same_dag(cli: Cli) -> None:
    from treadle.cli.dags.plan_file import read_plan

    assert read_plan(str(EXAMPLES / "landing_page.yaml")) == read_plan(
        str(EXAMPLES / "landing_page.json")
    )


def test_a_plan_comes_from_stdin_and_with_a_key_once(cli: Cli, sync_conn: Conn) -> None:
    first, second = make(cli, DIAMOND, "--key", "k"), make(cli, DIAMOND, "--key", "k")
    third = cli("dags", "create", "-", stdin="name: x\ntasks: [{type: code}]").out.strip()

    assert first == second != third
    assert sync_conn.execute("select count(*) from treadle.tasks").fetchone() == (5,)
    other = cli(
        "dags", "create", "-", "--key", "k", stdin='{"name": "x", "tasks": [{"type": "code"}]}'
    )
    assert other.code == 2
    assert "has different tasks" in other.err


def test_a_held_dag_waits_for_its_start(cli: Cli) -> None:
    plan = {"name": "x", "defaults": {"priority": 7}, "tasks": [{"type": "code"}, {"type": "code"}]}
    held, again = (make(cli, plan, "--hold", "--key", "k") for _ in range(2))

    shown = cli("dags", "show", held, "--json").json
    assert held == again
    assert [node["name"] for node in shown["nodes"]] == ["code", "code-2"]
    assert (shown["status"], shown["nodes"][0]["status"]) == ("open", "created")
    assert f"treadle dags start {held[-8:]}" in cli("dags", "show", held).out

    assert cli("dags", "start", held[-8:], "--json").json == {"id": held, "tasks": 2}
    task = cli("tasks", "list", "--status", "ready", "--json").json["items"][0]
    assert task["priority"] == 7


def test_cancel_and_retry_print_the_number_of_tasks(cli: Cli, sync_conn: Conn) -> None:
    made = make(cli, DIAMOND)

    assert cli("dags", "cancel", made, "--reason", "enough", "--json").json == {
        "id": made, "cancelled": 4,
    }  # fmt: skip
    shown = cli("dags", "show", made, "--json").json
    assert shown["status"] == "cancelled"
    assert shown["nodes"][0]["failure_reason"] == "enough"
    assert cli("dags", "retry", made).rows == [["id", "retried"], [made, "4"]]
    assert cli("dags", "show", made, "--json").json["status"] == "running"


def test_a_list_can_be_narrowed(cli: Cli) -> None:
    running, held = make(cli, DIAMOND), make(cli, DIAMOND, "--hold")

    assert cli("dags", "list", "-q").out.split() == [held, running]
    assert cli("dags", "list", "-q", "--status", "open").out.split() == [held]
    row = dict(zip(*cli("dags", "list", "--status", "running").rows, strict=True))
    assert (row["id"], row["progress"], row["name"]) == (running, "0/4", "diamond")
    assert [each["id"] for each in cli("dags", "list", "--json", "-n", "1").json["items"]] == [held]
    wrong = cli("dags", "list", "--status", "runing")
    assert (wrong.code, "Did you mean running?" in wrong.err) == (2, True)


@pytest.mark.parametrize("verb", ["show", "start", "cancel", "retry"])
def test_a_missing_dag_is_reported(verb: str, still: Cli) -> None:
    assert still("dags", verb, NO_DAG).code == 3
    assert still("dags", verb, "abcdef123").code == 3
    assert still("dags", verb, "x").code == 2


def test_the_picture_shows_states_times_and_what_gave_up(cli: Cli, sync_conn: Conn) -> None:
    made = make(cli, DIAMOND)
    task, token = commands.claim(sync_conn)
    sync_conn.execute("select treadle.complete_task(%s, %s)", (task, token))
    task, token = commands.claim(sync_conn)
    sync_conn.execute(
        "select treadle.fail_tasks(array[%s], array[%s], '{error}', '{boom}', '{fail}')",
        (task, token),
    )

    shown = cli("dags", "show", made[-6:])

    assert shown.code == 0
    head, bar, about, _, titles, *picture = shown.out.splitlines()
    assert head == "✕ failed  diamond"
    assert bar.startswith("█████░░░░░░░░░░░░░░░  1 of 4 completed, 1 ready, 1 pending, 1 dead")
    assert about.startswith(f"id {made}")
    assert titles.split() == ["task", "state", "waited", "ran"]
    assert re.fullmatch(r"✓ a +completed +\S+ +\S+", picture[0])
    assert re.fullmatch(r"├─† b +dead_lettered +\S+ +\S+", picture[1])
    assert "✕ b is a dead letter: boom" in picture
    assert f"retry it: treadle dags retry {made[-8:]}" in picture
    assert "┊ ╌ optional dependency" in picture
    assert "\x1b" not in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80


def test_a_terminal_gets_colours_and_one_without_utf_8_gets_ascii(
    cli: Cli, database_url: str
) -> None:
    made = make(cli, DIAMOND)

    colours = commands.on_terminal("dags", "show", made, TREADLE_DATABASE_URL=database_url)
    plain = commands.treadle(
        "dags", "show", made, TREADLE_DATABASE_URL=database_url, PYTHONIOENCODING="ascii"
    )

    assert "\x1b[36m●" in colours
    assert "\x1b[36m●\x1b[0m a" in re.sub(r"\x1b\[90m( *)\x1b\[0m", r"\1", colours)
    assert "\x1b[36m  ready" in colours
    assert plain.out.isascii()
    assert "o a" in plain.out
    assert "|-." in plain.out or "+-." in plain.out
    listed = commands.on_terminal("dags", "list", TREADLE_DATABASE_URL=database_url)
    assert "░░░░░░░░░░" in listed


def test_watching_needs_a_terminal_and_stops_at_the_end(cli: Cli, database_url: str) -> None:
    made = make(cli, DIAMOND)
    cli("dags", "cancel", made)

    assert cli("dags", "show", made, "--watch").code == 2
    assert cli("dags", "show", made, "--mermaid", "--json").code == 2
    watched = commands.on_terminal(
        "dags", "show", made, "--watch", TREADLE_DATABASE_URL=database_url
    )
    assert "4 cancelled" in watched


def test_mermaid_is_a_flowchart_in_which_names_are_only_names(cli: Cli) -> None:
    plan: dict[str, Any] = {**DIAMOND, "tasks": [*DIAMOND["tasks"]]}
    plan["tasks"][0] = {"name": "a", "type": "code", "title": EVIL}
    made = make(cli, plan)

    first, *lines = cli("dags", "show", made, "--mermaid").out.splitlines()

    assert first == "flowchart TD"
    node = re.compile(r'  t\d+\["([\w ,./$-]|#\d+;|<br/>)*"\]:::[a-z_]+')
    edge = re.compile(r"  t\d+ (-->|-\.->) t\d+")
    style = re.compile(r"  classDef [a-z_]+ fill:#\w{6},stroke:#\w{6},color:#\w{6}")
    kinds = [next(k for k in (node, edge, style) if k.fullmatch(line)) for line in lines]
    assert [kinds.count(each) for each in (node, edge, style)] == [4, 4, 2]
    assert "  t3 -.-> t4" in lines


def test_mermaid_labels_hold_nothing_that_mermaid_reads() -> None:
    from treadle.cli.dags.graph import label

    shown = label(EVIL + "\nend")

    assert shown.startswith("a #34;quoted#34; #91;b#93;#27;")
    assert shown.endswith("#60;d#62;<br/>end")
