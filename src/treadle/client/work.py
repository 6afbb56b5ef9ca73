"""The work API for those who hand out work, and for the agents that do it.

    with WorkQueue("http://127.0.0.1:8420") as queue:
        item = queue.work_add("code_review", "Review PR #3", {"pr": 3}, "steve-w")
        queue.work_dispatch(item["id"], "steve-w")

Every call may be repeated after a lost answer: it carries a key by which the server knows it.
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
# What the server takes.
NOTES_BYTES = 20_000


class WorkQueue:
    """Talks to the work API; one for all threads of a program."""

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
        """Make a work item; it is queued until it is dispatched."""
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
        """Give an item to an agent and mark that it has it; without `pick_up` the agent does.

        An item that was picked up for an agent is for `work_mine(..., resume=True)`: among those
        that are dispatched the agent does not see it.
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
        """Change an item; a Conflict says in `allowed` what its state allows."""
        change = {
            "status": status,
            "outcome": outcome,
            "notes": notes,
            "assigned_agent": assigned_agent,
            "unless_updated_since": unless_updated_since,
        }
        return self._change("PATCH", _path(work_item_id), change)

    def work_cancel(self, work_item_id: str) -> None:
        """Cancel an item that nobody has begun."""
        self._sender.request("DELETE", _path(work_item_id), again=True)

    def work_list(
        self,
        status: str | None = None,
        agent: str | None = None,
        project_id: str | None = None,
        *,
        since: datetime | str | None = None,
    ) -> list[Item]:
        """All items that match, the most urgent first; with `since` the oldest first."""
        return list(self._pages(status, agent, project_id, since))

    def work_get(self, work_item_id: str) -> Item:
        """One item with its dispatch_history and changes."""
        found: Item = self._sender.request("GET", _path(work_item_id), again=True)
        return found

    def work_stale_check(self, older_than: timedelta = STALE) -> list[Item]:
        """Block items in progress without an update for so long; returns those it blocked.

        The reaper does the same by itself. An item that is updated meanwhile is left alone. One
        that the server lets nobody change does not keep it from the others: its error comes last.
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
        """Do what was dispatched to an agent, one item after the other; returns how many.

        What `work` returns becomes the notes. When it raises, the item has failed, and the error
        goes on to the caller. An item that somebody has changed since it was listed (taken,
        cancelled, given to another agent) is passed by. One that another agent has got by the time
        it is done is left to it, and that is a Conflict.
        With `resume` what the agent has in progress comes first: its program was restarted, or the
        dispatcher picked up for it, as `work_dispatch` does. A loop says so on every round, in one
        program per agent.
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
        """Give the connections back."""
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
        """Report the end; an item that was taken for stuck meanwhile is picked up again first.

        An item in progress is given to no other agent: to name the one that has it is a guard.
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
            raise Conflict(f"work item {item['id']} was given to {found['assigned_agent']}")
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
            # Without a zone it is the time of this host, as everywhere in Python.
            "since": since.astimezone(UTC).isoformat() if isinstance(since, datetime) else since,
            "limit": PAGE,
        }
        params = {name: value for name, value in asked.items() if value is not None}
        while True:
            found: list[Item] = self._sender.request("GET", "/work", params=params, again=True)
            yield from found
            # Not by the number: a page of large payloads has fewer.
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
                # The answer was lost while the first request is still under way.
                if error.code != IN_FLIGHT:
                    raise
                time.sleep(error.retry_after or 1)
        raise Conflict(f"{method} {path} has been under way for too long")


def _path(work_item_id: str) -> str:
    if not work_item_id:
        raise InvalidRequest("a work item has an id")
    return f"/work/{quote(work_item_id, safe='')}"


def _fitting(text: str) -> str:
    """What the server takes: work whose report is refused would be done again and again."""
    kept = text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace")
    return kept[:NOTES_BYTES].decode(errors="ignore")


def _noted(old: str | None, note: str) -> str:
    """Notes with another one below; the oldest give way where that is too long."""
    if not old:
        return note
    room = NOTES_BYTES - len(f"\n{note}".encode())
    kept = old.encode()
    if len(kept) > room:
        old = "…" + kept[len("…".encode()) - room :].decode(errors="ignore")
    return f"{old}\n{note}"
