"""How far a token reaches that is for some queues, an agent or a project.

To their tasks, by the rows, and to nothing that is shared. `treadle.api.v1.plans` looks at what a
request would make.
"""

from collections.abc import Iterable

from treadle.api.access import Principal
from treadle.db.calls import Place
from treadle.errors import Forbidden

# The task is there, and nobody else has it: of one that is gone nobody can say whose it was.
OF_AGENT = """
    exists (
      select from treadle.task_places as places
      where places.id = task_id and (places.agent is null or places.agent = {})
    )
"""


def queues_of(who: Principal) -> list[str] | None:
    """The queues that lists are narrowed to; None is all of them."""
    return None if who.queues is None else sorted(who.queues)


def within(who: Principal) -> dict[str, object]:
    """What lists are narrowed to whose rows have a queue and a task_id."""
    return {
        "queue = any({})": queues_of(who),
        "task_id in (select places.id from treadle.task_places as places where project_id = {})": (
            who.project_id
        ),
        OF_AGENT: who.agent,
    }


def whole_dags(who: Principal, dag_id: str) -> dict[str, object]:
    """What lists are narrowed to that have a DAG in a column: those with no task elsewhere."""
    elsewhere = f"""
        select from treadle.dag_tasks as nodes
        inner join treadle.task_places as places on nodes.id = places.id
        where nodes.dag_id = {dag_id}
    """
    return {
        f"not exists ({elsewhere} and places.queue <> all({{}}))": queues_of(who),
        f"not exists ({elsewhere} and places.project_id is distinct from {{}})": who.project_id,
        f"not exists ({elsewhere} and places.agent <> {{}})": who.agent,
    }


def is_bound(who: Principal) -> bool:
    """Whether a token is for some queues, for an agent, or for a project."""
    return who.agent is not None or _is_partial(who)


def check_everywhere(who: Principal) -> None:
    """Refuse a token for some queues or a project what concerns all of them."""
    if _is_partial(who):
        raise Forbidden(f"{who.name} is not for what others use too")


def check_whole_queues(who: Principal) -> None:
    """Refuse a token for an agent or a project what does not tell whose tasks it is about."""
    if who.agent is not None or who.project_id is not None:
        raise Forbidden(f"{who.name} is not for all tasks of a queue")


def reaches(who: Principal, place: Place) -> bool:
    """Whether what is there is the token's business; tasks that no agent has are every agent's."""
    return (
        who.sees(place.queue)
        and who.project_id in (None, place.project_id)
        and (who.agent is None or place.agent in (None, who.agent))
    )


def check_places(who: Principal, places: Iterable[Place]) -> None:
    """Refuse tasks that are elsewhere, and do not say where."""
    if not all(reaches(who, place) for place in places):
        raise Forbidden(
            f"this is out of reach of {who.name}",
            hint="The token is for the tasks of some queues, of an agent or of a project.",
        )


def _is_partial(who: Principal) -> bool:
    return who.queues is not None or who.project_id is not None
