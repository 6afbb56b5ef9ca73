"""What a page takes for granted: rows, types, and names from other programs."""

from collections.abc import Callable

from tests.drivers.commands import APP, ask
from tests.drivers.page_runs import Page

PRELUDES: dict[str, Callable[[Page], None]] = {}


def prelude(name: str) -> Callable[[Callable[[Page], None]], Callable[[Page], None]]:
    """Run this before the blocks of a page."""

    def keep(function: Callable[[Page], None]) -> Callable[[Page], None]:
        PRELUDES[name] = function
        return function

    return keep


@prelude("README.md")
def _(page: Page) -> None:
    page.sql("create table pull_requests (id bigint)")


@prelude("docs/how-to/prioritise-work.md")
def _(page: Page) -> None:
    _app(page)
    page.python(
        "from datetime import UTC, datetime\n@app.task()\nasync def invoice(id: int) -> None: ...",
        "prelude",
    )
    _types(page, "invoice")
    page.sql("select treadle.define_queue('mail')")
    page.ids.bind("0d730e0a", _enqueue(page, "invoice"))
    page.ids.bind("9f3a21c4", _enqueue(page, "invoice"))


@prelude("docs/how-to/set-budgets.md")
def _(page: Page) -> None:
    page.sql("select treadle.register_agent('coder-1')")
    page.sql("select treadle.define_type('research')")
    page.sql("select treadle.define_project('acme')")
    for shown in ("9f3a21c4", "21c49f3a"):
        page.ids.bind(shown, ask(page.conn)[1])
    _app(page)
    page.python("model = polish = None", "prelude")


@prelude("docs/how-to/retry-and-cancel-in-bulk.md")
def _(page: Page) -> None:
    _types(page, "send", queue="mail")


@prelude("docs/how-to/limit-concurrency-and-depth.md")
def _(page: Page) -> None:
    _types(page, "crawl", "send", queue="mail")
    _app(page)


@prelude("docs/how-to/react-to-events.md")
def _(page: Page) -> None:
    _types(page, "crawl", "summarise")
    _app(page)
    (page.folder / "report.json").write_text(
        '{"name": "report", "tasks": [{"name": "r", "type": "summarise", "spec": {}}]}'
    )


@prelude("docs/how-to/schedule-work.md")
def _(page: Page) -> None:
    _types(page, "crawl", "report")
    _app(page)
    (page.folder / "weekly.json").write_text(
        '{"name": "weekly", "tasks": [{"name": "r", "type": "report", "spec": {}}]}'
    )


def _types(page: Page, *types: str, queue: str | None = None) -> None:
    """Types, and a queue, that the programs of the reader have made known."""
    for each in types:
        page.sql("select treadle.define_type(%s)", each)
    if queue is not None:
        page.sql("select treadle.define_queue(%s)", queue)


def _app(page: Page) -> None:
    """The application that a page calls `app`."""
    page.python("from treadle import Context, Treadle\napp = Treadle()", "prelude")


def _enqueue(page: Page, kind: str, spec: str = "{}") -> str:
    return str(page.value("select treadle.enqueue_task('default', %s, %s)", kind, spec))


@prelude("docs/tutorial/tour.md")
def _(page: Page) -> None:
    _types(page, "report", "review", "greet", "read")


@prelude("docs/how-to/write-a-task.md")
def _(page: Page) -> None:
    page.sql("create table ledger (order_id bigint, amount bigint)")


@prelude("docs/how-to/wait-for-people-and-events.md")
def _(page: Page) -> None:
    _types(page, "release", "announce")


@prelude("docs/how-to/handle-dead-letters.md")
def _(page: Page) -> None:
    _types(page, "resize", "send_receipt", "summarise")
    page.sql("select treadle.define_queue('slow')")
    (page.folder / "fixed.json").write_text('{"email": "ada@example.org"}')
    _app(page)
    busy = "APIStatusError: Error code: 529 - overloaded"
    letters = [_dead(page, "summarise", busy) for _ in range(5)]
    page.ids.bind("5e22a148", letters[0])
    _types(page, "crawl")
    page.sql("update treadle.task_types set breaker = '{\"threshold\": 0}'")
    crawls = ["0c31d7aa", "4be92f60", "77e10c3d", "b81c5d02", "c92d6e13", "da3e7f24"]
    for shown in [*crawls, "eb4f8035", "fc509146"]:
        page.ids.bind(shown, _dead(page, "crawl", "TimeoutError: no answer in 30 s", "timeout"))
    page.ids.bind("97b8456f", _dead(page, "resize", "ValueError: cannot read 'icon.gif'"))
    _dead(page, "resize", "ValueError: cannot read 'a.gif'")
    page.ids.bind("a2f84806", _dead(page, "send_receipt", "'ada' is no address", "refused"))
    page.sql(
        "select treadle.resolve_dead_letters(array[%s::uuid], 'retry', p_actor => 'ada',"
        " p_note => 'provider is busy')",
        letters[0],
    )
    page.names["task_id"] = page.ids.known["a2f84806"]


def _dead(page: Page, kind: str, error: str, failure_class: str = "error") -> str:
    """A dead letter of this type."""
    task = _enqueue(page, kind)
    token = _claim(page)
    page.sql(
        "select treadle.fail_tasks("
        "array[%s::uuid], array[%s::uuid], array[%s], array[%s], array['fail'])",
        task,
        token,
        failure_class,
        error,
    )
    return task


def _claim(page: Page) -> str:
    """The token of the next task."""
    page.sql("select treadle.register_agent('coder-1')")
    return str(page.value("select claim_token from treadle.claim_tasks('coder-1')"))


@prelude("docs/how-to/validate-outputs.md")
def _(page: Page) -> None:
    task = _enqueue(page, "code")
    page.ids.bind("1ade2b35", task)
    page.variables |= {"id": task, "token": _claim(page)}


@prelude("docs/explanation/durable-work.md")
def _(page: Page) -> None:
    _app(page)
    page.python("@app.task()\nasync def read(topic: str) -> str: ...\nask_model = read", "prelude")


@prelude("docs/how-to/limit-rates-and-breakers.md")
def _(page: Page) -> None:
    _app(page)
    _types(page, "deploy")


@prelude("docs/how-to/send-events-elsewhere.md")
def _(page: Page) -> None:
    page.env |= {
        "SLACK_URL": "https://hooks.example.org/x",
        "REDIS_URL": "redis://redis.example.org",
    }
    page.shell("treadle webhooks create ops https://example.org/hook --kind task.dead_lettered", "")


@prelude("docs/how-to/keep-or-drop-finished-tasks.md")
def _(page: Page) -> None:
    page.sql("select treadle.define_queue('mail')")


@prelude("docs/how-to/run-workers.md")
def _(page: Page) -> None:
    page.sql("select treadle.define_queue('mail')")
    (page.folder / "shop.py").write_text(APP)


@prelude("docs/how-to/dba-queries.md")
def _(page: Page) -> None:
    page.sql("select treadle.define_queue('night'), treadle.register_agent('coder-1')")
    _dead(page, "code", "ValueError: bad gateway")
    page.ids.bind("82a2d2ae", _enqueue(page, "code"))


@prelude("docs/how-to/find-out-why-a-task-waits.md")
def _(page: Page) -> None:
    page.sql(
        "select treadle.create_dag(%s)",
        """{"name": "site", "tasks": [
          {"name": "plan", "type": "code", "spec": {}, "priority": 20, "title": "fix the login"},
          {"name": "research", "type": "research", "spec": {}},
          {"name": "build", "type": "code", "spec": {}, "after": ["research"]},
          {"name": "ship", "type": "deploy", "spec": {}, "after": ["plan", "research", "build"]}
        ]}""",
    )
    page.sql("select treadle.register_agent('coder-1')")
    page.sql("select treadle.complete_task(id, claim_token) from treadle.claim_tasks('coder-1')")
    page.sql(
        "select treadle.enqueue_task("
        "'default', 'code', '{}', 20, p_options => '{\"title\": \"fix the login\"}')"
    )
    page.sql("select treadle.pause_queue('default', 'provider is down', p_actor => 'ada')")
    ship = page.value("select id from treadle.dag_tasks where name = 'ship'")
    page.ids.bind("d31f70c2", str(ship))
    page.ids.bind("ae735bc9", str(ship))


@prelude("docs/how-to/write-an-agent.md")
def _(page: Page) -> None:
    page.python(
        """
from contextlib import nullcontext
from types import SimpleNamespace

client = SimpleNamespace(keep_alive=lambda _: nullcontext(SimpleNamespace(check=lambda: None)))
task, steps = SimpleNamespace(task_id="1"), [lambda: None]
""",
        "prelude",
    )
