"""The CI workflow runs existing targets, publishes only from main, and has minimal rights."""

import re
import tomllib
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.drivers import tree

TEXT = (tree.ROOT / ".github" / "workflows" / "ci.yml").read_text()
# YAML reads the word `on` as true.
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = WORKFLOW["jobs"]
ONLY_MAIN = "github.event_name == 'push' && github.ref == 'refs/heads/main'"


def scripts(job: str) -> str:
    """Everything that a job runs in a shell."""
    return "\n".join(step.get("run", "") for step in JOBS[job]["steps"])


def test_its_targets_exist_and_their_variables_too() -> None:
    makefile = (tree.ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))
    called = [words for job in JOBS for words in re.findall(r"\bmake (.+)", scripts(job))]

    assert len(called) == 4
    for words in called:
        target, *variables = words.split()
        assert target in targets
        assert all(f"$({each.partition('=')[0]})" in makefile for each in variables)


def test_it_tests_on_every_python_and_postgresql_that_is_promised() -> None:
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"]
    promised = [
        found[1]
        for line in project["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]

    assert set(promised) <= set(JOBS["test"]["strategy"]["matrix"]["python"])
    assert JOBS["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert "postgresql-15" in scripts("test-pg15")


@pytest.mark.requirement("W14")
def test_the_image_is_built_tried_and_tagged_by_commit() -> None:
    compose = yaml.safe_load((tree.ROOT / "docker-compose.yml").read_text())["services"]
    name = compose["server"]["image"]

    assert "docker compose build" in scripts("image")
    assert "docker compose up --detach --wait" in scripts("image")
    assert f"docker save {name} " in scripts("image")
    assert '"${GITHUB_SHA::7}"' in scripts("publish")
    assert f'docker tag {name} "$name:$tag"' in scripts("publish")


def test_only_main_publishes_and_only_what_passed() -> None:
    pushes = [job for job in JOBS if "docker push" in scripts(job)]

    assert pushes == ["publish"]
    assert JOBS["publish"]["if"] == ONLY_MAIN
    assert set(JOBS["publish"]["needs"]) == set(JOBS) - {"publish"}


def test_it_may_do_no_more_than_it_needs() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "publish": {"packages": "write"}
    }
    assert re.findall(r"secrets\.(\w+)", TEXT) == ["GITHUB_TOKEN"]
    assert "pull_request_target" not in WORKFLOW[True]
    # What others write, a title or the name of a branch, is no part of a script.
    assert not re.search(r"\$\{\{\s*github\.(event\.|head_ref)", "".join(map(scripts, JOBS)))


def test_every_action_is_pinned_and_every_job_ends() -> None:
    steps = [step for job in JOBS.values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]

    assert len(used) > 0
    assert [
        each for each in used if not re.fullmatch(r"actions/[\w-]+@(v\d+|[0-9a-f]{40})", each)
    ] == []
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert all(job["timeout-minutes"] <= 60 for job in JOBS.values())
