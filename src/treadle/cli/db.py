"""`treadle db`: install, upgrade and verify the database schema."""

from typing import Annotated

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

db = Noun(
    "db",
    """Install, upgrade and verify the database schema.

    \b
    Example:
      treadle db migrate
    """,
)


@db.verb()
def migrate(
    to: Annotated[int | None, typer.Option(metavar="N", help="Last migration to apply.")] = None,
    lock_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Longest wait for a lock.")
    ] = 5.0,
) -> None:
    """Install the schema, or upgrade it to this version of treadle.

    \b
    Example:
      treadle db migrate --database-url postgresql://localhost/app

    The command is safe to repeat, to interrupt and to run concurrently.
    """
    from treadle.db.install import migrate as schema

    common.quiet_logs()
    with common.database() as url:
        done = schema.migrate(url, to=to, lock_timeout_s=lock_timeout, on_step=common.note)
    if common.options.json:
        output.document(
            {
                "version": done.version,
                "applied": done.applied,
                "code_applied": done.code_applied,
                "changed": done.changed,
            }
        )
        return
    text = "the schema is now" if done.changed else "nothing to do: the schema is"
    typer.echo(f"{text} at migration {done.version}")


@db.verb()
def status() -> None:
    """List applied and pending migrations.

    \b
    Example:
      treadle db status --json
    """
    from treadle.db.install import migrate as schema

    common.quiet_logs()
    with common.database() as url:
        found = schema.status(url)
    rows = [
        {
            "version": row.version,
            "name": row.name,
            "state": _state(row.version, row.label, found),
            "applied_at": row.applied_at,
            "applied_by": row.applied_by,
        }
        for row in found.applied
    ]
    rows += [
        {"version": m.version, "name": m.name, "state": "pending", "applied_at": None,
         "applied_by": None}
        for m in found.pending
    ]  # fmt: skip
    if common.options.json:
        output.document(
            {
                "server": found.server,
                "version": found.version,
                "latest": found.latest,
                "current": found.current,
                "code_current": found.code_current,
                "items": rows,
            }
        )
        return
    output.show(
        rows,
        [
            Column("version", "version", right=True),
            Column("name", "name"),
            Column("state", "state", output.state),
            Column("applied", "applied_at", output.ago),
            Column("applied_by", "applied_by"),
        ],
    )
    if found.current:
        common.note(f"PostgreSQL {found.server}: the schema is up to date")
    elif found.renamed:
        common.note("the schema was created by an unreleased version; see: treadle db migrate")
    elif found.unknown:
        common.note("the schema is newer than this treadle; upgrade treadle")
    elif found.changed:
        common.note("applied migrations differ from their files; see: treadle db verify")
    else:
        what = "migrations are pending" if found.pending else "functions and views are not current"
        common.note(f"{what}; run: treadle db migrate")


@db.verb()
def verify() -> None:
    """Compare every object of the schema with this version of treadle.

    \b
    Example:
      treadle db verify

    Exit code 1: something differs.
    """
    from treadle.db.install import migrate as schema

    common.quiet_logs()
    with common.database() as url:
        problems = schema.verify(url)
    if common.options.json:
        output.document({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(common.printable(problem))
        if not problems:
            common.note("the schema matches this version of treadle")
    if problems:
        raise typer.Exit(1)


@db.verb(json=False, database=False)
def sql() -> None:
    """Print the installation as plain SQL, for psql or another migration tool.

    \b
    Example:
      treadle db sql | psql -v ON_ERROR_STOP=1 app
    """
    from treadle.db.install import migrate as schema

    typer.echo(schema.install_script(), nl=False)


def _state(version: int, label: str, found: object) -> str:
    from treadle.db.install.migrate import SchemaStatus

    assert isinstance(found, SchemaStatus)
    if version in found.unknown:
        return "unknown"
    return "changed" if label in (*found.changed, *found.renamed) else "applied"
