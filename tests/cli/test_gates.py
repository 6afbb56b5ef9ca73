"""`treadle gates`, `treadle breakers` and `treadle types`: what blocks tasks."""

import json

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn


@pytest.mark.requirement("B6")
def test_a_gate_is_defined_closed_and_opened(cli: Cli) -> None:
    assert cli("gates", "create", "llm", "--limit", "50", "--per", "60").code == 0
    closed = cli("gates", "close", "llm", "--for", "600", "--reason", "an incident")
    assert closed.code == 0
    assert closed.err.startswith("gate llm is closed until 2")
    [gate] = cli("gates", "list", "--json").json["items"]
    assert (gate["key"], gate["state"], gate["reason"]) == ("llm", "closed", "an incident")
    assert (gate["limit"], gate["per_s"], gate["unit"], gate["used"]) == (50, 60, "starts", 0)

    assert cli("gates", "open", "llm").err == "gate llm is open\n"
    assert cli("gates", "open", "llm").err == "gate llm was already open\n"
    assert cli("gates", "update", "llm", "--no-limit").code == 0
    [gate] = cli("gates", "list", "--json").json["items"]
    assert (gate["state"], gate["limit"]) == ("open", None)


@pytest.mark.requirement("R5")
def test_a_breaker_is_tripped_and_reset(cli: Cli) -> None:
    assert cli("breakers", "list").rows[1:] == []
    done = cli("breakers", "trip", "deploy", "--for", "600", "--reason", "a move")
    assert done.code == 0
    assert done.err.startswith("breaker deploy is open; the next probe is at 2")
    [breaker] = cli("breakers", "list", "--json").json["items"]
    assert (breaker["type"], breaker["state"]) == ("deploy", "open")
    assert breaker["last_error"] == "a move"
    assert len(cli("breakers", "list", "--all", "--json").json["items"]) > 1

    assert cli("breakers", "reset", "deploy").err == "breaker deploy is closed\n"
    assert cli("breakers", "reset", "deploy").err == "breaker deploy was already closed\n"


@pytest.mark.requirement("B7")
def test_a_type_is_defined_paused_and_resumed(cli: Cli, sync_conn: Conn) -> None:
    made = cli(
        *("types", "create", "crawl", "--max-attempts", "5", "--gate", "web", "--gate", "llm"),
        *("--breaker", '{"threshold": 3}', "--max-cost-usd", "2.5"),
    )
    assert made.code == 0
    assert cli("types", "pause", "crawl", "--reason", "a storm").code == 0
    shown = {row["type"]: row for row in cli("types", "list", "--json").json["items"]}
    crawl = shown["crawl"]
    assert (crawl["state"], crawl["paused_reason"]) == ("paused", "a storm")
    assert (crawl["max_attempts"], crawl["gates"]) == (5, ["web", "llm"])
    assert crawl["breaker"] == {"threshold": 3}
    assert {row["key"] for row in cli("gates", "list", "--json").json["items"]} == {"llm", "web"}

    commands.enqueue(sync_conn)
    assert cli("types", "resume", "crawl").err == "type crawl is resumed\n"
    assert cli("types", "list").rows[0][:2] == ["type", "state"]


@pytest.mark.requirement("F20")
def test_a_type_shows_its_validators(cli: Cli) -> None:
    rules = [{"validator": "regex", "pattern": "^(yes|no)$"}]
    made = cli(
        *("types", "create", "verdict", "--validation", json.dumps(rules), "--report", "required"),
        *("--model", "large", "--model", "larger", "--fallback-model", "other"),
    )
    assert made.code == 0

    [verdict] = [
        row for row in cli("types", "list", "--json").json["items"] if row["type"] == "verdict"
    ]
    assert (verdict["validation"], verdict["report"]) == (rules, "required")
    assert (verdict["models"], verdict["fallback_models"]) == (["large", "larger"], ["other"])


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["gates", "close", "lmm"], 3, "To create one"),
        (["gates", "create", "a b"], 2, "For example"),
        (["gates", "create", "llm", "--limit", "0", "--per", "60"], 2, "above 0"),
        (["gates", "create", "llm", "--limit", "5", "--per", "nan"], 2, "settings.per_s is nan"),
        (["gates", "create", "llm", "--no-limit", "--limit", "5"], 2, "cannot be combined"),
        (["gates", "close", "type:code", "--for", "-3"], 2, "more than 0 seconds"),
        (["gates", "opne", "llm"], 2, "open"),
        (["breakers", "trip", "cod"], 3, "Did you mean 'code'?"),
        (["breakers", "trip", "code", "--for", "0"], 2, "more than 0 seconds"),
        (["breakers", "rest", "code"], 2, "reset"),
        (["types", "pause", "cod"], 3, "Did you mean 'code'?"),
        (["types", "update", "code", "--breaker", '{"treshold": 1}'], 2, "threshold"),
        (["types", "update", "code", "--gate", "a b"], 2, "cannot be defined"),
        (["types", "update", "code", "--report", "perhaps"], 2, "report"),
        (["types", "update", "code", "--validation", "[{]"], 2, "validation is not JSON"),
        (["types", "update", "code", "--validation", "{}"], 2, "validation"),
        (["types", "puase", "code"], 2, "pause"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    still: Cli, words: list[str], code: int, hint: str
) -> None:
    done = still(*words)

    assert done.code == code
    assert hint in done.err
    assert "Traceback" not in done.err
