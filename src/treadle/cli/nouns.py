"""Nouns and verbs: `@noun.verb()`, and verbs that several nouns share."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from typer.core import TyperGroup

from treadle.cli.common import Command, Name, Reason, Yes, call_db, command, confirm
from treadle.cli.options import with_options
from treadle.cli.output import print_done
from treadle.errors import Conflict, NotFound

if TYPE_CHECKING:
    from treadle.db.database import Database


HELP = ("--help", "-h")


class _NounGroup(TyperGroup):
    """A noun without a verb runs its `list`, or its `show` where it has no list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        default = next((verb for verb in ("list", "show") if verb in self.commands), None)
        if default and (not args or (args[0].startswith("-") and args[0] not in HELP)):
            args = [default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the verbs with their whole first sentences; click cuts them after a few words."""
        rows = [
            (name, " ".join((command.help or "").split("\n\n", 1)[0].split()))
            for name, command in self.commands.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Noun(typer.Typer):
    """A noun of the command line; `@noun.verb()` adds a command to it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(
            cls=_NounGroup, add_completion=False, no_args_is_help=True, rich_markup_mode=None
        )
        self.name = name
        self.callback(help=text)(lambda: None)

    def verb(
        self, name: str | None = None, *, json: bool = True, database: bool = True
    ) -> Callable[[Command], Command]:
        """Add a command that takes --json and --database-url, by default."""

        def add(function: Command) -> Command:
            self.command(name)(command(json=json, database=database)(function))
            return function

        return add


OrUpdate = Annotated[
    bool, typer.Option("--or-update", help="Update it if it exists, for scripts that run again.")
]


def add_create_and_update(
    noun: Noun,
    singular: str,
    define: Callable[[Database, str, Any], Awaitable[tuple[bool, Any]]],
    options: Callable[..., Any],
    *,
    create: str,
    update: str,
    done: Callable[[str, str, Any], None] | None = None,
    get: Callable[[Database, str], Awaitable[object]] | None = None,
    argument: Any = None,
) -> None:
    """Add the verbs `create` and `update`, with these help texts and the same options.

    `define` creates or changes the thing with what `options` returns. It returns whether the thing
    is new, and a result that `done` prints with the name and the word created or updated. `get`
    raises NotFound; it is needed where `define` rejects an incomplete thing before it knows that
    the thing is new.
    """

    def define_one(name: str, given: Any, *, may_exist: bool, may_be_new: bool) -> None:
        missing = NotFound(
            f"there is no {singular} {name}",
            hint=f"To create it: treadle {noun.name} create {name}",
        )

        async def run(db: Database) -> tuple[bool, Any]:
            if get is not None and not may_be_new:
                try:
                    await get(db, name)
                except NotFound:
                    raise missing from None
            created, result = await define(db, name, given)
            # Checked after the change, and rolled back: no other session can come between.
            if created and not may_be_new:
                raise missing
            if not created and not may_exist:
                raise Conflict(
                    f"{singular} {name} exists already",
                    hint=f"To change it: treadle {noun.name} update {name}",
                )
            return created, result

        created, result = call_db(lambda db: db.repeat(run))
        verb = "created" if created else "updated"
        if done is not None:
            done(name, verb, result)
        else:
            print_done(f"{singular} {name} is {verb}", name=name, status=verb)

    def create_noun(name: str, settings: Any, or_update: OrUpdate = False) -> None:
        define_one(name, settings, may_exist=or_update, may_be_new=True)

    def update_noun(name: str, settings: Any) -> None:
        define_one(name, settings, may_exist=True, may_be_new=False)

    for verb, function, text in (("create", create_noun, create), ("update", update_noun, update)):
        function.__doc__ = inspect.cleandoc(text) + "\n"
        function.__annotations__["name"] = (
            argument
            or Annotated[str, typer.Argument(metavar="NAME", help=f"Name of the {singular}.")]
        )
        noun.verb(verb)(with_options(settings=options)(function))


class Pausable(Protocol):
    """The database calls of a noun that can be paused."""

    async def pause(self, name: str, reason: str | None) -> object: ...

    async def resume(self, name: str) -> object: ...


def add_pause_and_resume(
    noun: Noun,
    singular: str,
    calls: Callable[[Database], Pausable],
    *,
    pause: str,
    resume: str,
    example: str,
    active: str = "active",
) -> None:
    """Add the verbs `pause` and `resume`, with these help lines."""

    def pause_noun(name: Name, reason: Reason = None) -> None:
        call_db(lambda db: calls(db).pause(name, reason))
        text = f"{singular} {name} is paused; resume it: treadle {noun.name} resume {name}"
        print_done(text, name=name, status="paused")

    def resume_noun(name: Name) -> None:
        changed = call_db(lambda db: calls(db).resume(name))
        text = f"{singular} {name} {'was not paused' if changed is False else 'is resumed'}"
        facts = {"changed": changed} if isinstance(changed, bool) else {}
        print_done(text, name=name, status=active, **facts)

    line = f"treadle {noun.name} pause {example}"
    pause_noun.__doc__ = f'{pause}\n\n\b\nExample:\n  {line} --reason "provider is down"\n'
    resume_noun.__doc__ = f"{resume}\n\n\b\nExample:\n  treadle {noun.name} resume {example}\n"
    noun.verb("pause")(pause_noun)
    noun.verb("resume")(resume_noun)


def add_delete(
    noun: Noun,
    singular: str,
    delete: Callable[[Database, str], Awaitable[object]],
    *,
    text: str,
    example: str,
) -> None:
    """Add the verb `delete`, which asks first; `text` is its help line."""

    def delete_noun(name: Name, yes: Yes = False) -> None:
        confirm(f"delete {singular} {name}", yes=yes)
        call_db(lambda db: delete(db, name))
        print_done(f"{singular} {name} is deleted", name=name, status="deleted")

    line = f"treadle {noun.name} delete {example} --yes"
    delete_noun.__doc__ = f"{text}\n\n\b\nExample:\n  {line}\n"
    noun.verb("delete")(delete_noun)
