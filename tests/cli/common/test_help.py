"""Help says what a command does, shows an example, and does not wait for the database driver."""

import subprocess
import sys
from typing import Any

import pytest

from tests.drivers.commands import NAMES, Cli, commands
from treadle import __version__
from treadle.cli import load

# Words for which the commands have another one.
SYNONYMS = {
    "change": "update", "edit": "update", "put": "update",
    "add": "create", "define": "create", "make": "create", "new": "create",
    "get": "show", "remove": "delete", "forget": "delete",
    "stop": "pause",
}  # fmt: skip
HEAVY = ("psycopg", "pydantic", "structlog", "rich", "anyio")


ALL = list(commands())


@pytest.mark.parametrize(("words", "command"), ALL, ids=[" ".join(words) for words, _ in ALL])
def test_help_begins_with_what_it_does_and_an_example(
    words: tuple[str, ...], command: Any, bare: Cli
) -> None:
    shown = bare(*words, "--help")

    assert shown.code == 0
    first, rest = command.help.strip().split("\n", 1)
    assert first.endswith(".")
    assert "Example" in rest
    assert f"treadle {' '.join(words)}" in shown.out.replace("Usage: root", "Usage: treadle")


def test_the_short_option_shows_the_same_help(bare: Cli) -> None:
    for words in ((), ("tasks",), ("tasks", "list"), ("worker",)):
        assert bare(*words, "-h").out == bare(*words, "--help").out


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(load(name), "commands")])
def test_the_summary_of_a_verb_is_not_cut(name: str, bare: Cli) -> None:
    shown = " ".join(bare(name, "--help").out.split())

    for command in load(name).commands.values():
        assert " ".join(command.help.split("\n\n")[0].split()) in shown


def test_the_commands_that_were_asked_for_are_there() -> None:
    words = {" ".join(words) for words, _ in ALL}

    assert words >= {
        "demo", "dev", "worker", "reaper", "promoter", "doctor",
        "db migrate", "db status", "db verify", "db sql",
        "tasks list", "tasks show", "tasks enqueue", "tasks cancel", "tasks retry", "tasks wait",
        "tasks fork", "tasks why", "waits list", "waits answer", "events emit",
        "dead-letters list", "dead-letters show", "dead-letters retry", "dead-letters cancel",
        "dead-letters modify",
        "agents list", "agents drain", "agents activate", "agents offline",
        "queues list", "queues create", "queues update", "queues pause", "queues resume",
        "queues stuck",
        "config show", "config check",
    }  # fmt: skip


def test_one_verb_is_used_for_one_thing() -> None:
    synonyms = {" ".join(words): SYNONYMS[words[-1]] for words, _ in ALL if words[-1] in SYNONYMS}

    assert synonyms == {}


def test_set_assigns_a_value_and_things_are_created_and_updated() -> None:
    nouns: dict[str, set[str]] = {}
    for words, _ in ALL:
        nouns.setdefault(words[-1], set()).add(words[0])

    assert nouns["set"] == {"budgets", "keys", "retention"}
    assert nouns["update"] <= nouns["create"]
    assert nouns["update"] == {
        *("queues", "types", "gates", "schedules", "triggers", "webhooks", "projects", "agents")
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_list_of_commands_has_the_help_line_of_each(name: str) -> None:
    assert load(name).help.strip().splitlines()[0] == NAMES[name]


def test_treadle_alone_shows_help_with_three_examples(bare: Cli) -> None:
    shown = bare()

    assert shown.code == 0
    assert shown.out == bare("--help").out
    examples = shown.out.split("Examples:")[1].split("Options:")[0]
    assert examples.count("  treadle ") == 3


def test_the_version_is_that_of_the_package(bare: Cli) -> None:
    assert bare("--version").out == f"treadle {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from treadle.cli import app\n"
        "try: app(['--help'], prog_name='treadle')\n"
        "except SystemExit: pass\n"
        f"sys.exit(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert "Flow control:" in done.stdout
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["task"], "tasks"), (["dcotor"], "doctor"), (["queues", "resme"], "resume")],
)
def test_a_misspelt_command_is_a_usage_error_with_a_suggestion(
    words: list[str], meant: str, bare: Cli
) -> None:
    wrong = bare(*words)

    assert wrong.code == 2
    assert "Did you mean" in wrong.err
    assert meant in wrong.err
    assert wrong.out == ""


def test_an_unknown_option_is_a_usage_error(bare: Cli) -> None:
    wrong = bare("tasks", "list", "--colour")

    assert wrong.code == 2
    assert "--colour" in wrong.err
