"""The documents of agents: the brief that asks for work, and the decision report about it.

The least that a report needs is a summary and a confidence. SQL holds every client to the same
shape. A type may have a model of its own: a subclass, or any report with more fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from treadle.masking import excerpt_name

Words = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class Decision(BaseModel):
    """One choice: what was chosen, of what, and why."""

    model_config = ConfigDict(extra="allow")

    decision: Words
    reason: Words
    options: list[str] = Field(default_factory=list)
    reversible: bool | None = None


class DecisionReport(BaseModel):
    """What a reviewer wants to know about a piece of work."""

    model_config = ConfigDict(extra="allow")

    summary: Words
    confidence: float = Field(ge=0, le=1)
    goal: str | None = None
    decisions: list[Decision] = Field(default_factory=list)
    assumptions: list[str] = Field(default_factory=list)
    evidence: list[str] = Field(default_factory=list)
    risks: list[str] = Field(default_factory=list)
    follow_ups: list[str] = Field(default_factory=list)


def problems_of(error: ValidationError) -> list[str]:
    """What is wrong with a report, one line for each field."""
    return [
        f"decision report: {_place(item['loc'])}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False)
    ]


def _place(location: Iterable[int | str]) -> str:
    return ".".join(excerpt_name(str(part)) for part in location) or "all"


def described(report: Mapping[str, Any]) -> str:
    """A stored report as text for people."""
    return "\n".join(_lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    confidence = report.get("confidence")
    sure = (
        f"{confidence:.0%} sure" if isinstance(confidence, (int, float)) else "confidence unknown"
    )
    yield f"{report.get('summary')} ({sure})"
    if report.get("goal"):
        yield f"goal: {report['goal']}"
    for each in _list(report.get("decisions")):
        if isinstance(each, Mapping):
            among = [str(option) for option in _list(each.get("options"))]
            of = f" (of {', '.join(among)})" if among else ""
            last = " (cannot be undone)" if each.get("reversible") is False else ""
            yield f"decided: {each.get('decision')}{of}: {each.get('reason')}{last}"
    for name in ("assumptions", "evidence", "risks", "follow_ups"):
        for each in _list(report.get(name)):
            yield f"{name.replace('_', ' ')}: {each}"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class Brief(BaseModel):
    """Work for an agent; a handler that takes `brief: Brief` gets it checked.

    `await implement.enqueue(brief=Brief(action="implement", target="src/auth.py"))`
    """

    model_config = ConfigDict(extra="forbid")

    action: str = Field(min_length=1, max_length=200)
    target: str | None = None
    params: dict[str, Any] = {}
    goal: str | None = None
    constraints: list[str] = []
    context: dict[str, Any] = {}
