"""What a request would make: whether its caller may, and what it refers to.

New tasks come as they are sent to SQL, which lets an option of null win over a default.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from treadle.api.access import Principal
from treadle.api.v1.reach import check_places, is_bound, reaches
from treadle.db.calls import Place
from treadle.db.reader import Reader
from treadle.errors import Conflict, Forbidden, InvalidArgument
from treadle.models import Enqueued

Options = Mapping[str, Any]


def check_options(who: Principal, task: Options) -> None:
    """Refuse a new task elsewhere, and options that change what others use; its project is named.

    `define` is for workers, which have the handler: it would make queues and types.
    """
    if "define" in task:
        raise InvalidArgument(
            "define is not an option here",
            hint="Make the type first: PUT /v1/types/{name}",
            argument="define",
        )
    _check_queue(who, task)
    if task.get("concurrency_limit") is not None and (
        not who.may("operate") or who.queues is not None or who.project_id is not None
    ):
        raise Forbidden(
            f"{who.name} may not set concurrency_limit, which all tasks of the key share",
            hint="It needs the scope operate and a token for all queues and projects: leave it "
            "out, or have it set with PUT /v1/concurrency-keys/{key}",
            argument="concurrency_limit",
        )
    if who.project_id is not None:
        if task.get("project_id") is not None:
            raise Forbidden(
                f"{who.name} may name a project by its name only", argument="project_id"
            )
        if task.get("project") is None or task["project"] != who.project:
            raise Forbidden(
                f"{who.name} may not use the project {task.get('project')}", argument="project"
            )


def own_name(who: Principal) -> dict[str, Any]:
    """What the project of a token is called, as the default of new tasks."""
    return {} if who.project_id is None else {"project": who.project}


def own_project(who: Principal, task: Options) -> dict[str, Any]:
    """Checked options with the id of the token's project in the place of its name.

    By its name the task could land in another project that was called so in the meantime.
    """
    if who.project_id is None:
        return dict(task)
    named = {name: value for name, value in task.items() if name != "project"}
    return {**named, "project_id": str(who.project_id)}


def check_move(who: Principal, changes: Options) -> None:
    """Refuse changes that move a task to a queue that the token is not for."""
    if "queue" in changes:
        _check_queue(who, changes)


async def check_references(
    who: Principal, views: Reader, tasks: Sequence[Options], by: UUID | None = None
) -> None:
    """Refuse tasks that refer to others out of reach: they would get to see their outputs.

    The task `by` may name others of its DAG, and refer to its own subtasks wherever they are.
    """
    if not is_bound(who):
        return
    named = {ref for task in tasks for ref in _references(task)}
    ids = {ref: found for ref in named if (found := _uuid(ref)) is not None}
    names = named - ids.keys() - {str(task.get("name")) for task in tasks}
    if ids or (names and by is not None):
        check_places(who, await views.referred_places(list(ids.values()), list(names), by))


async def check_found(who: Principal, views: Reader, made: Sequence[Enqueued]) -> None:
    """Do not tell of tasks elsewhere that have the key of a new one."""
    found = [each.id for each in made if not each.created]
    if found and is_bound(who):
        check_key(who, await views.task_places(found))


def check_key(who: Principal, places: Sequence[Place]) -> None:
    """Refuse a key that something elsewhere has; who works on it by now does not matter."""
    if not all(reaches(who, place._replace(agent=None)) for place in places):
        raise Conflict(
            "this key is taken by something that is out of reach of the token",
            hint="Take another key: keys are shared by all queues.",
        )


def tasks_of(template: Options) -> list[Options]:
    """The tasks of a template of a task or a DAG, with the defaults; what is no task is empty."""
    task, dag = template.get("task"), template.get("dag")
    alone = [] if task is None else [_object(task)]
    return [*alone, *with_defaults(_object(dag).get("tasks"), _object(dag).get("defaults"))]


def with_defaults(tasks: object, defaults: object) -> list[Options]:
    """The tasks of a DAG as SQL will see them."""
    given = tasks if isinstance(tasks, list) else []
    return [{**_object(defaults), **_object(task)} for task in given]


def check_template(who: Principal, template: Options) -> None:
    """Refuse what is there and makes tasks elsewhere."""
    check_places(who, [Place(_queue(task), None, None) for task in tasks_of(template)])


def _check_queue(who: Principal, options: Options) -> None:
    who.check_queue(_queue(options))


def _queue(options: Options) -> str:
    given = options.get("queue")
    return "default" if given is None else str(given)


def _references(task: Options) -> Iterator[str]:
    """What it names in `after`, `inputs` and `parent_id`: tasks and artifacts, names and ids."""
    after, inputs = task.get("after"), task.get("inputs")
    for edge in after if isinstance(after, list) else ():
        yield str(edge.get("task") if isinstance(edge, Mapping) else edge)
    for value in _object(inputs).values():
        kind, _, rest = str(value).partition(":")
        if kind in ("task", "artifact"):
            yield rest.partition(":")[0]
    if task.get("parent_id") is not None:
        yield str(task["parent_id"])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _object(value: object) -> Options:
    return value if isinstance(value, Mapping) else {}
