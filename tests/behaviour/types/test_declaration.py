"""A function becomes the handler of a task type by a decorator, with or without parentheses."""

from collections.abc import Callable
from typing import Any

import pytest

from treadle import Treadle
from treadle.errors import ConfigurationError
from treadle.producer.task import Task


async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello {name}"


DECORATED: dict[str, tuple[Callable[[Treadle], Task], str]] = {
    "without parentheses": (lambda app: app.task(greet), "greet"),
    "with empty parentheses": (lambda app: app.task()(greet), "greet"),
    "with a name": (lambda app: app.task("welcome")(greet), "welcome"),
    "with a name as a keyword": (lambda app: app.task(name="welcome")(greet), "welcome"),
    "with settings": (lambda app: app.task(max_attempts=5)(greet), "greet"),
}


@pytest.mark.parametrize("case", DECORATED)
async def test_the_decorator_works(case: str) -> None:
    decorate, name = DECORATED[case]
    app = Treadle("postgresql://nowhere")

    task = decorate(app)

    assert task.name == name
    assert app.registry.names() == [name]
    assert task.definition.settings["description"] == "Greet a person."
    assert await task(name="Ada") == "Hello Ada"


def test_something_that_is_not_a_handler_is_refused() -> None:
    app = Treadle("postgresql://nowhere")
    task: Any = app.task

    with pytest.raises(ConfigurationError, match="neither a handler nor the name") as raised:
        task(5)

    assert "@app.task" in str(raised.value.hint)
    assert app.registry.names() == []
