"""`treadle schedules`: list, create, explain, run and delete schedules."""

import json
from pathlib import Path

import pytest

from tests.drivers.commands import Cli, Conn, start

NIGHTLY = ("schedules", "create", "nightly", "30 2 * * *", "--timezone", "Europe/Berlin")


@pytest.mark.requirement("F19")
def test_a_schedule_is_defined_listed_and_shown_in_plain_english(cli: Cli) -> None:
    made = cli(
        *NIGHTLY, "--type", "code", "--spec", '{"n": 1}', "--priority", "7", "--jitter", "60"
    )
    assert (made.code, made.err) == (0, "schedule nightly is created: At 02:30 every day\n")

    [row] = cli("schedules", "list", "--json").json["items"]
    assert (row["name"], row["state"], row["text"]) == ("nightly", "active", "At 02:30 every day")
    assert row["template"] == {"task": {"type": "code", "spec": {"n": 1}, "priority": 7}}
    assert cli("schedules").rows[1][:5] == [
        "nightly", "active", "At 02:30 every day", "Europe/Berlin", "code"
    ]  # fmt: skip
    shown = cli("schedules", "show", "nightly", "--json").json
    assert len(shown["next_times"]) == 5
    assert all(" 02:30 CE" in time["local"] for time in shown["next_times"])
    assert all(time["utc"].endswith(("01:30Z", "00:30Z")) for time in shown["next_times"])
    text = cli("schedules", "show", "nightly").out
    assert "At 02:30 every day, Europe/Berlin" in text
    assert text.count("02:30 CE") == 5


@pytest.mark.requirement("F19")
def test_a_schedule_is_run_paused_resumed_changed_and_removed(cli: Cli, sync_conn: Conn) -> None:
    cli(*NIGHTLY, "--type", "code")
    ran = cli("schedules", "run", "nightly")
    assert ran.code == 0
    assert cli("tasks", "show", ran.out.strip(), "--json").json["source_job"] == "nightly"
    assert cli("schedules", "pause", "nightly", "--reason", "a move").code == 0
    shown = cli("schedules", "show", "nightly", "--json").json
    assert (shown["state"], shown["paused_reason"]) == ("paused", "a move")
    assert (shown["last_status"], shown["last_task"]) == ("queued", ran.out.strip())
    assert [(run["nominal_at"], run["now"]) for run in shown["runs"]] == [(None, "ready")]
    assert cli("schedules", "resume", "nightly").err == "schedule nightly is resumed\n"
    assert cli("schedules", "resume", "nightly").err == "schedule nightly was not paused\n"

    changed = cli("schedules", "update", "nightly", "--catch-up", "skip", "--overlap", "skip")
    assert changed.err == "schedule nightly is changed: At 02:30 every day\n"
    shown = cli("schedules", "show", "nightly", "--json").json
    assert (shown["catch_up"], shown["overlap"], shown["cron"]) == ("skip", "skip", "30 2 * * *")
    assert cli("schedules", "delete", "nightly").code == 2
    assert cli("schedules", "delete", "nightly", "--yes").code == 0
    assert cli("schedules", "list").rows[1:] == []


@pytest.mark.requirement("F19")
def test_a_schedule_can_make_the_dag_of_a_file(cli: Cli, folder: Path) -> None:
    plan = {"name": "weekly", "tasks": [{"type": "code"}, {"type": "test", "after": ["code"]}]}
    (folder / "plan.json").write_text(json.dumps(plan))
    assert cli("schedules", "create", "weekly", "@weekly", "--dag", "plan.json").code == 0

    made = cli("schedules", "run", "weekly", "--json").json

    assert made["task_id"] is None
    assert cli("dags", "show", made["dag_id"], "--json").json["name"] == "weekly"


@pytest.mark.requirement("F19")
def test_the_schedules_of_an_application_are_stored(cli: Cli, folder: Path, module: str) -> None:
    code = (folder / "my_tasks.py").read_text()
    more = 'app.schedule("sums", "@hourly", add.call(a=1, b=2), overlap="skip")\n'
    (folder / "my_tasks.py").write_text(code + more)

    assert cli("schedules", "sync", module).rows == [["schedule", "verdict"], ["sums", "created"]]

    assert cli("schedules", "sync", module).rows[1:] == [["sums", "unchanged"]]
    [row] = cli("schedules", "list", "--json").json["items"]
    assert (row["name"], row["overlap"], row["in_code"]) == ("sums", "skip", True)
    assert cli("schedules", "run", "sums").code == 0


@pytest.mark.requirement("F19")
def test_a_cron_line_is_looked_at_without_a_database(bare: Cli) -> None:
    line = ("*/15 9 * * MON", "--timezone", "America/New_York", "--limit", "4")
    found = bare("schedules", "preview", *line, "--json").json
    assert found["text"] == "Every 15th minute from 09:00 through 09:59 on Monday"
    assert {time["local"][11:16] for time in found["next_times"]} == {
        "09:00", "09:15", "09:30", "09:45"
    }  # fmt: skip
    assert len(bare("schedules", "preview", "@daily", "--limit", "8").rows) == 10


@pytest.mark.own_database
def test_doctor_reports_late_and_stopped_schedules(cli: Cli, sync_conn: Conn) -> None:
    def found() -> tuple[str, str]:
        checks = cli("doctor", "--json").json["items"]
        [check] = [each for each in checks if each["check"] == "scheduler"]
        return check["status"], check["found"]

    assert found() == ("ok", "0 schedules, none is late")
    cli(*NIGHTLY, "--type", "code")
    assert found() == ("warn", "no scheduler is connected")
    sync_conn.execute("update treadle.schedules set next_at = now() - interval '1 h'")
    assert found() == ("fail", "1 schedules are late")
    sync_conn.execute("update treadle.schedules set next_at = 'infinity'")
    assert found() == ("warn", "stopped: nightly")


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["create", "a", "0 30 2 * * *", "--type", "code"], 2, "five fields"),
        (["create", "a", "61 * * * *", "--type", "code"], 2, "bad minute"),
        (["create", "a", "@fortnightly", "--type", "code"], 2, "@yearly"),
        (["create", "a", "@daily", "--timezone", "Mars", "--type", "code"], 2, "Europe/Berlin"),
        (["create", "a", "@daily"], 2, "a task or a DAG"),
        (["create", "a", "--type", "code"], 2, "Pass a cron line"),
        (["create", "a", "@daily", "--type", "cod"], 3, "Did you mean 'code'?"),
        (["create", "a", "@daily", "--type", "code", "--catch-up", "both"], 2, "skip, one or all"),
        (["create", "a", "@daily", "--spec", "{}"], 2, "need --type"),
        (["create", "a", "@daily", "--type", "code", "--dag", "x.json"], 2, "--dag cannot be"),
        (["create", "a", "@daily", "--type", "code", "--spec", "[1]"], 2, "JSON object"),
        (["show", "nigthly"], 3, "treadle schedules"),
        (["run", "nigthly"], 3, "Known schedules: none"),
        (["pause", "nigthly"], 3, "Known schedules: none"),
        (["delete", "nigthly", "--yes"], 3, "Known schedules: none"),
        (["puase", "nightly"], 2, "pause"),
        (["preview", "* * * *"], 2, "five fields"),
        (["preview", "@daily", "--timezone", ""], 2, "there is no time zone ''"),
        (
            ["create", "x", "@daily", "--timezone", "", "--type", "code"],
            2,
            "there is no time zone ''",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    still: Cli, words: list[str], code: int, hint: str
) -> None:
    done = still("schedules", *words)

    assert done.code == code
    assert hint in done.err
    assert "Traceback" not in done.err


def test_without_the_extra_the_scheduler_prints_what_to_install(folder: Path) -> None:
    (folder / "cronsim.py").write_text("raise ImportError('not here')\n")
    process = start("scheduler", PYTHONPATH=str(folder), TREADLE_DATABASE_URL="postgresql://x/y")
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "pip install 'treadle[cron]'" in err


@pytest.mark.requirement("Q10")
def test_a_run_at_capacity_fails_and_its_status_is_recorded(cli: Cli, sync_conn: Conn) -> None:
    sync_conn.execute("""select treadle.define_queue('small', '{"max_depth": 1}')""")
    cli(*NIGHTLY, "--type", "code", "--queue", "small")
    cli("schedules", "run", "nightly")

    ran = cli("schedules", "run", "nightly")

    assert ran.code == 5
    assert "at most 1" in ran.err
    shown = cli("schedules", "show", "nightly", "--json").json
    assert shown["last_status"] == "skipped_queue_full"
