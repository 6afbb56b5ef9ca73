"""The container files start commands that exist, as a plain user, without secrets, and watched."""

import http.server
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from tests.drivers import tree
from tests.drivers.commands import parse
from treadle.cli import app
from treadle.process import write_health_file

COMPOSE = (tree.ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (tree.ROOT / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
# Those of the image of PostgreSQL are not ours.
OURS = {name: each for name, each in SERVICES.items() if name not in ("postgres", "logins")}
PASSWORDS = {"POSTGRES_PASSWORD", "OPERATOR_PASSWORD", "WORKER_PASSWORD"}
# They end by themselves, so they need no health check.
ONCE = {"cli", "migrate"}
LASTING = {name: service for name, service in OURS.items() if name not in ONCE}
HEALTH_FILE = "/run/treadle/health"


def commands() -> list[list[str]]:
    """The arguments that the container files give to treadle."""
    found = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    return [*(service["command"] for service in OURS.values()), *map(json.loads, found)]


def typed() -> list[list[str]]:
    """The arguments of `docker compose run ... cli` in the files and in the guide."""
    files = ("docker-compose.yml", ".github/workflows/ci.yml", "docs/how-to/run-in-containers.md")
    text = "\n".join((tree.ROOT / file).read_text() for file in files)
    found = re.findall(r"docker compose run [-\w ]*?cli ([-\w ]+?)(?:  |[`>\n])", text)
    return [words.split() for words in found]


def image_check() -> list[str]:
    """The health check of the image."""
    [found] = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    words: list[str] = json.loads(found)
    return words


def has_compose() -> bool:
    """Whether the plugin is installed; docker-compose 1 does not know configs with content."""
    version = ["docker", "compose", "version"]
    there = shutil.which("docker") is not None
    return there and subprocess.run(version, capture_output=True).returncode == 0


def test_the_processes_of_treadle_are_all_there() -> None:
    services = {
        "reaper", "promoter", "scheduler", "dispatcher", "notifier", "pruner", "harness"
    }  # fmt: skip

    others = {"postgres", "migrate", "logins", "cli", "server", "worker"}
    assert set(SERVICES) == {*others, *services}
    assert {name: service["command"][0] for name, service in OURS.items()} == {
        **{name: name for name in {"server", "worker", *services}},
        "migrate": "db",
        "cli": "--help",
    }


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_command_parses_with_its_options(arguments: list[str]) -> None:
    assert parse(arguments) is None


@pytest.mark.parametrize("words", typed(), ids=" ".join)
def test_every_command_that_people_type_exists(words: list[str]) -> None:
    assert parse(words) is None


def test_one_service_builds_the_image_and_the_others_wait_for_it() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["migrate"]
    assert len({service["image"] for service in OURS.values()}) == 1


def test_the_code_that_the_commands_name_is_in_the_image() -> None:
    named = [
        word for command in commands() for word in command if re.fullmatch(r"[\w.]+:\w+", word)
    ]

    assert len(named) == 2
    for module, _, attribute in (each.partition(":") for each in named):
        assert hasattr(importlib.import_module(module), attribute)
        assert f"COPY {module.split('.')[0]} /app/{module.split('.')[0]}" in DOCKERFILE


def test_an_unknown_command_would_be_noticed() -> None:
    assert CliRunner().invoke(app, ["repaer", "--help"]).exit_code != 0
    assert parse(["server", "--hosts", "0.0.0.0"]) is not None


def test_passwords_come_from_outside_only() -> None:
    values = re.findall(r"^\s*\w*PASSWORD: (.*)$", COMPOSE, re.MULTILINE)

    found = [re.match(r"\$\{(\w+):\?", value) for value in values]
    assert {each and each[1] for each in found} == PASSWORDS
    assert not re.search(r"://[^@/\s]+:[^@/\s]+@", COMPOSE + DOCKERFILE)


@pytest.mark.requirement("B10")
def test_the_owner_of_the_database_migrates_and_makes_logins_and_does_nothing_else() -> None:
    owners = {
        name
        for name, service in SERVICES.items()
        if "POSTGRES_PASSWORD" in str(service["environment"])
    }
    assert owners == {"postgres", "migrate", "logins"}
    for name, service in OURS.items():
        user = urlsplit(service["environment"]["TREADLE_DATABASE_URL"]).username
        password = service["environment"]["PGPASSWORD"]
        assert (user == "postgres") == (name == "migrate")
        assert password.startswith(f"${{{user}_PASSWORD:?".upper())


def test_the_image_runs_as_a_plain_user() -> None:
    last_stage = DOCKERFILE.rpartition("\nFROM ")[2]

    assert re.search(r"^USER (?!root|0)\w+", last_stage, re.MULTILINE)
    assert all(service["read_only"] and service["cap_drop"] == ["ALL"] for service in OURS.values())


def test_the_image_has_the_extras_of_its_processes() -> None:
    [words] = re.findall(r"pip install '\.\[([\w,]+)\]'", DOCKERFILE)
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())["project"]

    extras = set(words.split(","))
    assert extras <= set(project["optional-dependencies"])
    assert {"artifacts", "cron", "http", "webhooks"} <= extras
    # The database of the image is another container.
    assert not extras & {"all", "dev", "embedded", "test"}


def test_the_server_is_published_for_this_host_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert published == {"server": ["127.0.0.1:${TREADLE_PORT:-8420}:8420"]}


@pytest.mark.requirement("W14")
def test_everything_that_lasts_is_watched() -> None:
    by_file = {name for name, service in LASTING.items() if HEALTH_FILE in service["command"]}
    by_asking = {name for name, each in LASTING.items() if "test" in each.get("healthcheck", {})}

    assert by_file | by_asking == set(LASTING)
    assert by_asking == {"server"}
    assert HEALTH_FILE in image_check()[-1]
    assert SERVICES["postgres"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert {name for name in OURS if OURS[name].get("healthcheck", {}).get("disable")} == ONCE


def test_everything_waits_for_the_schema() -> None:
    for name, service in OURS.items():
        waits = {other: each["condition"] for other, each in service["depends_on"].items()}
        assert waits["postgres"] == "service_healthy"
        assert name == "migrate" or waits["logins"] == "service_completed_successfully"
    assert SERVICES["logins"]["depends_on"]["migrate"] == {
        "condition": "service_completed_successfully"
    }


@pytest.fixture
def well() -> Iterator[int]:
    """The port of something that answers on /health alone."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health" else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def healthy(words: list[str], *, file: Path, port: int) -> bool:
    """What a health check says when its file and its port are these.

    In the image `python` is the interpreter of the virtual environment. Here it is the one that
    runs the tests: this machine may have none of that name.
    """
    assert any(HEALTH_FILE in word or "8420" in word for word in words)
    moved = [word.replace(HEALTH_FILE, str(file)).replace("8420", str(port)) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "python").symlink_to(sys.executable)
        path = f"{folder}:{os.environ.get('PATH', os.defpath)}"
        done = subprocess.run(
            moved, env={**os.environ, "PATH": path}, capture_output=True, timeout=20
        )
    return done.returncode == 0


@pytest.mark.requirement("W14")
def test_the_check_of_the_image_sees_a_stuck_process(tmp_path: Path) -> None:
    file = tmp_path / "health"
    file.touch()
    assert healthy(image_check(), file=file, port=1)

    old = time.time() - 120
    os.utime(file, (old, old))

    assert not healthy(image_check(), file=file, port=1)


@pytest.mark.requirement("B16")
@pytest.mark.parametrize(("status", "expected"), [("ok", True), ("no_database", False)])
def test_the_check_of_the_image_sees_a_process_without_its_database(
    tmp_path: Path, status: str, expected: bool
) -> None:
    file = tmp_path / "health"
    write_health_file(file, {"status": status})

    assert healthy(image_check(), file=file, port=1) is expected


@pytest.mark.requirement("W14")
def test_both_checks_ask_the_server(tmp_path: Path, well: int) -> None:
    [own] = [
        service["healthcheck"]["test"][1:] for name, service in OURS.items() if name == "server"
    ]

    for words in (own, image_check()):
        assert healthy(words, file=tmp_path / "none", port=well)
        assert not healthy(words, file=tmp_path / "none", port=1)


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
def test_docker_compose_accepts_the_file() -> None:
    command = ["docker", "compose", "--file", "docker-compose.yml", "config", "--quiet"]

    given = {**dict.fromkeys(PASSWORDS, "x"), "PATH": "/usr/bin:/usr/local/bin"}
    done = subprocess.run(command, cwd=tree.ROOT, env=given, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
