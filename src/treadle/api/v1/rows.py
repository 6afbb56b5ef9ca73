"""Whether a caller may see or touch a task: by the row, never by what the request says of it."""

from uuid import UUID

from treadle.api.access import Principal
from treadle.api.v1.reach import check_places, is_bound
from treadle.db.reader import Reader


async def check_seen(who: Principal, views: Reader, task_id: UUID) -> None:
    """Refuse a task that is not there, or that is out of reach of the token."""
    check_places(who, [await views.place_of(task_id)])


async def check_touched(who: Principal, views: Reader, task_id: UUID) -> None:
    """The same before a call that says itself when there is no such task."""
    if is_bound(who):
        await check_seen(who, views, task_id)
