"""`treadle config` shows where each setting comes from and finds the misspelt ones."""

from pathlib import Path

from tests.cli.conftest import Cli
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


def test_passwords_are_masked(bare: Cli) -> None:
    env = {"TREADLE_DATABASE_URL": SECRET, "TREADLE_LISTEN_URL": SECRET}

    shown = bare("config", "show", env=env)

    assert "postgresql://me:***@host/tasks" in shown.out
    assert "hunter2" not in shown.out
    given = bare("config", "show", "--database-url", SECRET)
    assert given.rows[1][:3] == ["database_url", "command line", "postgresql://me:***@host/tasks"]


def test_a_wrong_value_is_refused(bare: Cli) -> None:
    wrong = bare("config", "check", env={"TREADLE_SLOTS": "many"})

    assert wrong.code == 2
    assert "slots" in wrong.err


def test_a_misspelt_name_is_found(bare: Cli, folder: Path) -> None:
    (folder / "treadle.toml").write_text("slosts = 3\n")

    wrong = bare("config", "check", env={"TREADLE_QUEUE": "mail"})

    assert wrong.code == 2
    assert wrong.out.splitlines() == [
        "TREADLE_QUEUE is not a setting. Did you mean TREADLE_QUEUES?",
        "slosts is not a setting. Did you mean slots?",
    ]


def test_a_file_that_is_not_toml_is_told(bare: Cli, folder: Path) -> None:
    (folder / "treadle.toml").write_text("slots = [")

    for words in (["config", "check"], ["tasks", "list"]):
        wrong = bare(*words)
        assert wrong.code == 2
        assert "treadle.toml cannot be read" in wrong.err


def test_good_settings_are_good(bare: Cli) -> None:
    assert bare("config", "check").code == 0
