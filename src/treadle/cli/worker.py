"""`treadle worker`: import an application and run its handlers.

Other processes import their application or function with `load_app` and `load_function`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treadle.cli import common
from treadle.cli.common import Process
from treadle.cli.options import with_options
from treadle.errors import ConfigurationError, TreadleError

if TYPE_CHECKING:
    from treadle.app import Treadle
    from treadle.services.service import Service
    from treadle.worker.loop import WorkerSettings


@common.command(json=False)
@with_options(process=common.process_options)
def worker(
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="Application to run.")],
    queues: Annotated[
        str | None, typer.Option(metavar="A,B", help="Queues to serve; default: default.")
    ] = None,
    slots: Annotated[
        int | None, typer.Option(metavar="N", help="Handlers that run at once; default: 10.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of this worker; default: a new one.")
    ] = None,
    capabilities: Annotated[
        str | None, typer.Option(metavar="A,B", help="Capabilities that tasks may require.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Model that the worker can use; repeatable."),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="USD", help="Budget of the worker in dollars; needs --agent."),
    ] = None,
    drain_timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time for handlers to end on SIGTERM; default: 30."),
    ] = None,
    heartbeat: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Heartbeat interval, a third of the lease; default: 30."
        ),
    ] = None,
    claim_ttl: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time for a claimed task to start; default: 60."),
    ] = None,
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="Exit when there is nothing left to claim.")
    ] = False,
    with_services: Annotated[
        bool,
        typer.Option("--with-services", help="Also run reaper, promoter and scheduler here."),
    ] = False,
    *,
    process: Process,
) -> None:
    """Claim tasks and run their handlers.

    \b
    Examples:
      treadle worker my_module:app --queues default,mail --slots 20
      treadle worker my_module:app --with-services

    The first SIGTERM or Ctrl-C drains the worker: it claims no more tasks, lets handlers finish
    within the drain timeout and gives back the rest. The second one cancels them at once.
    """
    overrides = _overrides(
        queues=queues,
        slots=slots,
        agent_id=agent,
        capabilities=capabilities,
        models=model or None,
        budget_usd=budget,
        drain_s=drain_timeout,
        heartbeat_s=heartbeat,
        claim_ttl_s=claim_ttl,
    )
    overrides["signals"] = True
    overrides["until_empty"] = until_empty
    if process.health_file is not None:
        overrides["health_file"] = process.health_file

    found = load_app(app)
    with common.database(_own_url(found)) as url:
        found.use(url)
        common.probe(url, within_s=process.settings.connect_timeout_s)
        common.run(_work(found, overrides, _services() if with_services else []), fast=True)
    exit_with_threads()


def exit_with_threads() -> None:
    """Exit even if abandoned handlers still run in threads, for which Python would wait."""
    import os
    import threading
    import time

    import structlog

    threads = [each for each in threading.enumerate() if each.name == "AnyIO worker thread"]
    until = time.monotonic() + 0.2
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if left := sum(thread.is_alive() for thread in threads):
        structlog.get_logger(__name__).warning("worker.handlers_left", handlers=left)
        sys.stderr.flush()
        os._exit(0)


def _services() -> list[type[Service]]:
    """The services of a small installation; a scheduler only if its extra is installed."""
    from importlib.util import find_spec

    from treadle.services.promoter import Promoter
    from treadle.services.reaper import Reaper
    from treadle.services.scheduler import Scheduler

    return [Reaper, Promoter, *([Scheduler] if find_spec("cronsim") else [])]


async def _work(app: Treadle, overrides: WorkerSettings, services: Sequence[type[Service]]) -> None:
    """Run the worker, and services until the worker has stopped."""
    import anyio

    async with app, AsyncExitStack() as stack:
        running = [await stack.enter_async_context(app.service(kind)) for kind in services]
        async with anyio.create_task_group() as group:
            for service in running:
                group.start_soon(service.run)
            await app.run_worker(**overrides)
            for service in running:
                service.stop()


def _overrides(**given: object) -> WorkerSettings:
    """The options of the command line, validated like every setting."""
    from treadle.settings import load_settings

    checked = load_settings(**given)
    found = {name: getattr(checked, name) for name, value in given.items() if value is not None}
    if "agent_id" in found:
        found["agent"] = found.pop("agent_id")
    if found.get("queues") == []:
        raise ConfigurationError("--queues is empty", hint="For example: --queues default,mail")
    return found  # type: ignore[return-value]


def _own_url(app: Treadle) -> str | None:
    """The database URL of the application, from its code or the settings."""
    try:
        return app.url
    except ConfigurationError:
        return None


def load_app(path: str) -> Treadle:
    """The application at a path such as `module:app`."""
    from treadle.app import Treadle

    module_name, _, attribute = path.partition(":")
    attribute = attribute or "app"
    module = _module(module_name, _fix(path))
    found = _attribute(module, attribute)
    if found is None:
        raise ConfigurationError(
            f"module {module_name} has no {attribute!r}", hint=_apps_hint(module_name, module)
        )
    if not isinstance(found, Treadle):
        raise ConfigurationError(
            f"{module_name}:{attribute} is not a Treadle application but a {type(found).__name__}",
            hint=_apps_hint(module_name, module),
        )
    if not found.registry.names():
        raise ConfigurationError(
            f"{module_name}:{attribute} has no tasks",
            hint="Add one: @app.task above a function.",
        )
    return found


def load_function(path: str) -> Callable[..., Any]:
    """The function at a path such as `module:function`."""
    module_name, _, attribute = path.partition(":")
    hint = "Write it as module:function, for example: my_package.actions:act"
    if not attribute:
        raise ConfigurationError(f"{path!r} does not name a function", hint=hint)
    module = _module(module_name, hint)
    found = _attribute(module, attribute)
    if found is None:
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigurationError(
            f"module {module_name} has no {attribute!r}", hint=common.did_you_mean(attribute, known)
        )
    if not callable(found):
        raise ConfigurationError(
            f"{path} is not a function but a {type(found).__name__}", hint=hint
        )
    function: Callable[..., Any] = found
    return function


def _module(name: str, hint: str) -> Any:
    named = all(part.isidentifier() for part in name.split("."))
    if not named or name.endswith(".py"):
        raise ConfigurationError(f"{name!r} is not the name of a module", hint=hint)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return _import(name)


def _attribute(module: Any, path: str) -> Any:
    found = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise ConfigurationError(
            f"there is no module {error.name!r} in {Path.cwd()} or among the installed packages",
            hint=common.did_you_mean(name, _modules_here())
            or "Start the worker in the folder of the module.",
        ) from None
    except TreadleError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> ConfigurationError:
    """The error for a module that exists but fails on import, with its line."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename != __file__ and "importlib" not in frame.filename
    ]
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    if isinstance(error, SyntaxError):
        where = f" at {error.filename}:{error.lineno}"
    return ConfigurationError(
        f"module {name} cannot be imported: {type(error).__name__}: {error}{where}",
        hint="TREADLE_DEBUG=1 shows the whole traceback.",
    )


def _apps_hint(module_name: str, module: Any) -> str:
    from treadle.app import Treadle

    apps = [name for name, value in vars(module).items() if isinstance(value, Treadle)]
    if apps:
        return f"Did you mean {' or '.join(f'{module_name}:{name}' for name in apps)}?"
    return f"{module_name} has no Treadle application; add one: app = Treadle()"


def _modules_here() -> list[str]:
    names = []
    for path in Path.cwd().iterdir():
        if path.suffix == ".py":
            names.append(path.stem)
        elif path.is_dir() and path.name.isidentifier():
            names += [f"{path.name}.{inner.stem}" for inner in path.glob("*.py")]
    return names


def _fix(path: str) -> str:
    file, _, attribute = path.partition(":")
    if file.endswith(".py"):
        dotted = ".".join(Path(file).with_suffix("").parts)
        return f"Did you mean {dotted}:{attribute or 'app'}?"
    return "Write it as module:app, for example: treadle worker my_package.tasks:app"
