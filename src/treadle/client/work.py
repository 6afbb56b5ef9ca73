"""The client of the work API, for dispatchers and for agents.

    with WorkQueue("http://127.0.0.1:8420") as queue:
        item = queue.work_add("code_review", "Review PR #3", {"pr": 3}, "steve-w")
        queue.work_dispatch(item["id"], "steve-w")

Every call is retried if the response is lost: an idempotency key prevents a second effect.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import quote

from treadle.client.errors import ClientError, Conflict, Forbidden, InvalidRequest, NotFound
from treadle.client.http import Transport

Item = dict[str, Any]
# Returns notes about the result, or None.
Work = Callable[[Item], str | None]

STALE = timedelta(minutes=30)
PAGE = 200
IN_FLIGHT = "request-in-flight"
# The maximum size of notes on the server.
NOTES_CHARACTERS = 20_000


class WorkQueue:
    """A client of the work API; threads may share it."""

    def __init__(self, base_url: str, token: str | None = None, **options: Any) -> None:
        self._sender = Transport(base_url, token, **options)

    # The dispatcher

    def work_add(
        self,
        type: str,
        description: str,
        payload: Mapping[str, Any] | None = None,
        agent: str | None = None,
        project_id: str | None = None,
        *,
        priority: int = 3,
        created_by: str | None = None,
    ) -> Item:
        """Create a work item; it is queued until it is dispatched."""
        item = {
            "type": type,
            "description": description,
            "payload": dict(payload or {}),
            "assigned_agent": agent,
            "project_id": project_id,
            "priority": priority,
            "created_by": created_by,
        }
        return self._change("POST", "/work", item)

    def work_dispatch(self, work_item_id: str, agent: str, *, pick_up: bool = True) -> Item:
        """Assign an item to an agent and mark it as in progress, unless `pick_up` is false.

        An item that is in progress is not in the list of dispatched items: the agent gets it with
        `work_mine(..., resume=True)`.
        """
        item = self.work_update(work_item_id, "dispatched", assigned_agent=agent)
        return self.work_update(work_item_id, "in_progress") if pick_up else item

    def work_update(
        self,
        work_item_id: str,
        status: str | None = None,
        outcome: str | None = None,
        notes: str | None = None,
        *,
        assigned_agent: str | None = None,
        unless_updated_since: str | None = None,
    ) -> Item:
        """Update an item; `allowed` of a Conflict lists what its state allows."""
        change = {
            "status": status,
            "outcome": outcome,
            "notes": notes,
            "assigned_agent": assigned_agent,
            "unless_updated_since": unless_updated_since,
        }
        return self._change("PATCH", _path(work_item_id), change)

    def work_cancel(self, work_item_id: str) -> None:
        """Cancel an item that has not been started."""
        self._sender.request("DELETE", _path(work_item_id), again=True)

    def work_list(
        self,
        status: str | None = None,
        agent: str | None = None,
        project_id: str | None = None,
        *,
        since: datetime | str | None = None,
    ) -> list[Item]:
        """List the items that match, most urgent first; with `since`, oldest first."""
        return list(self._pages(status, agent, project_id, since))

    def work_get(self, work_item_id: str) -> Item:
        """Get one item with its dispatch_history and changes."""
        found: Item = self._sender.request("GET", _path(work_item_id), again=True)
        return found

    def work_stale_check(self, older_than: timedelta = STALE) -> list[Item]:
        """Block items that are in progress without a recent update; return the blocked items.

        The reaper does the same. An item that is updated meanwhile is skipped. If the server
        rejects the update of an item, the error is raised after the other items were handled.
        """
        blocked: list[Item] = []
        refused: ClientError | None = None
        for item in self.work_list("in_progress"):
            updated_at = datetime.fromisoformat(item["updated_at"])
            if datetime.now(UTC) - updated_at <= older_than:
                continue
            notes = _noted(item["notes"], f"timed out: no update since {item['updated_at']}")
            try:
                changed = self.work_update(
                    item["id"], "blocked", notes=notes, unless_updated_since=item["updated_at"]
                )
            except Conflict:
                continue
            except (Forbidden, InvalidRequest, NotFound) as error:
                refused = refused or error
                continue
            blocked.append(changed)
        if refused is not None:
            raise refused
        return blocked

    # Agents

    def work_mine(self, agent: str, work: Work, *, resume: bool = False) -> int:
        """Call `work` for each item dispatched to an agent; return the number of items.

        The return value of `work` becomes the notes. If it raises, the item fails and the error is
        raised. An item that has changed since it was listed (started, cancelled, reassigned) is
        skipped. If the item was reassigned while `work` ran, a Conflict is raised.

        With `resume`, items that the agent has in progress come first: its program was restarted,
        or `work_dispatch` picked them up for it. Use it in every round of a loop, with one program
        per agent.
        """
        done = 0
        for item in self.work_list("in_progress", agent) if resume else []:
            self._do(item, work)
            done += 1
        for item in self.work_list("dispatched", agent):
            try:
                taken = self.work_update(
                    item["id"], "in_progress", unless_updated_since=item["updated_at"]
                )
            except Conflict:
                continue
            self._do(taken, work)
            done += 1
        return done

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, item: Item, work: Work) -> None:
        try:
            notes = work(item)
        except Exception as error:
            self._end(item, "failed", _fitting(f"{type(error).__name__}: {error}"[:2000]))
            raise
        self._end(item, "completed", None if notes is None else _fitting(str(notes)) or None)

    def _end(self, item: Item, status: str, notes: str | None) -> Item:
        """Report the outcome; an item that was blocked as stale meanwhile is resumed first.

        The update names the agent, so that it fails if the item was reassigned.
        """
        agent = item["assigned_agent"]
        outcome = "success" if status == "completed" else "failed"

        def end() -> Item:
            return self.work_update(item["id"], status, outcome, notes, assigned_agent=agent)

        try:
            return end()
        except Conflict as error:
            if error.allowed != ["in_progress"]:
                raise
        found = self.work_get(item["id"])
        if found["assigned_agent"] != agent:
            raise Conflict(f"work item {item['id']} was assigned to {found['assigned_agent']}")
        self.work_update(item["id"], "in_progress", unless_updated_since=found["updated_at"])
        return end()

    def _pages(
        self,
        status: str | None,
        agent: str | None,
        project_id: str | None,
        since: datetime | str | None,
    ) -> Iterator[Item]:
        asked = {
            "status": status,
            "agent": agent,
            "project_id": project_id,
            # A time without a zone is local time, as usual in Python.
            "since": since.astimezone(UTC).isoformat() if isinstance(since, datetime) else since,
            "limit": PAGE,
        }
        params = {name: value for name, value in asked.items() if value is not None}
        while True:
            found: list[Item] = self._sender.request("GET", "/work", params=params, again=True)
            yield from found
            # Do not compare with PAGE: a page of large payloads has fewer items.
            if not found:
                return
            params["cursor"] = found[-1]["id"]

    def _change(self, method: str, path: str, given: Mapping[str, Any]) -> Item:
        body = {name: value for name, value in given.items() if value is not None}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        for _ in range(10):
            try:
                return dict(
                    self._sender.request(method, path, json=body, headers=headers, again=True)
                )
            except Conflict as error:
                # The response was lost, and the first request is still being processed.
                if error.code != IN_FLIGHT:
                    raise
                time.sleep(error.retry_after or 1)
        raise Conflict(f"{method} {path}: the first request is still being processed")


def _path(work_item_id: str) -> str:
    if not work_item_id:
        raise InvalidRequest("the id of the work item is empty")
    return f"/work/{quote(work_item_id, safe='')}"


def _fitting(text: str) -> str:
    """Return notes that the server accepts: a rejected report would repeat the work."""
    kept = text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:NOTES_CHARACTERS]
    return kept.encode(errors="replace").decode()


def _noted(old: str | None, note: str) -> str:
    """Append a note to notes; the beginning is removed if the result is too long."""
    if not old:
        return note
    room = NOTES_CHARACTERS - len(f"\n{note}")
    if len(old) > room:
        old = "…" + old[1 - room :]
    return f"{old}\n{note}"
