"""`treadle keys`, and nouns without a verb."""

import pytest

from tests.drivers.commands import Cli


@pytest.mark.requirement("B6")
def test_a_key_shows_what_it_holds_and_its_limit_is_set(cli: Cli) -> None:
    assert cli("keys").rows[1:] == []
    for _ in range(3):
        cli("tasks", "enqueue", "code", "--concurrency-key", "repo:42", "--concurrency-limit", "2")
    [key] = cli("keys", "--json").json["items"]
    assert (key["key"], key["held"], key["waiting"]) == ("repo:42", 0, 3)

    done = cli("keys", "set", "repo:42", "1")

    assert (done.code, done.err) == (0, "key repo:42 has 1 slot\n")
    [key] = cli("keys", "list", "--json").json["items"]
    assert key["max"] == 1


def test_a_limit_below_zero_is_refused(cli: Cli) -> None:
    done = cli("keys", "set", "repo:42", "--", "-1")

    assert done.code == 2
    assert "error:" in done.err
    assert cli("keys").rows[1:] == []


@pytest.mark.parametrize("noun", ["budgets", "dags", "gates", "keys", "queues", "tasks", "types"])
def test_these_nouns_list_when_nothing_else_is_said(cli: Cli, noun: str) -> None:
    assert cli(noun, "--json").json["items"] == cli(noun, "list", "--json").json["items"]


def test_a_noun_without_a_verb_takes_the_options_of_its_list(cli: Cli) -> None:
    task = cli("tasks", "enqueue", "code").out.strip()

    assert cli("tasks", "--status", "ready", "-q").out.split() == [task]
    assert cli("tasks", "-q", "--type", "review").out == ""
    assert cli("tasks", "--colour").code == 2


def test_the_command_line_sets_cost_limits_and_gates_of_a_task(cli: Cli) -> None:
    cli("gates", "create", "llm")
    made = cli("tasks", "enqueue", "code", "--max-cost-usd", "0.5", "--gate", "llm", "--json")

    task = cli("tasks", "show", made.json["id"], "--json").json

    assert float(task["max_cost_usd"]) == 0.5
    assert task["gates"] == ["llm", "type:code"]
    unknown = cli("tasks", "enqueue", "code", "--gate", "lmm")
    assert unknown.code == 3
    assert "llm" in unknown.err
