"""Whether a caller may see or touch a task: by the row, never by what the request says of it."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any
from uuid import UUID

from treadle.api.access import Principal
from treadle.api.v1.reach import check_places, is_bound, reaches
from treadle.db.reader import Reader

Reason = dict[str, Any]
# Why a task waits, where others may not be named.
_UNNAMED = {
    "dependencies": "waiting for {open} of {all} dependencies",
    "key_full": "concurrency key {key} is full: {held} of {max}",
}


async def check_seen(who: Principal, views: Reader, task_id: UUID) -> None:
    """Refuse a task that is not there, or that is out of reach of the token."""
    check_places(who, [await views.place_of(task_id)])


async def check_touched(who: Principal, views: Reader, task_id: UUID) -> None:
    """The same before a call that says itself when there is no such task."""
    if is_bound(who):
        await check_seen(who, views, task_id)


async def reasons_seen(who: Principal, views: Reader, reasons: list[Reason]) -> list[Reason]:
    """Why a task waits, without the particulars of others that are out of reach of the token."""
    if not is_bound(who):
        return reasons
    named = (task["id"] for reason in reasons for task in _tasks(reason))
    seen = await _seen(who, views, named)
    return [_narrowed(reason, seen) for reason in reasons]


async def hide_names(who: Principal, views: Reader, nodes: list[dict[str, Any]]) -> None:
    """Take away the names of what tasks of a DAG depend on out of reach of the token."""
    if is_bound(who):
        edges = [edge for node in nodes for edge in node["depends_on"]]
        seen = await _seen(who, views, (edge["id"] for edge in edges))
        for edge in edges:
            if edge["id"] not in seen:
                edge["name"] = None


async def _seen(who: Principal, views: Reader, ids: Iterable[str]) -> set[str]:
    """Those of these tasks that are in reach."""
    places = await views.places_by_id([UUID(each) for each in set(ids)])
    return {str(task) for task, place in places.items() if reaches(who, place)}


def _narrowed(reason: Reason, seen: AbstractSet[str]) -> Reason:
    tasks = [task for task in _tasks(reason) if task["id"] in seen]
    if len(tasks) == len(_tasks(reason)):
        return reason
    detail, unnamed = {**reason["detail"], "tasks": tasks}, _UNNAMED.get(reason["reason"])
    return {
        **reason,
        "sentence": reason["sentence"] if unnamed is None else unnamed.format(**detail),
        "detail": detail,
    }


def _tasks(reason: Reason) -> list[dict[str, Any]]:
    """The other tasks that a reason names."""
    return (reason["detail"] or {}).get("tasks") or []
