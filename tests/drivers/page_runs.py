"""A run of one page of the documentation: its blocks, in order, for real.

A page has one folder, one database and one namespace. Comments in a page, which readers do not see:

* `<!-- not run: REASON -->`   the block below cannot be run here; its commands are only parsed
* `<!-- rows vary -->`         of the output below only the names of the columns are compared
* `<!-- setup: COMMAND -->`    a command that the page takes for granted at this point;
  `bind ID 'select ...'` says which id of the run an id of the page stands for
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from tests.drivers import transcripts
from tests.drivers.commands import parse
from tests.drivers.pages import SHELLS, Block, commands, treadle_words
from tests.drivers.processes.programs import PROGRAM, Program
from treadle import Treadle
from treadle.cli import app as cli

# Commands that run until they are stopped.
LASTING = {
    "dev", "dispatcher", "harness", "notifier", "promoter", "pruner", "reaper", "scheduler",
    "server", "worker",
}  # fmt: skip
# Commands that only read.
READS = {"list", "show", "waits", "why"}
# Programs that a page may run here besides treadle.
PROGRAMS = {"cat", "curl", "echo", "psql", "pytest", "python"}
WITHIN_S = 60.0
COMMAND_S = 20
# An id by the characters that people type.
FIND_ID = """
select id::text
from (
  select id from treadle.tasks
  union all select id from treadle.dags
  union all select id from treadle.waits
  union all select id from treadle.dead_letters
  union all select id from treadle.artifacts
) as ids
where id::text like '%%' || %s
"""


@dataclass
class Page:
    """One page while it is run."""

    path: Path
    url: str
    folder: Path
    psql: str
    ids: transcripts.Ids = field(default_factory=transcripts.Ids)
    names: dict[str, Any] = field(default_factory=dict)
    # Of psql.
    variables: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    _sql_error: str | None = None
    _printed: str | None = None
    _apps: dict[int, Treadle] = field(default_factory=dict)
    _programs: list[Program] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.names["__name__"] = "page"
        self._loop = asyncio.Runner()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.conn = psycopg.connect(self.url, autocommit=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None and self._programs:
            printed = "".join(line for program in self._programs for line in program.lines)
            error.add_note(f"printed by programs:\n{printed[-4000:]}")
        for program in self._programs:
            program.__exit__()
        self._close_apps()
        self._loop.close()
        self.conn.close()
        self._forget_modules()

    def run(self, block: Block, after: Block | None) -> str | None:
        """Run one block in its own way; what is wrong with it, if anything."""
        try:
            self._run(block)
            if self._sql_error is not None:
                shown = after is not None and after.language == "text" and "ERROR:" in after.text
                assert shown, self._sql_error
        except (Exception, SystemExit) as error:
            return f"{block.place}: {type(error).__name__}: {error}"
        finally:
            self._sql_error = None
        return None

    def sql(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows that a page takes for granted."""
        cursor = self.conn.execute(query.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *values: object) -> Any:
        [(found,)] = self.sql(query, *values)
        return found

    def _run(self, block: Block) -> None:
        if block.language in SHELLS:
            for command, _ in commands(block.text):
                _parse(command)
        if block.not_run:
            self._printed = None
            return
        if block.language in {*SHELLS, "setup"}:
            for command, output in commands(block.text):
                self.shell(command, output)
            return
        match block.language:
            case "python":
                self._printed = self.python(self.ids.replace(block.text), block.place)
            case "sql":
                self._printed = self._psql(self.ids.replace(block.text))
            case "text":
                self._compare(block)
            case "json":
                json.loads(block.text)
            case "yaml":
                self._file(block.text)
                assert yaml.safe_load(block.text), "empty document"
            case "toml":
                tomllib.loads(block.text)
            case "mermaid":
                assert re.match(r"(flowchart|stateDiagram-v2|sequenceDiagram|graph)\b", block.text)
            case _:
                raise AssertionError(f"no way to run a block of {block.language or 'no language'}")

    def _compare(self, block: Block) -> None:
        assert self._printed is not None, "the block before it has no output to compare"
        shown = block.text
        if block.comment.startswith("rows vary"):
            head = shown.split("\n", 1)[0]
            assert re.sub(r"\s", "", head) in re.sub(r"[ \t]", "", self._printed), self._printed
            return
        assert transcripts.matches(shown, self._printed, self.ids), _both(shown, self._printed)
        self._resolve()

    def python(self, text: str, place: str) -> str:
        """What a block prints; one that begins with the name of a file becomes that module."""
        name = self._file(text)
        printed = io.StringIO()
        names = self.names
        code = compile(text, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        # Models find the types of their fields by module.
        waits = bool(code.co_flags & inspect.CO_COROUTINE)
        with contextlib.redirect_stdout(printed):
            if (
                name is not None
                and not waits
                and "anyio.run(" not in text
                and "\nimport pytest" not in text
            ):
                sys.modules.pop(name, None)
                module = __import__(name)
                names.update(vars(module) | {"__name__": "page"})
            elif waits:
                self._loop.run(eval(code, names))
            elif "anyio.run(" not in text and "\nimport pytest" not in text:
                exec(code, names)
        self._apps |= {id(each): each for each in names.values() if isinstance(each, Treadle)}
        return printed.getvalue()

    def _file(self, text: str) -> str | None:
        """Write a block that begins with the name of a file; the name of the module."""
        found = re.match(r"# ((\w+)\.(?:py|yaml|json))\n", text)
        if found is None:
            return None
        (self.folder / found[1]).write_text(text)
        return found[2]

    def _psql(self, text: str) -> str:
        done = subprocess.run(
            [self.psql, self.url, "-X", "-q", "-P", "footer=off", "-v", "SHOW_CONTEXT=never"]
            + [f"--set={name}={value}" for name, value in self.variables.items()],
            input=text, capture_output=True, text=True, cwd=self.folder, timeout=WITHIN_S,
        )  # fmt: skip
        if "ERROR:" in done.stderr:
            self._sql_error = done.stderr
        return done.stdout + done.stderr

    def shell(self, command: str, shown: str) -> None:
        """Run a command as a person would, and compare what it prints."""
        command = self.ids.replace(command).replace(":8420", f":{self.port}")
        if found := re.match(r"export (\w+)=(.*)", command):
            if found[1] != "TREADLE_DATABASE_URL":
                self.env[found[1]] = shlex.split(found[2])[0]
            return
        words = shlex.split(command, comments=True)
        if words[0] == "bind":
            self.ids.bind(words[1], str(self.value(words[2])))
            return
        plain = not re.search(r"[|&;<>]", re.sub(r"'[^']*'|\"[^\"]*\"", "", command))
        if words[0] == "treadle" and words[1] in LASTING and "--until-empty" not in words:
            self._start([word for word in words[1:] if word != "&"], shown)
            return
        assert words[0] in {*PROGRAMS, "treadle"}, f"{words[0]} is not run here: mark the block"
        fails = bool(re.search(r"^error:", shown, re.MULTILINE))
        # What a worker does meanwhile may take a moment: look again, as a person would.
        again = shown and bool(READS & set(words[1:4]))
        deadline = time.monotonic() + COMMAND_S / 2
        while True:
            if words[0] == "treadle" and plain:
                code, printed = self._in_process(words[1:])
            else:
                code, printed = self._subprocess(command)
            fits = not shown or transcripts.matches(shown, printed, self.ids)
            if fits or not (again and self._programs) or time.monotonic() > deadline:
                break
        assert bool(code) == fails, f"$ {command}\nexit code {code}\n{printed}"
        assert fits, f"$ {command}\n{_both(shown, printed)}"
        self._resolve()

    def _in_process(self, words: list[str]) -> tuple[int, str]:
        # Its own copy of the application: pools belong to one event loop.
        kept = self._forget_modules()
        env = {
            **self.env,
            "COLUMNS": "110",
            "TTY_COMPATIBLE": "1",
            "NO_COLOR": "1",
            "TERM": "xterm",
        }
        before = signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(COMMAND_S)
        try:
            done = CliRunner().invoke(cli, words, env=env)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
            self._forget_modules()
            sys.modules.update(kept)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def _environment(self) -> dict[str, str]:
        bin_folder = str(Path(sys.executable).parent)
        return {
            **os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "COLUMNS": "110",
            "NO_COLOR": "1", "TTY_COMPATIBLE": "1", "TREADLE_LOG_FORMAT": "console", **self.env,
        }  # fmt: skip

    def _subprocess(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command], env=self._environment(), cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WITHIN_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout

    def _start(self, words: list[str], shown: str) -> None:
        """Start a command that lasts, and wait until it has printed what the page shows."""
        shown = shown or ("worker.started" if words[0] in {"dev", "worker"} else "")
        self._stop(words[0])
        if words[0] == "server" and "--port" not in words:
            words = [*words, "--port", str(self.port)]
        program = Program(*words, env=self._environment(), cwd=self.folder, program=PROGRAM)
        self._programs.append(program)
        deadline = time.monotonic() + WITHIN_S
        while not transcripts.matches(shown, "".join(program.lines), self.ids, whole=False):
            assert time.monotonic() < deadline, _both(shown, "".join(program.lines))
            assert program.process.poll() is None, _both(shown, "".join(program.lines))
            time.sleep(0.02)
        while words[0] == "server" and not _listens(self.port):
            assert time.monotonic() < deadline, "".join(program.lines)
            time.sleep(0.02)

    def _stop(self, noun: str) -> None:
        """Stop a program that is started again."""
        for program in [each for each in self._programs if noun in str(each.process.args)]:
            program.__exit__()
            self._programs.remove(program)

    def _resolve(self) -> None:
        """Find the whole ids of which only the last characters were printed."""
        for shown, found in list(self.ids.known.items()):
            if len(found) < 36 and (rows := self.sql(FIND_ID, found)):
                self.ids.bind(shown, rows[0][0])

    def _close_apps(self) -> None:
        for app in self._apps.values():
            self._loop.run(app.close())

    def _forget_modules(self) -> dict[str, Any]:
        own = {
            name: module
            for name, module in sys.modules.items()
            if (getattr(module, "__file__", None) or "").startswith(f"{self.folder}/")
        }
        for name in own:
            del sys.modules[name]
        return own


def _too_long(*_: object) -> None:
    raise TimeoutError(f"the command did not end within {COMMAND_S} s")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _both(shown: str, printed: str) -> str:
    return f"the page shows:\n{shown}\n\nit printed:\n{transcripts.plain(printed)}"


def _parse(command: str) -> None:
    """Refuse a command of treadle that the command line does not know."""
    for words in treadle_words(command):
        problem = parse(words)
        assert problem is None, f"{command}: {problem}"
