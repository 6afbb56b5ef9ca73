"""The generated files are current, and the check names those that are not."""

from pathlib import Path

import psycopg
import pytest

from treadle.db import generate
from treadle.db.install import files
from treadle.errors import ConfigurationError


def test_the_generated_files_are_up_to_date(
    empty_database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = generate.main(["--check", "--database-url", empty_database_url])

    assert (code, capsys.readouterr().out) == (0, "")


def test_a_generated_file_that_differs_is_out_of_date(
    empty_database_url: str, tmp_path: Path
) -> None:
    texts = generate.from_fields() | generate.from_schema(empty_database_url)
    names = {path.relative_to(files.sql_dir().parent).as_posix() for path in texts}
    same, other, missing = (tmp_path / name for name in ("same", "other", "missing"))
    same.write_text("text")
    other.write_text("old text")

    late = generate.outdated({same: "text", other: "text", missing: "text"})

    assert late == [other, missing]
    assert names >= {
        "sql/install.sql",
        "sql/schema.snapshot.sql",
        "sql/views/task_fields.sql",
        "docs/reference/sql.md",
        "docs/reference/task-fields.md",
    }


def test_the_state_machine_is_drawn_between_its_marks(
    sync_conn: psycopg.Connection[tuple[object, ...]],
) -> None:
    page = f"before\n{generate.BEGIN}\nold picture\n{generate.END}\nafter\n"

    drawn = generate.state_machine(sync_conn, page)

    assert drawn.startswith(f"before\n{generate.BEGIN}\n```mermaid\nstateDiagram-v2\n  [*] --> ")
    assert drawn.endswith(f"```\n{generate.END}\nafter\n")
    assert "\n  claimed --> running: start_tasks\n" in drawn
    assert "\n  completed --> [*]\n" in drawn
    assert "old picture" not in drawn
    assert generate.state_machine(sync_conn, drawn) == drawn
    with pytest.raises(ConfigurationError, match="no marks"):
        generate.state_machine(sync_conn, "no marks")
