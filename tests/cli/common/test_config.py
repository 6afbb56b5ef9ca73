"""`treadle config` shows where each setting comes from and finds the misspelt ones."""

import warnings
from pathlib import Path

import pytest
import structlog

from tests.drivers.commands import Cli
from treadle import Treadle, settings
from treadle.settings import Settings

SECRET = "postgresql://me:hunter2@host/tasks"


def test_every_setting_is_shown_with_its_origin(bare: Cli, folder: Path) -> None:
    (folder / "treadle.toml").write_text("slots = 3\npoll_s = 1.5\n")

    shown = bare("config", "show", "--json", env={"TREADLE_POLL_S": "2", "DATABASE_URL": SECRET})

    found = {each["name"]: each for each in shown.json["items"]}
    assert list(found) == list(Settings.model_fields)
    assert (found["slots"]["value"], found["slots"]["origin"]) == (3, "treadle.toml")
    assert found["poll_s"]["origin"] == "environment TREADLE_POLL_S"
    assert found["poll_s"]["value"] == 2
    assert found["database_url"]["origin"] == "environment DATABASE_URL"
    assert found["queues"]["origin"] == "default"
    assert all(each["description"] for each in found.values())


@pytest.mark.requirement("Q15")
def test_the_queue_has_variables_of_its_own(bare: Cli) -> None:
    own = {"AG_QUEUE_MAX_SIZE": "7", "AG_QUEUE_DISPATCH_TIMEOUT": "1.5m"}

    shown = bare("config", "show", "--json", env={**own, "TREADLE_QUEUE_MAX_SIZE": "9"})

    found = {each["name"]: (each["value"], each["origin"]) for each in shown.json["items"]}
    assert found["queue_max_size"] == (9, "environment TREADLE_QUEUE_MAX_SIZE")
    assert found["queue_dispatch_timeout_s"] == (90, "environment AG_QUEUE_DISPATCH_TIMEOUT")
    assert found["queue_max_attempts"] == (3, "default")


@pytest.mark.requirement("Q15")
@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        *(("1m30s", 90), ("2m", 120), ("1s500ms", 1.5), (".5s", 0.5), ("45", 45), ("0.25", 0.25)),
        *(("0s", 30), ("0", 30), ("20m", 600), ("1h", 600)),
    ],
)
def test_a_dispatch_timeout_is_a_duration_within_bounds(
    bare: Cli, given: str, seconds: float
) -> None:
    shown = bare("config", "show", "--json", env={"AG_QUEUE_DISPATCH_TIMEOUT": given})

    found = {each["name"]: each["value"] for each in shown.json["items"]}
    assert found["queue_dispatch_timeout_s"] == seconds


@pytest.mark.requirement("Q15")
@pytest.mark.parametrize("given", ["soon", "1m30", "30 s", "-5s", "-1", "nan", "1d"])
def test_an_invalid_dispatch_timeout_is_rejected(bare: Cli, given: str) -> None:
    wrong = bare("config", "check", env={"AG_QUEUE_DISPATCH_TIMEOUT": given})

    assert wrong.code == 2
    assert "invalid settings: AG_QUEUE_DISPATCH_TIMEOUT: " in wrong.err
    assert ("AG_QUEUE_DISPATCH_TIMEOUT: pass seconds, or 500ms, 30s, 1m30s" in wrong.err) == (
        given not in ("-1", "nan")
    )


@pytest.mark.requirement("W14")
def test_the_port_can_be_set_with_the_port_variable(bare: Cli) -> None:
    for env, port in (
        ({"PORT": "8080"}, (8080, "environment PORT")),
        ({"PORT": "", "TREADLE_PORT": ""}, (8420, "default")),
        ({"PORT": "8080", "TREADLE_PORT": "9000"}, (9000, "environment TREADLE_PORT")),
    ):
        shown = bare("config", "show", "--json", env=env)

        found = {each["name"]: (each["value"], each["origin"]) for each in shown.json["items"]}
        assert found["port"] == port


def test_passwords_are_masked(bare: Cli) -> None:
    env = {"TREADLE_DATABASE_URL": SECRET, "TREADLE_LISTEN_URL": SECRET}

    shown = bare("config", "show", env=env)

    assert "postgresql://me:***@host/tasks" in shown.out
    assert "hunter2" not in shown.out
    given = bare("config", "show", "--database-url", SECRET)
    assert given.rows[1][:3] == ["database_url", "command line", "postgresql://me:***@host/tasks"]


@pytest.mark.parametrize(
    ("env", "file", "named"),
    [
        ({"TREADLE_SLOTS": "many"}, "slots = 3", "TREADLE_SLOTS"),
        ({}, "slots = 'many'", "slots"),
        ({"AG_QUEUE_MAX_SIZE": "0"}, "", "AG_QUEUE_MAX_SIZE"),
        ({"AG_QUEUE_MAX_SIZE": "5", "TREADLE_QUEUE_MAX_SIZE": "x"}, "", "TREADLE_QUEUE_MAX_SIZE"),
        ({}, "queue_max_size = 0", "queue_max_size"),
        ({"TREADLE_QUEUE_MAX_SIZE": ""}, "queue_max_size = 0", "queue_max_size"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_that_was_read(
    bare: Cli, folder: Path, env: dict[str, str], file: str, named: str
) -> None:
    (folder / "treadle.toml").write_text(file)

    wrong = bare("config", "check", env=env)

    assert wrong.code == 2
    assert f"invalid settings: {named}: " in wrong.err
    assert "Correct or unset them" in wrong.err


@pytest.mark.parametrize("name", ["TREADLE_SLOTS", "AG_QUEUE_MAX_SIZE", "TREADLE_QUEUES"])
def test_an_empty_variable_counts_as_not_set(bare: Cli, name: str) -> None:
    shown = bare("config", "show", "--json", env={name: ""})

    assert {each["origin"] for each in shown.json["items"]} == {"default"}
    assert shown.json == bare("config", "show", "--json").json


def test_a_misspelt_name_is_found(bare: Cli, folder: Path) -> None:
    (folder / "treadle.toml").write_text("slosts = 3\n")

    wrong = bare("config", "check", env={"TREADLE_QUEUE": "mail"})

    assert wrong.code == 2
    assert wrong.out.splitlines() == [
        "TREADLE_QUEUE is not a setting. Did you mean TREADLE_QUEUES?",
        "slosts is not a setting. Did you mean slots?",
    ]


def test_every_command_warns_about_an_unknown_variable(cli: Cli) -> None:
    done = cli("tasks", "list", "--json", env={"TREADLE_SLOT": "9", "TREADLE_TEST_MINE": "1"})

    assert done.json == {"items": []}
    assert "TREADLE_SLOT is not a setting. Did you mean TREADLE_SLOTS?" in done.err
    assert "TREADLE_TEST_MINE" not in done.err


def test_an_application_warns_about_an_unknown_variable_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TREADLE_DATABASE_ULR", SECRET)
    monkeypatch.setattr(settings, "_warned", set())
    monkeypatch.setattr(structlog, "is_configured", lambda: False)

    with warnings.catch_warnings(record=True) as found:
        for _ in range(2):
            assert Treadle().settings.slots == 10

    [warning] = found
    assert "Did you mean TREADLE_DATABASE_URL?" in str(warning.message)


def test_an_invalid_toml_file_is_reported(bare: Cli, folder: Path) -> None:
    (folder / "treadle.toml").write_text("slots = [")

    for words in (["config", "check"], ["tasks", "list"]):
        wrong = bare(*words)
        assert wrong.code == 2
        assert "treadle.toml cannot be read" in wrong.err


def test_good_settings_are_good(bare: Cli) -> None:
    assert bare("config", "check").code == 0
