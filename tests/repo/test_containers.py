"""The container files start commands that exist, as a plain user, without secrets."""

import importlib
import json
import re
import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from tests.repo import tree
from treadle.cli import app

COMPOSE = (tree.ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (tree.ROOT / "Dockerfile").read_text()


def commands() -> list[list[str]]:
    """The arguments that the container files give to treadle."""
    found = re.findall(r"^\s*command: (\[.*\])$", COMPOSE, re.MULTILINE)
    found += re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return [json.loads(text) for text in found]


def has_compose() -> bool:
    """Whether the docker compose plugin is installed."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0


def test_the_processes_of_treadle_are_all_there() -> None:
    first = [command[0] for command in commands()]

    services = ["reaper", "promoter", "scheduler", "notifier", "pruner"]
    assert first == ["db", "worker", *services, "--help"]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_and_option_exists(arguments: list[str]) -> None:
    words = [word for word in arguments if re.fullmatch(r"[a-z]+", word)]
    options = [word for word in arguments if word.startswith("--")]

    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200"})

    assert shown.exit_code == 0, shown.output
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.output)
    for option in options:
        assert re.search(rf"{option}\b", plain), f"{words} has no option {option}"


def test_the_application_of_the_worker_is_in_the_image() -> None:
    named = [
        word for command in commands() for word in command if re.fullmatch(r"[\w.]+:\w+", word)
    ]

    assert len(named) == 1
    module, _, attribute = named[0].partition(":")
    assert hasattr(importlib.import_module(module), attribute)
    assert f"COPY {module.split('.')[0]} /app/{module.split('.')[0]}" in DOCKERFILE


def test_an_unknown_command_would_be_noticed() -> None:
    assert CliRunner().invoke(app, ["repaer", "--help"]).exit_code != 0


def test_the_password_comes_from_outside_only() -> None:
    values = re.findall(r"^\s*(?:PGPASSWORD|POSTGRES_PASSWORD): (.*)$", COMPOSE, re.MULTILINE)

    assert len(values) == 2
    assert all(value.startswith("${POSTGRES_PASSWORD:?") for value in values)
    assert not re.search(r"://[^@/\s]+:[^@/\s]+@", COMPOSE + DOCKERFILE)


def test_the_image_runs_as_a_plain_user_and_says_how_it_is() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]

    assert re.search(r"^USER (?!root|0)\w+", last_stage, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK .*\\\n\s+CMD ", last_stage, re.MULTILINE)


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
def test_docker_compose_accepts_the_file() -> None:
    command = ["docker", "compose", "--file", "docker-compose.yml", "config", "--quiet"]

    done = subprocess.run(
        command, cwd=tree.ROOT, env={"POSTGRES_PASSWORD": "x", "PATH": "/usr/bin:/usr/local/bin"},
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
