"""Write docs/reference/cli.md from the help of the commands: `python tests/cli_reference.py`."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from treadle import cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
# Every command takes them; the head of the page describes them.
EVERYWHERE = {"--help", "--json", "--database-url"}
HEAD = """\
# Command line

`treadle <noun> <verb>`. `make cli-reference` writes this page from the help of the commands.

- **Results go to stdout, everything else to stderr.** On a terminal, a result is a table with short
  ids and relative times; in a pipe, it is tab-separated with full ids and UTC times. Every command
  takes `--json`, except the processes, `demo`, `dev` and `db sql`.
- **A noun without a verb lists:** `treadle queues` is `treadle queues list`, with the same options.
- **One verb for one thing:** `list`, `show`, `create` (new, or exit code 4), `update` (change the
  named settings, or exit code 3), `set` (assign a limit or an age), `delete`, `pause` and `resume`
  mean the same for every noun. `create --or-update` does either, for scripts that run again.
- **Ids** may be shortened to their last 6 or more characters.
- **The database** is `--database-url` (before the noun or after the verb), otherwise
  `TREADLE_DATABASE_URL`, otherwise `DATABASE_URL`, otherwise `database_url` in `treadle.toml`. The
  embedded server is used by `demo` and `dev`, and elsewhere only with `TREADLE_EMBEDDED=1`.
- **Without a terminal, nothing asks for confirmation:** commands that delete something or change
  many tasks need `--yes` there. `--dry-run` counts what they would change.
- `NO_COLOR` turns colours off. `--debug` or `TREADLE_DEBUG=1` prints tracebacks.
- `treadle --install-completion` sets up completion for your shell.

Exit codes are in [errors](errors.md#exit-codes), settings in [settings](settings.md).
"""


def leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    if not hasattr(command, "resolve_command"):
        yield name, command
        return
    for word, below in command.commands.items():
        yield from leaves(f"{name} {word}", cli.load(word) if name == "treadle" else below)


def write() -> str:
    """The text of the page."""
    parts = [HEAD]
    for title, names in cli.SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for name in names:
            for words, command in leaves(f"treadle {name}", cli.load(name)):
                parts.append(section(words, command))
    return "".join(parts)


def section(words: str, command: Any) -> str:
    """A command: its arguments, what it does, examples and options."""
    arguments = [usage(each) for each in command.params if each.param_type_name == "argument"]
    title = f"\n### {words}" + (f" `{' '.join(arguments)}`" if arguments else "")
    what, examples, *rest = help_parts(command.help)
    lines = [title, "", what, "", "```sh", examples, "```"]
    for paragraph in rest:
        lines += ["", paragraph]
    rows = [
        f"| {names(each)} | {each.help} |"
        for each in command.params
        if each.param_type_name == "option" and each.opts[0] not in EVERYWHERE
    ]
    if rows:
        lines += ["", "| option | meaning |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def help_parts(text: str) -> list[str]:
    """The paragraphs of a help text; the second is the examples, without their heading."""
    what, examples, *rest = re.split(r"\n\n+", text.strip())
    # The first two lines are the mark that keeps the line ends, and `Examples:`.
    lines = [line.removeprefix("  ") for line in examples.split("\n")[2:]]
    return [fill(what), "\n".join(lines), *map(fill, rest)]


def fill(text: str) -> str:
    """A paragraph in lines of the usual length."""
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False)


def usage(argument: Any) -> str:
    """An argument as the usage line has it."""
    name = argument.metavar or argument.name.upper()
    if not argument.required:
        name = f"[{name}]"
    return f"{name}..." if argument.nargs == -1 else str(name)


def names(option: Any) -> str:
    """The names of an option and the name of its value."""
    words = [f"`{each}`" for each in (*option.opts, *option.secondary_opts)]
    return ", ".join(words) + (f" `{option.metavar}`" if option.metavar else "")


if __name__ == "__main__":
    typer.main.get_command(cli.app)
    PAGE.write_text(write(), encoding="utf-8")
