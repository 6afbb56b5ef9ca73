"""`treadle config`: the settings and where their values come from."""

from typing import Any

import typer

from treadle.cli import common, output
from treadle.cli.nouns import Noun
from treadle.cli.output import Column

config = Noun(
    "config",
    """Show and check the settings.

    \b
    Example:
      treadle config show
    """,
)


@config.verb()
def show() -> None:
    """Show every setting with its value and origin; passwords are masked.

    \b
    Example:
      treadle config show --json
    """
    from treadle.db.connection import mask_password
    from treadle.settings import Settings, load_settings, origin

    given = common.options.database_url
    settings = load_settings(database_url=given)
    rows: list[dict[str, Any]] = []
    for name, field in Settings.model_fields.items():
        value = getattr(settings, name)
        rows.append(
            {
                "name": name,
                "value": mask_password(value) if isinstance(value, str) else value,
                "origin": "command line" if name == "database_url" and given else origin(name),
                "description": field.description,
            }
        )
    columns = [
        Column("name", "name"),
        Column("origin", "origin"),
        Column("value", "value"),
        Column("description", "description", extra=True),
    ]
    output.show(rows, columns)


@config.verb()
def check() -> None:
    """Check the settings without connecting to the database.

    \b
    Example:
      treadle config check

    Exit code 2: a setting is invalid or unknown.
    """
    from treadle.settings import load_settings, unknown_settings

    load_settings(database_url=common.options.database_url)
    problems = unknown_settings()
    if common.options.json:
        output.document({"ok": not problems, "problems": problems})
    else:
        for problem in problems:
            typer.echo(problem)
        if not problems:
            common.note("the settings are valid; check the database: treadle doctor")
    if problems:
        raise typer.Exit(2)
