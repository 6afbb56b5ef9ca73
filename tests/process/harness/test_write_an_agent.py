"""The agent of the how-to page runs unchanged, from the small install that the page names."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.drivers.processes import children
from tests.drivers.processes.children import ROOT, rows
from tests.drivers.processes.harness import Site

until = partial(children.until, within=40)
PAGE = ROOT / "docs" / "how-to" / "write-an-agent.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel of the client and nothing else of treadle."""
    folder = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT / "src" / "treadle" / "client", check=True, capture_output=True)
    [wheel] = folder.glob("treadle_client-*.whl")
    venv.create(folder / "venv", with_pip=False)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    [own] = distributions(name="treadle-client", path=[str(packages)])
    for each in needed(own.requires or []).values():
        for top in {file.parts[0] for file in each.files or [] if ".." not in file.parts}:
            if top != "__pycache__" and not (packages / top).exists():
                (packages / top).symlink_to(str(each.locate_file(top)))
    return folder / "venv" / "bin" / "python"


def needed(requirements: list[str]) -> dict[str, Distribution]:
    """What these say that they need, and what that needs, from the Python that runs the tests."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        each = waiting.pop()
        if each.name not in found and (each.marker is None or each.marker.evaluate({"extra": ""})):
            found[each.name] = distribution(each.name)
            waiting += [Requirement(below) for below in found[each.name].requires or []]
    return found


@contextmanager
def running(python: Path, program: Path, **environment: str) -> Iterator[None]:
    given = {"PATH": os.environ["PATH"], **environment}
    with (program.parent / "agent.log").open("wb") as log:
        process = subprocess.Popen([python, program], env=given, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait(10)


@pytest.mark.requirement("H2")
def test_the_client_is_an_install_of_its_own(python: Path) -> None:
    program = """
import sys
import treadle
from treadle.client import AsyncHarnessClient, HarnessClient, WorkQueue
assert treadle.__file__ is None, "no treadle/__init__.py comes with it"
found = sorted({name.split(".")[0] for name in sys.modules})
assert not {"psycopg", "pydantic", "fastapi", "structlog"} & set(found), found
others = [n for n in sys.modules if n.startswith("treadle.") and not n.startswith("treadle.client")]
assert others == [], others
"""
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("H12")
async def test_the_agent_and_the_callback_of_the_page_run_as_they_stand(
    site: Site, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, callback = blocks()[:2]
    (tmp_path / "agent.py").write_text(agent)
    (tmp_path / "page_actions.py").write_text(callback)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    harness = site.harness("--drain-every", "600", act="page_actions:act")
    await harness.logged("harness.started", within=40)
    given = {"HARNESS_URL": site.server.url, "AGENT_URL": site.agent_url}
    first = await site.put(issue=7, title="a crash")
    with running(python, tmp_path / "agent.py", **given):
        await until(site.all_are("done", "done", [first]))
        await site.allow()
        # It looks every 30 seconds: sooner only when it is nudged.
        second = await site.put(issue=8, title="how?")
        await until(site.all_are("done", "done", [second]), within=20)

    said = [line for line in harness.log.read_text().splitlines() if line.startswith("acting:")]
    assert [line.split(" ", 2)[1] for line in said] == [first, second]
    assert "'label': 'bug'" in said[0]
    assert "'label': 'question'" in said[1]


@pytest.mark.requirement("H12")
async def test_the_agent_of_the_page_gives_a_task_back_whose_decision_is_refused(
    site: Site, python: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(blocks()[0])
    # It stands in the decision, too.
    payload = '{"issue": {"password": "abc"}}'
    store = (
        "select id::text from treadle.enqueue_harness_task(%s, %s::jsonb, p_allow_secrets => true)"
    )
    [(bad,)] = await rows(site.conn, store, site.agent_url, payload)
    good = await site.put(issue=7, title="a crash")
    given = {"HARNESS_URL": site.server.url, "AGENT_URL": site.agent_url}

    with running(python, tmp_path / "agent.py", **given):
        await until(site.all_are("failed", None, [str(bad)]))
        await until(site.all_are("completed", None, [good]))

    error = "select last_error from treadle.harness_tasks where task_id = %s"
    [(said,)] = await rows(site.conn, error, bad)
    assert said.startswith("the decision was refused: ")
