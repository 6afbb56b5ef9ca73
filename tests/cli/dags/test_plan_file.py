"""Plan files: errors name their place, and no file can exhaust the machine."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.commands import Cli
from treadle.cli.dags import plan_file
from treadle.cli.dags.plan_file import read_plan
from treadle.errors import InvalidArgument, TooLarge

TASKS = "tasks: [{type: code}]\n"
LAUGHS = "name: x\ntasks: [{type: code}]\na0: &a0 [lol, lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)

WRONG: dict[str, tuple[str, str | bytes, str]] = {
    "json that breaks off": ("p.json", '{"name": "x",\n "tasks": [}', "p.json, line 2, column 12"),
    "a name twice in json": ("p.json", '{"name": "x", "name": "y"}', "'name' occurs twice"),
    "json nested too deep": ("p.json", "[" * 100_000, "is not valid JSON"),
    "json that is a list": ("p.json", "[]", "must hold an object, not list"),
    "no name": ("p.json", '{"tasks": [{}]}', "p.json has no name"),
    "a name that is a number": ("p.yaml", "name: 5\n" + TASKS, "p.yaml has no name"),
    "no tasks": ("p.json", '{"name": "x"}', "p.json has no list of tasks"),
    "an empty list": ("p.json", '{"name": "x", "tasks": []}', "has no list of tasks"),
    "a task that is text": (
        "p.yaml",
        "name: x\ntasks: [code]",
        "task 1 must be an object, not str",
    ),
    "an empty file": ("p.yaml", "", "must hold an object, not nothing"),
    "yaml that breaks off": ("p.yml", "name: x\ntasks: [\n", "p.yml, line 3"),
    "tabs": ("p.yaml", "name: x\n\ttasks: 1", "p.yaml, line 2"),
    "two documents": ("p.yaml", "name: x\n---\nname: y\n", "p.yaml, line 2"),
    "a name twice in yaml": ("p.yaml", "name: x\nname: y\n", "line 2: 'name' occurs twice"),
    "a truth value as a name": ("p.yaml", "name: x\non: 1\n", "line 2: 'on' is not text"),
    "a merge": (
        "p.yaml",
        "a: &a {b: 1}\nc: {<<: *a}\n",
        "line 2: the merge key << is not supported",
    ),
    "a Python object": ("p.yaml", "name: !!python/object/apply:os.getcwd []\n", "p.yaml, line 1"),
    "an alias of nothing": ("p.yaml", "name: *x\n", "p.yaml, line 1"),
    "yaml nested too deep": ("p.yaml", "name: " + "[" * 2_000, "is not valid YAML"),
    "a number too long": ("p.yaml", f"name: {'9' * 10_000}\n" + TASKS, "is not valid YAML"),
    "not UTF-8": ("p.json", b'{"name":\n"\xff"}', "p.json, line 2: not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_in_a_plan_is_reported_with_its_place(name: str, folder: Path) -> None:
    file, text, words = WRONG[name]
    Path(file).write_bytes(text if isinstance(text, bytes) else text.encode())

    with pytest.raises(InvalidArgument) as raised:
        read_plan(file)

    assert words in str(raised.value)


LONG = f"name: x\n{TASKS}a: &a {'x' * 20_000}\nb: [{', '.join(['*a'] * 900)}]\n"


@pytest.mark.parametrize("text", [LAUGHS, f"name: x\n{TASKS}a: &a [*a]\n", LONG])
def test_aliases_cannot_make_a_small_file_huge(text: str, folder: Path) -> None:
    Path("p.yaml").write_text(text)

    with pytest.raises(TooLarge, match="with its aliases expanded"):
        read_plan("p.yaml")


def test_an_alias_is_fine(folder: Path) -> None:
    Path("p.yaml").write_text(
        "name: x\ntasks: [{type: code, spec: &s {n: 1}}, {type: test, spec: *s}]"
    )

    assert [task["spec"] for task in read_plan("p.yaml")["tasks"]] == [{"n": 1}, {"n": 1}]


def test_a_file_has_a_largest_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_file, "MAX_BYTES", 100)
    Path("p.json").write_text(" " * 101)

    with pytest.raises(TooLarge, match=r"p\.json has more than"):
        read_plan("p.json")


def test_without_the_extra_yaml_prints_how_to_install_it_and_json_works(
    still: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "yaml", missing)
    Path("p.yaml").write_text(f"name: x\n{TASKS}")

    refused = still("dags", "create", "p.yaml")

    assert refused.code == 2
    assert "pip install 'treadle[yaml]'" in refused.err
    assert (
        still("dags", "create", "-", stdin='{"name": "x", "tasks": [{"type": "code"}]}').code == 0
    )


def test_a_file_that_is_not_there_and_a_dag_that_cannot_be_have_their_exit_codes(
    cli: Cli, folder: Path
) -> None:
    circle = '{"name": "x", "tasks": [{"type": "code", "name": "a", "after": ["a"]}]}'

    assert "nothing.json cannot be read" in cli("dags", "create", "nothing.json").err
    assert cli("dags", "create", "nothing.json").code == 2
    assert cli("dags", "create", "-", stdin=circle).code == 4
    unknown = cli("dags", "create", "-", stdin='{"name": "x", "tasks": [{"type": "cdoe"}]}')
    assert (unknown.code, "'cdoe'" in unknown.err) == (3, True)
    assert cli("dags", "list", "--json").json == {"items": []}
