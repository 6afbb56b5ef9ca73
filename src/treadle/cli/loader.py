"""Find what a process runs: `module:app` or `module:function` in the folder it is started from."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treadle.app import Treadle
from treadle.cli.common import did_you_mean
from treadle.errors import ConfigurationError, TreadleError


def load_app(path: str) -> Treadle:
    """The application object that a path names; each way to be wrong has its own error."""
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
            f"{module_name}:{attribute} is no Treadle application but of {type(found)}",
            hint=_apps_hint(module_name, module),
        )
    if not found.registry.names():
        raise ConfigurationError(
            f"{module_name}:{attribute} has no tasks",
            hint="Add one: @app.task() above a function.",
        )
    return found


def load_function(path: str) -> Callable[..., Any]:
    """The function that a path names."""
    module_name, _, attribute = path.partition(":")
    hint = "Write it as module:function, for example: my_package.actions:act"
    if not attribute:
        raise ConfigurationError(f"{path!r} names no function", hint=hint)
    module = _module(module_name, hint)
    found = _attribute(module, attribute)
    if found is None:
        known = [name for name, value in vars(module).items() if inspect.isfunction(value)]
        raise ConfigurationError(
            f"module {module_name} has no {attribute!r}", hint=did_you_mean(attribute, known)
        )
    if not callable(found):
        raise ConfigurationError(f"{path} is no function but of {type(found)}", hint=hint)
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
            hint=did_you_mean(name, _modules_here())
            or "Start the worker in the folder of the module.",
        ) from None
    except TreadleError:
        raise
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> ConfigurationError:
    """The module is there and cannot be imported: say on which line of it."""
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
