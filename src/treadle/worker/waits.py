"""Waits: questions to people, approvals, and events from elsewhere."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from uuid import UUID

from pydantic import BaseModel, ValidationError

from treadle.errors import InvalidArgument, WaitExpired
from treadle.json import encode
from treadle.masking import excerpt_name
from treadle.models import Answer
from treadle.worker.journal import Journal, SuspendReason

OnExpiry = Literal["fail", "deny", "default", "escalate"]


class Expiry(TypedDict, total=False):
    """How long to wait, and what happens then: fail, deny, use the default, or escalate."""

    expires: float | timedelta | None
    on_expiry: OnExpiry
    default: Any


class AskOptions(Expiry, total=False):
    """The options of a question."""

    options: Sequence[str] | None
    schema: Mapping[str, Any] | type[BaseModel] | None
    approvers: int | None
    context: Any
    name: str | None


class EventOptions(Expiry, total=False):
    """The options of a wait for an event."""

    key: str
    name: str | None


class Question:
    """An open question, whose answer can be awaited later."""

    def __init__(
        self, waits: "Waits", name: str, wait: dict[str, Any], model: type[BaseModel] | None
    ) -> None:
        self._waits = waits
        self._wait = wait
        self._model = model
        self.name = name
        self.id: UUID | None = None

    def __repr__(self) -> str:
        return f"<Question {self.name}>"

    async def answer(self) -> Answer:
        """Return the answer; the task releases its claim until there is one."""
        answer = await self._waits.answer(self.name, self._wait)
        return _with_model(answer, self._model, self.name)

    async def open(self) -> None:
        """Store the question, so that people can answer it."""
        self.id = await self._waits.open(self.name, self._wait)


class Waits:
    """Opens waits for one attempt, and suspends the task on them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def question(self, question: str, options: AskOptions) -> Question:
        """Prepare a question; `open()` stores it."""
        self._journal.forbid_in_step("ask")
        if not question.strip():
            raise InvalidArgument("the question is empty", argument="question")
        schema, model = options.get("schema"), None
        if isinstance(schema, type):
            model, schema = schema, schema.model_json_schema()
        if schema is not None:
            schema = inline_references(schema)
        wait = {
            "question": question,
            "context": options.get("context"),
            "options": options.get("options"),
            "schema": schema,
            "approvers": options.get("approvers"),
            **_expiry(options),
        }
        name = self._journal.name("ask", options.get("name") or question)
        return Question(self, name, _without_none(wait), model)

    async def event(self, event: str, options: EventOptions) -> Any:
        """Return the payload of an event; the task releases its claim until it is emitted."""
        self._journal.forbid_in_step("wait")
        key = options.get("key", "")
        wait = _without_none({"event": event, "key": key, **_expiry(options)})
        text = options.get("name") or (f"{event} {key}" if key else event)
        return (await self.answer(self._journal.name("event", text), wait)).value

    async def open(self, name: str, wait: dict[str, Any]) -> UUID | None:
        """Open a wait and return its id; None if it already has an answer."""
        journal, claim = self._journal, self._journal.claim
        if name in journal.steps:
            journal.check()
            return None
        text = encode(wait, name="wait")
        async with journal.busy():
            found = await journal.call(
                lambda: journal.db.waits.open(claim.id, claim.token, name, text)
            )
            if found.answer is not None:
                journal.add(name, "wait", found.answer)
                return None
            return found.id

    async def answer(self, name: str, wait: dict[str, Any]) -> Answer:
        """Return the answer to a wait; suspend the task if there is none."""
        self._journal.forbid_in_step("wait")
        wait_id = await self.open(name, wait)
        if wait_id is not None:
            await self._journal.suspend(SuspendReason(waits=[wait_id]))
        answer = _answer(self._journal.steps[name].output)
        if answer.status == "expired":
            raise WaitExpired(
                f"nobody answered in time: {wait.get('question') or wait['event']}",
                hint="Pass a longer expires=, or a default: on_expiry='default', default=…",
                wait=name,
            )
        return answer


def _answer(document: Mapping[str, Any]) -> Answer:
    return Answer(
        value=document.get("value"),
        by=document.get("by"),
        note=document.get("note"),
        at=datetime.fromisoformat(document["at"]),
        status=document["status"],
    )


def _with_model(answer: Answer, model: type[BaseModel] | None, name: str) -> Answer:
    """Return the answer with its value as an instance of the model of the question."""
    if model is None:
        return answer
    try:
        value = model.model_validate(answer.value)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        words = "; ".join(
            f"{'.'.join(excerpt_name(str(part)) for part in each['loc'])}: {each['msg']}"
            for each in problems
        )
        raise InvalidArgument(
            f"the answer to {name} is not a valid {model.__name__}: {words}", wait=name
        ) from None
    return Answer(value, answer.by, answer.note, answer.at, answer.status)


def inline_references(schema: Mapping[str, Any]) -> Any:
    """Replace each `$ref` of a JSON schema by its definition: SQL does not resolve them."""
    definitions = {f"#/$defs/{name}": part for name, part in schema.get("$defs", {}).items()}

    def inline(part: Any, inside: tuple[str, ...] = ()) -> Any:
        if isinstance(part, list):
            return [inline(each, inside) for each in part]
        if not isinstance(part, Mapping):
            return part
        found = {key: inline(value, inside) for key, value in part.items() if key != "$ref"}
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return found
        if reference not in definitions or reference in inside:
            problem = "refers to itself" if reference in inside else "is not in $defs of the schema"
            raise InvalidArgument(
                f"the schema of the answer cannot be used: {reference} {problem}",
                hint="Ask for an answer without that part, or without a schema.",
                argument="schema",
            )
        return {**inline(definitions[reference], (*inside, reference)), **found}

    return inline({key: value for key, value in schema.items() if key != "$defs"})


def _expiry(options: Expiry) -> dict[str, Any]:
    expires = options.get("expires")
    on_expiry = options.get("on_expiry", "fail")
    if (on_expiry == "default") != (options.get("default", ...) is not ...):
        raise InvalidArgument(
            "on_expiry='default' and default= need each other",
            hint="Pass both or neither.",
            argument="default",
        )
    found: dict[str, Any] = {
        "on_expiry": on_expiry,
        "expires_s": expires.total_seconds() if isinstance(expires, timedelta) else expires,
    }
    if on_expiry == "default":
        found["default"] = options["default"]
    return found


def _without_none(wait: dict[str, Any]) -> dict[str, Any]:
    """Remove options that are None, except the default, which may be null."""
    return {name: value for name, value in wait.items() if value is not None or name == "default"}
