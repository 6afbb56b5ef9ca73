"""`treadle artifacts`: list, show, download and sweep the files of tasks."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.drivers import commands
from tests.drivers.commands import Cli, Conn

pytestmark = pytest.mark.requirement("F21")
APP = """
from treadle import Context, Treadle

app = Treadle()

@app.task()
async def draw(ctx: Context, text: str) -> dict:
    await ctx.artifact.link("site", "https://example.org")
    return await ctx.artifact.put("cat.txt", text.encode())
"""


@pytest.fixture
def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files are kept."""
    (folder / "files").mkdir()
    monkeypatch.setenv("TREADLE_ARTIFACTS_URL", f"file://{folder}/files")
    return folder / "files"


@pytest.fixture
def drawn(cli: Cli, folder: Path, files: Path, database_url: str) -> dict[str, str]:
    """What a task has stored that a worker ran."""
    (folder / "drawing.py").write_text(APP)
    assert cli("types", "create", "draw").code == 0
    task = cli("tasks", "enqueue", "draw", '{"text": "a cat"}').out.strip()
    done = cli("worker", "drawing:app", "--until-empty")
    assert done.code == 0, done.err
    made: dict[str, str] = cli("tasks", "show", task, "--json").json["output"]
    return {**made, "task": task}


def on_disk(files: Path) -> list[str]:
    return [path.read_text() for path in sorted(files.rglob("*")) if path.is_file()]


def test_files_are_listed_shown_and_fetched(
    cli: Cli, drawn: dict[str, str], folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    listed = cli("artifacts", "list", "--task", drawn["task"][-8:], "--json").json["items"]
    assert {(each["name"], each["status"]) for each in listed} == {
        ("cat.txt", "stored"), ("site", "linked")
    }  # fmt: skip
    assert len(cli("artifacts", "--json").json["items"]) == 2
    assert cli("artifacts", "list").rows[0][:3] == ["id", "status", "size"]

    shown = cli("artifacts", "show", drawn["id"][-8:], "--json").json
    assert (shown["sha256"], shown["bytes"], shown["attempt"]) == (drawn["sha256"], 5, 1)
    assert cli("artifacts", "show", f"artifact:{drawn['id']}").rows[0] == ["id", drawn["id"]]
    assert cli("tasks", "show", drawn["task"], "--json").json["artifacts"][1]["name"] == "cat.txt"

    done = cli("artifacts", "download", drawn["id"], "-o", str(folder / "got.txt"))
    assert (done.code, done.err) == (0, f"{folder}/got.txt has 5 B, sha256 {drawn['sha256']}\n")
    assert (folder / "got.txt").read_text() == "a cat"
    assert cli("artifacts", "download", drawn["id"], "-o", "-").out == "a cat"
    told = cli("artifacts", "download", drawn["id"], "-o", "again.txt", "--json").json
    assert told == {**shown, "output": "again.txt"}


def test_a_sweep_lists_files_in_a_dry_run_and_then_deletes_them(
    cli: Cli, drawn: dict[str, str], files: Path, sync_conn: Conn
) -> None:
    [place] = [path for path in files.rglob("*") if path.is_file()]
    orphan = place.with_name(str(uuid4()))
    orphan.write_text("nobody's")

    dry = cli("artifacts", "sweep", "--dry-run", "--older-than", "0")
    assert dry.code == 0
    assert dry.out.strip() == orphan.relative_to(files).as_posix()
    assert dry.err == "1 files would be deleted, 0 failed\n"
    assert cli("artifacts", "sweep").out == ""
    assert len(on_disk(files)) == 2
    done = cli("artifacts", "sweep", "--older-than", "0", "--json").json
    assert (done["without_a_task"], done["failed"], len(done["keys"])) == (1, 0, 1)
    assert on_disk(files) == ["a cat"]

    sync_conn.execute("delete from treadle.tasks")
    assert cli("artifacts", "sweep").err == "1 files deleted, 0 failed\n"
    assert on_disk(files) == []


def test_a_terminal_shows_the_files_of_a_task(drawn: dict[str, str]) -> None:
    shown = commands.on_terminal("tasks", "show", drawn["task"])

    assert "artifacts" in shown
    assert "cat.txt" in shown


@pytest.mark.own_database
def test_a_doctor_tries_the_store(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        checks = json.loads(cli("doctor", "--json").out)["items"]
        return next(each for each in checks if each["check"] == "artifacts")

    assert found()["status"] == "ok"
    assert on_disk(files) == []
    (files / "file").write_text("")
    monkeypatch.setenv("TREADLE_ARTIFACTS_URL", f"file://{files}/file")
    assert found()["status"] == "fail"


@pytest.mark.own_database
def test_a_doctor_tries_the_folder_of_the_user_where_no_store_is_named(
    cli: Cli, sync_conn: Conn, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))

    def found() -> list[str]:
        items = cli("doctor", "--json").json["items"]
        return [each["status"] for each in items if each["check"] == "artifacts"]

    # The default folder has no files: it is not created.
    assert found() == []
    assert not (folder / "data").exists()
    (folder / "data/treadle/artifacts").mkdir(parents=True)
    assert found() == ["ok"]
    assert on_disk(folder / "data") == []


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["artifacts", "show", "123456"], 3, "treadle artifacts list"),
        (["artifacts", "show", "01890000-0000-7000-8000-00000000dead"], 3, "artifacts list"),
        (["artifacts", "show", "abc"], 2, "is not a valid artifact id"),
        (["artifacts", "download", "123456"], 2, "--output"),
        (["artifacts", "download", "123456", "-o", "."], 2, "is a folder"),
        (
            ["artifacts", "download", "123456", "-o", "nowhere/x.pdf"],
            2,
            "there is no folder nowhere",
        ),
        (["artifacts", "download", "123456", "-o", "-", "--json"], 2, "stdout cannot hold both"),
        (["artifacts", "list", "--task", "123456"], 3, "treadle tasks list"),
        (["artifacts", "sweep", "--older-than", "-1"], 2, "older-than"),
        (["artifacts", "sweep", "--older-than", "forever"], 2, "Write 90m"),
        (["artifacts", "sweeep"], 2, "sweep"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    still: Cli, words: list[str], code: int, hint: str
) -> None:
    done = still(*words)

    assert (done.code, hint in done.err) == (code, True), done.err
    assert "Traceback" not in done.err


def test_an_address_that_makes_no_sense_is_a_wrong_setting(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_ARTIFACTS_URL", "ftp://files")

    done = cli("artifacts", "sweep")

    assert done.code == 2
    assert "TREADLE_ARTIFACTS_URL" in done.err
