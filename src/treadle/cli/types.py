"""`treadle types`: the types of tasks and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treadle.cli import common, output
from treadle.cli.nouns import Noun, add_create_and_update, add_pause_and_resume
from treadle.cli.options import field_options
from treadle.cli.output import Column
from treadle.fields import TypeSettings, fields_of

if TYPE_CHECKING:
    from treadle.db.database import Database

types = Noun(
    "types",
    """List task types; create, update, pause and resume them.

    \b
    Example:
      treadle types pause deploy --reason "provider is down"
    """,
)


def _validators(rules: list[dict[str, Any]] | None) -> str:
    return output.line([str(rule.get("validator")) for rule in rules] if rules else None)


COLUMNS = [
    Column("type", "type"),
    Column("state", "state", output.state),
    Column("priority", "priority", right=True),
    Column("max_attempts", "max_attempts", right=True),
    Column("timeout", "timeout_s", output.length, right=True),
    Column("gates", "gates"),
    Column("max_cost_usd", "max_cost_usd", right=True, extra=True),
    Column("max_tokens", "max_tokens", right=True, extra=True),
    Column("validation", "validation", _validators, extra=True),
    Column("report", "report", extra=True),
    Column("models", "models", extra=True),
    Column("paused_reason", "paused_reason", extra=True),
    Column("description", "description"),
]


@types.verb("list")
def list_types() -> None:
    """List types with their settings; a dash means that the queue decides.

    \b
    Example:
      treadle types list --json
    """
    rows = common.call_db(lambda db: db.types.list())
    output.show(rows, COLUMNS, empty="no types; start a worker: treadle worker my_module:app")


async def _define(db: Database, name: str, settings: dict[str, Any]) -> tuple[bool, None]:
    return await db.types.define(name, settings), None


add_create_and_update(
    types,
    "type",
    _define,
    field_options(fields_of(TypeSettings)),
    create="""Create a type; a worker creates the types that it handles.

    \b
    Examples:
      treadle types create deploy --max-attempts 5 --gate cluster
      treadle types create verdict --report required \\
        --validation '[{"validator": "regex", "pattern": "^(yes|no)$"}]'
    """,
    update="""Change the named settings of a type.

    \b
    Examples:
      treadle types update deploy --max-attempts 5 --gate cluster
      treadle types update deploy --breaker '{"threshold": 3}'
    """,
)
add_pause_and_resume(
    types,
    "type",
    lambda db: db.types,
    pause="Stop claiming tasks of a type; running tasks continue.",
    resume="Claim tasks of a paused type again.",
    example="deploy",
    active="open",
)
