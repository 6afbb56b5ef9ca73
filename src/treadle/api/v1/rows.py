"""Whether a caller may see or touch a task: by the row, never by what the request says of it."""

from uuid import UUID

from treadle.api.access import Principal
from treadle.db.reader import Reader


async def check_seen(who: Principal, views: Reader, task_id: UUID) -> None:
    """Refuse a task that is not there, or of a queue or project that the token is not for."""
    queue, project = await views.place_of(task_id)
    who.check_queue(queue)
    who.check_project(project)


async def check_touched(who: Principal, views: Reader, task_id: UUID) -> None:
    """The same before a call that says itself when there is no such task."""
    if who.queues is not None or who.project is not None:
        await check_seen(who, views, task_id)
