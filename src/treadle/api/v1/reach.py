"""How far a token reaches that is for some queues or a project: their tasks, and nothing shared."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from treadle.api.access import Principal
from treadle.db.pages import Place
from treadle.errors import Forbidden


def queues_of(who: Principal) -> list[str] | None:
    """The queues that lists are narrowed to; None is all of them."""
    return None if who.queues is None else sorted(who.queues)


def is_bound(who: Principal) -> bool:
    """Whether a token is for some queues, or for a project."""
    return who.queues is not None or who.project is not None


def check_everywhere(who: Principal) -> None:
    """Refuse such a token what concerns all queues and projects."""
    if is_bound(who):
        raise Forbidden(f"{who.name} is not for what others use too")


def check_places(who: Principal, places: Iterable[Place]) -> None:
    """Refuse what has tasks in other queues or of other projects than the token is for."""
    for queue, project in places:
        who.check_queue(queue)
        who.check_project(project)


def check_template(who: Principal, template: Mapping[str, Any]) -> None:
    """Refuse a template of a task or a DAG for queues that the token is not for."""
    # A template may say its project in more than one way.
    who.check_project(None)
    if who.queues is None:
        return
    for queue in _queues_in(template):
        who.check_queue(queue)


def _queues_in(template: Mapping[str, Any]) -> Iterator[str]:
    """Where the tasks of a template would go; one that cannot be told is in no queue."""
    dag = template.get("dag")
    if isinstance(dag, Mapping):
        defaults = dag.get("defaults")
        usual = defaults.get("queue") if isinstance(defaults, Mapping) else None
        tasks = dag.get("tasks")
        for task in tasks if isinstance(tasks, list) else ():
            yield _queue_of(task, usual or "default")
    if template.get("task") is not None:
        yield _queue_of(template["task"], "default")


def _queue_of(task: object, usual: object) -> str:
    given = task.get("queue", usual) if isinstance(task, Mapping) else None
    return given if isinstance(given, str) else ""
