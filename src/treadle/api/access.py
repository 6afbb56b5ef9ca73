"""Access: what the caller of a request may see, change and create. Only this module decides it.

Every route names the scope that it needs and the kind of object that it acts on:

    async def show(task_id: UUID, access: Annotated[Access, requires("read", on=TASK)]) -> Response:
        return json_response(await access.db.tasks.get(task_id))

The dependency checks the object before the route runs. Where the object is in the body, `access.db`
raises until the route has passed it to a method of `Access` that checks it. So a route that forgets
its check does not work, and an application with a route that names no kind does not start.

A token may be restricted to queues, an agent or a project. It then sees their tasks, which is
decided by the rows and never by the request (see `treadle.db.reach`), and nothing that is shared.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import structlog
from fastapi import Depends, Request
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute

from treadle.api.why import redact, tasks_named
from treadle.app import Treadle
from treadle.db.access import Noun
from treadle.db.claims import Pair
from treadle.db.database import Database
from treadle.db.reach import Reach
from treadle.errors import Conflict, Forbidden, InvalidArgument, Unauthenticated, UnknownSchedule
from treadle.models import Enqueued
from treadle.settings import Settings

Scope = Literal["read", "enqueue", "work", "operate", "admin"]

# Keys in the scope of a request: the caller, and whether its token is still valid.
KEY = "treadle.principal"
TOKEN_LEASE = "treadle.token_lease"
NO_TOKEN = "this request needs a token"
HOW = "Send Authorization: Bearer TOKEN; create one: treadle tokens create"


@dataclass(frozen=True)
class Principal:
    """The caller of a request."""

    name: str
    scopes: frozenset[str]
    # What the token is restricted to; None means no restriction.
    queues: frozenset[str] | None = None
    agent: str | None = None
    project_id: UUID | None = None
    # The name of the project when the token was looked up; another project may have it later.
    project: str | None = None
    # The id of the token; None for a caller that needs none.
    token: str | None = None

    @cached_property
    def is_restricted(self) -> bool:
        """Whether the token is restricted to queues, an agent or a project."""
        return (self.queues, self.agent, self.project_id) != (None, None, None)

    @cached_property
    def view(self) -> Reach:
        """The tasks that the caller sees."""
        queues = None if self.queues is None else tuple(sorted(self.queues))
        return Reach(queues, self.project_id, self.agent)

    def may(self, scope: Scope) -> bool:
        """Whether the caller has a scope: admin includes all of them, operate includes read."""
        return (
            scope in self.scopes
            or "admin" in self.scopes
            or (scope == "read" and "operate" in self.scopes)
        )

    def sees(self, queue: str | None) -> bool:
        """Whether a list may show what is in this queue."""
        return self.queues is None or queue in self.queues

    def check_scope(self, scope: Scope) -> None:
        if not self.may(scope):
            raise Forbidden(f"{self.name} lacks the scope {scope}", scope=scope)

    def check_queue(self, queue: str) -> None:
        """Reject a queue that the token does not cover."""
        if not self.sees(queue):
            raise Forbidden(f"{self.name} may not use the queue {queue}", queue=queue)

    def check_agent(self, agent: str | None) -> None:
        """Reject acting for another agent."""
        if self.agent is not None and agent != self.agent:
            raise Forbidden(f"{self.name} may not act for {agent}", agent=agent)

    def check_project(self, project_id: UUID | None) -> None:
        """Reject a project that the token does not cover; None stands for several projects."""
        if self.project_id is not None and project_id != self.project_id:
            raise Forbidden(
                f"{self.name} may not use the project {project_id}",
                project_id=None if project_id is None else str(project_id),
            )

    def check_author(self, created_by: str | None) -> None:
        """Reject another creator than the caller, unless the caller is an operator."""
        if created_by not in (None, self.name, self.agent) and not self.may("operate"):
            raise Forbidden(
                f"{self.name} may not create work on behalf of {created_by}",
                hint="Leave created_by out, or use a token with the scope operate.",
                argument="created_by",
            )

    def check_shared(self) -> None:
        """Reject tokens restricted to queues or a project: the object affects all of them."""
        if self.queues is not None or self.project_id is not None:
            raise Forbidden(f"{self.name} may not use objects that all queues and projects share")

    def check_visible(self, visible: bool) -> None:
        """Reject an object that the token cannot see, without revealing where it is."""
        if not visible:
            raise Forbidden(
                f"this is not visible to {self.name}",
                hint="The token is restricted to the tasks of some queues, an agent or a project.",
            )

    def check_whole_queues(self) -> None:
        """Reject tokens restricted to an agent or a project: the object affects a whole queue."""
        if self.agent is not None or self.project_id is not None:
            raise Forbidden(f"{self.name} may not use objects that affect all tasks of a queue")


LOCAL = Principal("local", frozenset({"admin"}))


async def principal(request: Request) -> Principal:
    """The caller that the middleware found; without the middleware every request is rejected."""
    found = request.scope.get(KEY)
    if not isinstance(found, Principal):
        raise Unauthenticated(NO_TOKEN, hint=HOW)
    return found


async def check_token_valid(request: Request) -> None:
    """Reject a request whose token was revoked while it waited."""
    lease = request.scope.get(TOKEN_LEASE)
    if lease is not None:
        await lease.check()


# Tasks are checked as they are sent to SQL, where an option of null overrides a default.
Options = Mapping[str, Any]


async def checked_tasks(
    caller: Principal, db: Database, tasks: Sequence[Options], by: UUID | None = None
) -> list[dict[str, Any]]:
    """Check that the caller may create all tasks; return them as SQL gets them.

    The project of the token is the default. The task `by` may name others of its DAG, and refer to
    its own subtasks in any queue.
    """
    named = [{**_own_name(caller), **task} for task in tasks]
    for task in named:
        _check_options(caller, task)
    await check_references(caller, db, named, by)
    return [_own_project(caller, task) for task in named]


async def checked_dag(caller: Principal, db: Database, plan: dict[str, Any]) -> dict[str, Any]:
    """Check that the caller may create all tasks of a DAG; return the plan as SQL gets it."""
    if caller.project_id is not None:
        if plan.get("project_id") is not None:
            raise Forbidden(
                f"{caller.name} must name its project with `project`, not by id",
                argument="project_id",
            )
        plan = {**plan, "defaults": {**_own_name(caller), **(plan.get("defaults") or {})}}
    await checked_tasks(caller, db, with_defaults(plan["tasks"], plan.get("defaults")))
    if caller.project_id is not None:
        plan["tasks"] = [_own_project(caller, task) for task in plan["tasks"]]
        plan["defaults"] = _own_project(caller, plan["defaults"])
    return plan


async def check_references(
    caller: Principal, db: Database, tasks: Sequence[Options], by: UUID | None = None
) -> None:
    """Reject references to tasks that are not visible: the new tasks would get their outputs."""
    if not caller.is_restricted:
        return
    named = {ref for task in tasks for ref in _references(task)}
    ids = {ref: found for ref in named if (found := _uuid(ref)) is not None}
    names = named - ids.keys() - {str(task.get("name")) for task in tasks}
    if ids or (names and by is not None):
        caller.check_visible(
            await db.access.sees_references(caller.view, list(ids.values()), list(names), by)
        )


def tasks_of(template: Options) -> list[Options]:
    """The tasks of a template, with the defaults; an entry that is not a task is empty."""
    task, dag = template.get("task"), template.get("dag")
    alone = [] if task is None else [_object(task)]
    return [*alone, *with_defaults(_object(dag).get("tasks"), _object(dag).get("defaults"))]


def with_defaults(tasks: object, defaults: object) -> list[Options]:
    """The tasks of a DAG as SQL sees them: an option of null overrides a default."""
    given = tasks if isinstance(tasks, list) else []
    return [{**_object(defaults), **_object(task)} for task in given]


def queue_of(options: Options) -> str:
    given = options.get("queue")
    return "default" if given is None else str(given)


def _check_options(caller: Principal, task: Options) -> None:
    """Reject a task that the token does not cover, and options that change shared objects.

    `define` would create queues and types; it is for workers, which have the handler.
    """
    if "define" in task:
        raise InvalidArgument(
            "define is not an option here",
            hint="Create the type first: PUT /v1/types/{name}",
            argument="define",
        )
    caller.check_queue(queue_of(task))
    caller.check_author(task.get("created_by"))
    if task.get("concurrency_limit") is not None and (
        not caller.may("operate") or caller.queues is not None or caller.project_id is not None
    ):
        raise Forbidden(
            f"{caller.name} may not set concurrency_limit, which all tasks of the key share",
            hint="Leave it out. PUT /v1/concurrency-keys/{key} sets it, with the scope operate and "
            "an unrestricted token.",
            argument="concurrency_limit",
        )
    if caller.project_id is not None:
        if task.get("project_id") is not None:
            raise Forbidden(
                f"{caller.name} must name its project with `project`, not by id",
                argument="project_id",
            )
        if task.get("project") is None or task["project"] != caller.project:
            raise Forbidden(
                f"{caller.name} may not use the project {task.get('project')}", argument="project"
            )


def _own_name(caller: Principal) -> dict[str, Any]:
    return {} if caller.project_id is None else {"project": caller.project}


def _own_project(caller: Principal, task: Options) -> dict[str, Any]:
    """Checked options with the id of the token's project in place of its name.

    Another project may have taken the name since the token was looked up.
    """
    if caller.project_id is None:
        return dict(task)
    named = {name: value for name, value in task.items() if name != "project"}
    return {**named, "project_id": str(caller.project_id)}


def _references(task: Options) -> Iterator[str]:
    """Tasks and artifacts that a task names in `after`, `inputs` and `parent_id`: names and ids."""
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


log = structlog.get_logger(__name__)

ACCESS = "treadle.access"
# Routes that need no token, with the middleware's list of paths in `treadle.api.auth`.
PUBLIC_ROUTES = frozenset(
    {
        *("/health", "/healthz", "/readyz", "/status"),
        *("/", "/docs", "/docs/{name}", "/problems", "/problems/{code}"),
    }
)


class Access:
    """An authorized request: its caller, and the database once the object is checked."""

    def __init__(self, caller: Principal, app: Treadle) -> None:
        self.caller = caller
        self._app = app
        self._checked = False
        # The row of a restricted token, for a second check in the transaction of a write.
        self._row: tuple[Noun, UUID] | None = None

    @property
    def view(self) -> Reach:
        return self.caller.view

    @property
    def db(self) -> Database:
        return self.app.db

    @property
    def app(self) -> Treadle:
        if not self._checked:
            raise RuntimeError("this route has not checked the object that it acts on")
        return self._app

    def allow(self) -> None:
        """Open the database: what the route acts on is checked."""
        self._checked = True

    async def check_row(self, noun: Noun, row_id: UUID) -> None:
        """Reject a row that does not exist or that the token does not see."""
        if self.caller.is_restricted:
            self.caller.check_visible(await self._app.db.access.sees(self.view, noun, row_id))
            self._row = (noun, row_id)
        self.allow()

    async def check_rows(self, noun: Noun, ids: Sequence[UUID]) -> None:
        """Reject rows that the token does not see; rows that do not exist are left out."""
        if self.caller.is_restricted and ids:
            self.caller.check_visible(await self._app.db.access.sees_all(self.view, noun, ids))
        self.allow()

    @property
    def is_rechecked(self) -> bool:
        """Whether a write has to check the row again; see `recheck`."""
        return self._row is not None

    async def recheck(self, db: Database) -> None:
        """Lock the row of the path, and check it again, in the transaction of the write."""
        if self._row is not None:
            self.caller.check_visible(await db.access.lock(self.view, *self._row))

    async def claims(self, claims: Sequence[Pair]) -> Database:
        """The database, for claims of agents, queues and projects that the token is for."""
        if self.caller.is_restricted:
            self.caller.check_visible(await self._app.db.access.sees_claims(self.view, claims))
        self.allow()
        return self.db

    async def claim(self, task_id: UUID, token: UUID) -> Database:
        """The database, for one claim."""
        return await self.claims([(task_id, token)])

    def claims_for(self, agent: str, queues: Iterable[str]) -> Database:
        """The database, for an agent that claims tasks of these queues, of all projects."""
        self.caller.check_agent(agent)
        for queue in queues:
            self.caller.check_queue(queue)
        self.caller.check_project(None)
        self.allow()
        return self.db

    def own_project(self, asked: UUID | None) -> UUID | None:
        """The project of the request; a restricted token may name only its own, the default."""
        if asked is not None:
            self.caller.check_project(asked)
        return self.caller.project_id or asked

    def own_agent(self, asked: str | None) -> str | None:
        """The agent of the request; a restricted token may name only its own, the default."""
        if asked is not None:
            self.caller.check_agent(asked)
        return self.caller.agent or asked

    def check_agent_url(self, agent_url: str) -> None:
        """Reject acting for another agent; a slash at the end of a URL does not count."""
        if not self._is_agent(agent_url):
            self.caller.check_agent(agent_url)

    async def check_archived(self, task_id: UUID) -> None:
        """Reject an archived task of another queue."""
        if self.caller.is_restricted:
            row = await self._app.db.retention.archived(str(task_id))
            self.caller.check_visible(self.caller.sees(row["queue"]))
        self.allow()

    async def check_agent(self, agent_id: str) -> None:
        """Reject acting for another agent, or for one that serves other queues."""
        caller = self.caller
        caller.check_agent(agent_id)
        if caller.project_id is not None:
            caller.check_shared()
        if caller.queues is not None:
            queues = await self._app.db.agents.queues(agent_id)
            # An agent without queues does not serve those of the token.
            if queues is not None and not (queues and caller.queues.issuperset(queues)):
                raise Forbidden(f"{caller.name} may not act for {agent_id}, which has other queues")
        self.allow()

    async def check_schedule(self, name: str, *, may_create: bool) -> None:
        """Reject a schedule that creates tasks of other queues, or of any project."""
        if self.caller.is_restricted:
            try:
                row = await self._app.db.schedules.get(name)
            except UnknownSchedule:
                if not may_create:
                    raise
                self.caller.check_project(None)
            else:
                queues = {queue_of(task) for task in tasks_of(row["template"])}
                self.caller.check_visible(
                    self.caller.project_id is None and all(map(self.caller.sees, queues))
                )
        self.allow()

    async def check_project(self, project_id: UUID) -> None:
        """Reject a project other than the token's, or without a visible task."""
        if self.caller.is_restricted:
            projects = self._app.db.projects
            self.caller.check_project((await projects.get(project_id))["id"])
            if not await projects.page(self.view, only=project_id, limit=1):
                raise Forbidden(
                    f"{self.caller.name} has no access to tasks of the project {project_id}"
                )
        self.allow()

    async def check_work_item(self, item_id: UUID) -> None:
        """Reject a work item that the token does not see."""
        if self.caller.is_restricted:
            await self._app.db.work.get(item_id)
        await self.check_row("task", item_id)

    async def check_harness_task(self, task_id: UUID) -> None:
        """Reject a task that is not of the harness, or that is for another agent."""
        self.caller.check_visible(self._is_agent(await self._app.db.harness.agent(task_id)))
        self.allow()

    def check_filter(self, queue: str | None) -> None:
        """Reject a filter that finds tasks of other queues, agents or projects."""
        if self.caller.queues is not None and queue is None:
            raise Forbidden(f"{self.caller.name} needs a queue in the filter")
        if queue is not None:
            self.caller.check_queue(queue)
        self.caller.check_whole_queues()
        self.allow()

    def check_move(self, changes: Options) -> None:
        """Reject changes that move a task to a queue that the token does not cover."""
        if "queue" in changes:
            self.caller.check_queue(queue_of(changes))

    async def new(self, tasks: Sequence[Options], by: UUID | None = None) -> list[dict[str, Any]]:
        """The tasks as SQL gets them, once the caller may create them; see `checked_tasks`."""
        checked = await checked_tasks(self.caller, self._app.db, tasks, by)
        self.allow()
        return checked

    async def new_dag(self, plan: dict[str, Any]) -> dict[str, Any]:
        """A plan of a DAG as SQL gets it, once the caller may create all of its tasks."""
        checked = await checked_dag(self.caller, self._app.db, plan)
        self.allow()
        return checked

    async def check_references(self, tasks: Sequence[Options], by: UUID) -> None:
        """Reject references of a running task to tasks that it may not see."""
        await check_references(self.caller, self._app.db, tasks, by)

    async def check_found(self, db: Database, made: Sequence[Enqueued]) -> None:
        """Reject a key of a task that is not visible, without naming the task."""
        await self.check_found_tasks(db, [each.id for each in made if not each.created])

    async def check_found_tasks(
        self, db: Database, found: Sequence[UUID], by: UUID | None = None
    ) -> None:
        """Reject tasks that were found by their key and are not visible, without naming them.

        The task `by` may use its own subtasks.
        """
        if found and self.caller.is_restricted:
            view = self._any_agent()
            self._require_key(await db.access.sees_references(view, found, [], by))

    async def check_found_dag(self, db: Database, dag_id: UUID) -> None:
        """Reject a key of a DAG that is not visible, without naming the DAG."""
        if self.caller.is_restricted:
            self._require_key(await db.access.sees_dag(self._any_agent(), dag_id))

    async def redact_reasons(self, reasons: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Remove what a restricted token may not see from the reasons why a task waits."""
        if not self.caller.is_restricted:
            return reasons
        seen = await self._seen(task["id"] for reason in reasons for task in tasks_named(reason))
        return [redact(reason, seen) for reason in reasons]

    async def redact_names(self, nodes: list[dict[str, Any]]) -> None:
        """Remove the names of dependencies that the token does not see from tasks of a DAG."""
        if self.caller.is_restricted:
            edges = [edge for node in nodes for edge in node["depends_on"]]
            seen = await self._seen(edge["id"] for edge in edges)
            for edge in edges:
                if edge["id"] not in seen:
                    edge["name"] = None

    def _is_agent(self, agent_url: str) -> bool:
        return self.caller.agent is None or self.caller.agent.rstrip("/") == agent_url.rstrip("/")

    async def _seen(self, ids: Iterable[str]) -> set[str]:
        found = await self.db.access.seen(self.view, {UUID(each) for each in ids})
        return {str(each) for each in found}

    def _any_agent(self) -> Reach:
        """A view without the agent: a key is found regardless of the agent of its task."""
        return replace(self.view, agent=None)

    def _require_key(self, visible: bool) -> None:
        if not visible:
            raise Conflict(
                "this key belongs to an object that is not visible to the token",
                hint="Use another key: keys are shared by all queues.",
            )


CheckCaller = Callable[[Principal], None]
CheckObject = Callable[[Access, Request], Awaitable[None]]


@dataclass(frozen=True)
class Kind:
    """A kind of object that a route acts on, and the checks before the route runs."""

    name: str
    callers: tuple[CheckCaller, ...] = ()
    # Opens the database; without it the checks of the caller do.
    check: CheckObject | None = None

    async def __call__(self, access: Access, request: Request) -> None:
        for check in self.callers:
            check(access.caller)
        if self.check is None:
            access.allow()
        else:
            await self.check(access, request)


def _for_queue(name: str) -> CheckCaller:
    return lambda caller: caller.check_queue(name)


def _no_project(caller: Principal) -> None:
    caller.check_project(None)


def _row(noun: Noun, parameter: str) -> CheckObject:
    """A row that belongs to a task, by its id in the path."""

    async def check(access: Access, request: Request) -> None:
        row_id = _uuid(request.path_params[parameter])
        # FastAPI rejects an invalid UUID; the database stays closed.
        if row_id is not None:
            await access.check_row(noun, row_id)

    return check


async def _in_body(access: Access, request: Request) -> None:
    """The route checks what the body names, with a method of `Access`; until then it is closed."""


async def _queue_in_path(access: Access, request: Request) -> None:
    access.caller.check_queue(request.path_params["queue"])
    access.allow()


async def _archived(access: Access, request: Request) -> None:
    task_id = _uuid(request.path_params["task_id"])
    if task_id is not None:
        await access.check_archived(task_id)


async def _agent(access: Access, request: Request) -> None:
    await access.check_agent(request.path_params["agent_id"])


async def _schedule(access: Access, request: Request) -> None:
    await access.check_schedule(request.path_params["name"], may_create=request.method == "PUT")


async def _project(access: Access, request: Request) -> None:
    project_id = _uuid(request.path_params["project_id"])
    if project_id is not None:
        await access.check_project(project_id)


async def _work_item(access: Access, request: Request) -> None:
    item_id = _uuid(request.path_params["item_id"])
    if item_id is not None:
        await access.check_work_item(item_id)


async def _harness_task(access: Access, request: Request) -> None:
    task_id = _uuid(request.path_params["task_id"])
    if task_id is not None:
        await access.check_harness_task(task_id)


# Rows, by their id in the path.
TASK = Kind("task", check=_row("task", "task_id"))
DAG = Kind("DAG", check=_row("dag", "dag_id"))
LETTER = Kind("dead letter", check=_row("dead letter", "letter_id"))
WAIT = Kind("wait", check=_row("wait", "wait_id"))
ARTIFACT = Kind("artifact", check=_row("artifact", "artifact_id"))
ARCHIVED = Kind("archived task", (Principal.check_whole_queues,), _archived)
# What the body names: closed until `new` or `new_dag`, `claim`, `check_filter` or `check_rows`.
NEW = Kind("new tasks", check=_in_body)
CLAIM = Kind("claim", check=_in_body)
FILTER = Kind("filter", check=_in_body)
# A list that the database restricts to `access.view`.
LIST = Kind("list")
# One queue, all tasks of a queue, and lists whose rows do not name a project or an agent.
QUEUE = Kind("queue", check=_queue_in_path)
WHOLE_QUEUE = Kind("whole queue", (Principal.check_whole_queues,), _queue_in_path)
WHOLE_QUEUES = Kind("whole queues", (Principal.check_whole_queues,))
# Objects that belong to no single queue or project.
SHARED = Kind("shared", (Principal.check_shared,))
EVERYTHING = Kind("everything", (Principal.check_shared, Principal.check_whole_queues))
# To act for an agent, whose queues are all among the token's.
AGENT = Kind("agent", check=_agent)
# Schedules whose tasks are all for queues of the token.
SCHEDULE = Kind("schedule", check=_schedule)
SCHEDULES = Kind("schedules", (_no_project,))
# The project of the token, or one with a visible task.
PROJECT = Kind("project", check=_project)
# The queues of the protocols. Work items have projects, the others do not.
WORK = Kind("work items", (_for_queue("work"),))
WORK_ITEM = Kind("work item", (_for_queue("work"),), _work_item)
PUSH = Kind("queue push", (_for_queue("push"), _no_project))
HARNESS = Kind("queue harness", (_for_queue("harness"), _no_project))
HARNESS_TASK = Kind("harness task", HARNESS.callers, _harness_task)
WHOLE_HARNESS = Kind("whole queue harness", (_for_queue("harness"), Principal.check_whole_queues))
# What every token with the scope may see, and what needs no token; see `PUBLIC_ROUTES`.
OPEN = Kind("open")
PUBLIC = Kind("public")


class Needs(NamedTuple):
    """What a route needs."""

    scope: Scope | None
    kind: str


def requires(scope: Scope, *, on: Kind) -> Any:
    """A dependency that checks the scope of the caller and the object that the route acts on.

    Changes by operators are logged, whether or not the database records who made them.
    """
    return _dependency(scope, on)


def _dependency(scope: Scope | None, on: Kind) -> Any:
    audited = scope in ("operate", "admin")

    # It takes only the request: each dependency of a dependency would add to the cost.
    async def check(request: Request) -> Access:
        caller = await principal(request)
        if scope is not None:
            caller.check_scope(scope)
        if audited and request.method != "GET":
            log.info(
                "operation.requested", by=caller.name, method=request.method, path=request.url.path
            )
        access = Access(caller, request.app.state.treadle)
        await on(access, request)
        request.scope[ACCESS] = access
        return access

    check.needs = Needs(scope, on.name)  # type: ignore[attr-defined]
    checked: Callable[..., Any] = check
    return Depends(checked)


Public = Annotated[Access, _dependency(None, PUBLIC)]


def access_of(request: Request) -> Access:
    """The access that the dependency of the route has checked."""
    found: Access = request.scope[ACCESS]
    return found


def needs_of(routes: Sequence[BaseRoute]) -> Iterator[tuple[str, str, Needs | None]]:
    """Method, path and needs of every route; raises when a route names none, or more than one."""
    for route in iter_route_contexts(routes):
        path = str(route.path)
        found = [
            needs
            for each in route.dependant.dependencies
            if isinstance(needs := getattr(each.call, "needs", None), Needs)
        ]
        kinds = [each.kind for each in found]
        if path in PUBLIC_ROUTES:
            is_named = kinds in ([], [PUBLIC.name])
        else:
            is_named = len(kinds) == 1 and kinds != [PUBLIC.name]
        if not is_named:
            raise RuntimeError(
                f"the route {path} must have one parameter like:"
                ' access: Annotated[Access, requires("read", on=TASK)]'
            )
        for method in sorted(route.methods or {"GET"}):
            yield method, path, found[0] if found else None


async def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.treadle.settings
    return settings


Config = Annotated[Settings, Depends(_settings)]
