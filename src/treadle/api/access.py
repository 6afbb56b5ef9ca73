"""Access: who calls, and what that caller may see, touch and create.

A server on loopback trusts every caller until there is a token; from then on, and on every other
address, each request but a health check needs one. The middleware in `treadle.api.auth` finds out
who calls. Routes name the scope that they need and check what they act on.

A token may be restricted to some queues, an agent or a project. It then reaches their tasks, which
is decided by the rows and never by what the request says of them, and nothing that is shared. New
tasks are checked as they are sent to SQL, which lets an option of null win over a default.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

import structlog
from fastapi import Depends, Request

from treadle.app import Treadle
from treadle.db.access import TaskLocation
from treadle.db.claims import Pair
from treadle.db.database import Database
from treadle.errors import Conflict, Forbidden, InvalidArgument, Unauthenticated
from treadle.models import Enqueued
from treadle.settings import Settings

log = structlog.get_logger(__name__)

Scope = Literal["read", "enqueue", "work", "operate", "admin"]

# Where the middleware stores the caller in the scope of a request.
KEY = "treadle.principal"
# Whether the token is still valid; see `check_token_valid`.
TOKEN_LEASE = "treadle.token_lease"
NO_TOKEN = "this needs a token"
HOW = "Send Authorization: Bearer TOKEN; make one with: treadle token create"
# The task is there, and nobody else has it: of one that is gone nobody can say whose it was.
OF_AGENT = """
    exists (
      select from treadle.task_places as places
      where places.id = task_id and (places.agent is null or places.agent = {})
    )
"""
Reason = dict[str, Any]
# Why a task waits, where others may not be named.
_UNNAMED = {
    "dependencies": "waiting for {open} of {all} dependencies",
    "key_full": "concurrency key {key} is full: {held} of {max}",
}
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Principal:
    """The caller of a request."""

    name: str
    scopes: frozenset[str]
    # What it may touch; None is everything.
    queues: frozenset[str] | None = None
    agent: str | None = None
    project_id: UUID | None = None
    # What the project is called; a name is for people, and may belong to another project soon.
    project: str | None = None
    # The id of its token; None for a caller that needs none.
    token: str | None = None

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope: admin has all of them, operate has read."""
        return (
            scope in self.scopes
            or "admin" in self.scopes
            or (scope == "read" and "operate" in self.scopes)
        )

    def check_scope(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"{self.name} lacks the scope {scope}", scope=scope)

    def sees(self, queue: str | None) -> bool:
        """Whether a list may show what is in this queue."""
        return self.queues is None or queue in self.queues

    def check_queue(self, queue: str) -> None:
        """Refuse a queue that the token is not for."""
        if not self.sees(queue):
            raise Forbidden(f"{self.name} may not use the queue {queue}", queue=queue)

    def check_agent(self, agent: str | None) -> None:
        """Refuse to act for an agent that the token does not belong to."""
        if self.agent is not None and agent != self.agent:
            raise Forbidden(f"{self.name} may not act for {agent}", agent=agent)

    def check_project(self, project_id: UUID | None) -> None:
        """Refuse work of a project that the token is not for."""
        if self.project_id is not None and project_id != self.project_id:
            raise Forbidden(
                f"{self.name} may not use the project {project_id}",
                project_id=None if project_id is None else str(project_id),
            )

    def check_author(self, created_by: str | None) -> None:
        """Refuse to create something in the name of another; only an operator may."""
        if created_by not in (None, self.name, self.agent) and not self.may("operate"):
            raise Forbidden(
                f"{self.name} may not create work in the name of {created_by}",
                hint="Leave created_by out, or use a token with the scope operate.",
                argument="created_by",
            )


LOCAL = Principal("local", frozenset({"admin"}))


async def principal(request: Request) -> Principal:
    """The caller that the middleware found; without the middleware every request is rejected."""
    found = request.scope.get(KEY)
    if not isinstance(found, Principal):
        raise Unauthenticated(NO_TOKEN, hint=HOW)
    return found


Caller = Annotated[Principal, Depends(principal)]


async def check_token_valid(request: Request) -> None:
    """Refuse a caller whose token has ended since it came; for routes that wait."""
    lease = request.scope.get(TOKEN_LEASE)
    if lease is not None:
        await lease.check()


def requires(scope: Scope) -> Any:
    """A dependency for routes: the caller has this scope. `dependencies=[requires("read")]`.

    What an operator changes is logged, whether or not the database keeps who it was.
    """
    audited = scope in ("operate", "admin")

    # Not by Who: each dependency of a dependency costs as much again.
    async def check(request: Request) -> Principal:
        who = await principal(request)
        who.check_scope(scope)
        if audited and request.method != "GET":
            log.info("http.operated", by=who.name, method=request.method, path=request.url.path)
        return who

    # For those who look whether a route was forgotten.
    check.scope = scope  # type: ignore[attr-defined]
    checked: Callable[..., Any] = check
    return Depends(checked)


def _app(request: Request) -> Treadle:
    app: Treadle = request.app.state.treadle
    return app


# Coroutines all of them: FastAPI would take plain functions to another thread.
async def _whole(request: Request) -> Treadle:
    return _app(request)


async def database(request: Request) -> Database:
    return _app(request).db


async def _settings(request: Request) -> Settings:
    return _app(request).settings


App = Annotated[Treadle, Depends(_whole)]
Db = Annotated[Database, Depends(database)]
Config = Annotated[Settings, Depends(_settings)]


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


def is_restricted(who: Principal) -> bool:
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


def can_see(who: Principal, place: TaskLocation) -> bool:
    """Whether what is there is the token's business; tasks that no agent has are every agent's."""
    return (
        who.sees(place.queue)
        and who.project_id in (None, place.project_id)
        and (who.agent is None or place.agent in (None, who.agent))
    )


def check_places(who: Principal, places: Iterable[TaskLocation]) -> None:
    """Refuse tasks that are elsewhere, and do not say where."""
    if not all(can_see(who, place) for place in places):
        raise Forbidden(
            f"this is out of reach of {who.name}",
            hint="The token is for the tasks of some queues, of an agent or of a project.",
        )


def _is_partial(who: Principal) -> bool:
    return who.queues is not None or who.project_id is not None


async def check_seen(who: Principal, db: Database, task_id: UUID) -> None:
    """Refuse a task that is not there, or that is out of reach of the token."""
    check_places(who, [await db.access.of_task(task_id)])


async def check_touched(who: Principal, db: Database, task_id: UUID) -> None:
    """The same before a call that says itself when there is no such task."""
    if is_restricted(who):
        await check_seen(who, db, task_id)


async def redact_reasons(who: Principal, db: Database, reasons: list[Reason]) -> list[Reason]:
    """Why a task waits, without the particulars of others that are out of reach of the token."""
    if not is_restricted(who):
        return reasons
    named = (task["id"] for reason in reasons for task in _tasks(reason))
    seen = await _seen(who, db, named)
    return [_narrowed(reason, seen) for reason in reasons]


async def redact_names(who: Principal, db: Database, nodes: list[dict[str, Any]]) -> None:
    """Take away the names of what tasks of a DAG depend on out of reach of the token."""
    if is_restricted(who):
        edges = [edge for node in nodes for edge in node["depends_on"]]
        seen = await _seen(who, db, (edge["id"] for edge in edges))
        for edge in edges:
            if edge["id"] not in seen:
                edge["name"] = None


async def _seen(who: Principal, db: Database, ids: Iterable[str]) -> set[str]:
    """Those of these tasks that are in reach."""
    places = await db.access.by_id([UUID(each) for each in set(ids)])
    return {str(task) for task, place in places.items() if can_see(who, place)}


def _narrowed(reason: Reason, seen: AbstractSet[str]) -> Reason:
    tasks = [task for task in _tasks(reason) if task["id"] in seen]
    if len(tasks) == len(_tasks(reason)):
        return reason
    unnamed = _UNNAMED.get(reason["reason"])
    if unnamed is None:
        # Its sentence and details may name the tasks too.
        hidden = {"sentence": f"waiting: {reason['reason']}", "detail": {"tasks": tasks}}
        return {**reason, **hidden}
    detail = {**reason["detail"], "tasks": tasks}
    return {**reason, "sentence": unnamed.format(**detail), "detail": detail}


def _tasks(reason: Reason) -> list[dict[str, Any]]:
    """The other tasks that a reason names."""
    return (reason["detail"] or {}).get("tasks") or []


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
    who.check_author(task.get("created_by"))
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
    who: Principal, db: Database, tasks: Sequence[Options], by: UUID | None = None
) -> None:
    """Refuse tasks that refer to others out of reach: they would get to see their outputs.

    The task `by` may name others of its DAG, and refer to its own subtasks wherever they are.
    """
    if not is_restricted(who):
        return
    named = {ref for task in tasks for ref in _references(task)}
    ids = {ref: found for ref in named if (found := _uuid(ref)) is not None}
    names = named - ids.keys() - {str(task.get("name")) for task in tasks}
    if ids or (names and by is not None):
        check_places(who, await db.access.of_references(list(ids.values()), list(names), by))


async def check_found(who: Principal, db: Database, made: Sequence[Enqueued]) -> None:
    """Do not tell of tasks elsewhere that have the key of a new one."""
    found = [each.id for each in made if not each.created]
    if found and is_restricted(who):
        check_key(who, await db.access.of_tasks(found))


def check_key(who: Principal, places: Sequence[TaskLocation]) -> None:
    """Refuse a key that something elsewhere has; who works on it by now does not matter."""
    if not all(can_see(who, place._replace(agent=None)) for place in places):
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
    check_places(who, [TaskLocation(_queue(task), None, None) for task in tasks_of(template)])


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


class Agent:
    """A caller with the scope `work`, and the calls that it makes."""

    def __init__(self, who: Principal, db: Database) -> None:
        self.who = who
        self.db = db

    async def on(self, task_id: UUID, token: UUID) -> Database:
        """The calls, for one claim that the caller may act on."""
        return await self.on_many([(task_id, token)])

    async def on_many(self, claims: Sequence[Pair]) -> Database:
        """The calls, for claims of agents, queues and projects that the token is for."""
        if is_restricted(self.who):
            check_places(self.who, await self.db.claims.locations(claims))
        return self.db


async def _claim_access(request: Request) -> Agent:
    who = await principal(request)
    who.check_scope("work")
    return Agent(who, _app(request).db)


# As `requires("work")` marks it.
_claim_access.scope = "work"  # type: ignore[attr-defined]
ClaimAccess = Annotated[Agent, Depends(_claim_access)]
