"""A brief: what an agent is asked to do, in the fields that agents' prompts are made of."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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
