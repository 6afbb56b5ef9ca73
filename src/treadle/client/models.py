"""What goes between a harness and its agents."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime
from typing import Any, Self

ERROR_CHARS = 20_000


@dataclass(frozen=True)
class TaskMessage:
    """A task that this agent has claimed."""

    task_id: str
    payload: dict[str, Any]
    agent_url: str
    # How often a claim of it ran out or failed before: above 0, somebody has begun already.
    retry_count: int
    max_retries: int
    created_at: datetime
    # The claim is lost after this, unless a heartbeat came.
    claim_until: datetime
    # The proof of the claim, for `adopt`; not for logs.
    claim_token: str = field(repr=False)

    @classmethod
    def read(cls, found: Mapping[str, Any], claim_token: str) -> Self:
        """The task in an answer of the server; what it says besides is left out."""
        return cls(
            task_id=str(found["task_id"]),
            payload=dict(found["payload"]),
            agent_url=str(found["agent_url"]),
            retry_count=int(found["retry_count"]),
            max_retries=int(found["max_retries"]),
            created_at=datetime.fromisoformat(found["created_at"]),
            claim_until=datetime.fromisoformat(found["claim_until"]),
            claim_token=claim_token,
        )


@dataclass(frozen=True)
class DecisionMessage:
    """What an agent decided: the actions that the harness is to take, and why."""

    actions: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""


def decision_body(decision: object) -> dict[str, Any]:
    """A decision as JSON: a mapping, a dataclass, or a model with `model_dump`."""
    if hasattr(decision, "model_dump"):
        decision = decision.model_dump(mode="json")
    elif is_dataclass(decision) and not isinstance(decision, type):
        decision = asdict(decision)
    if not isinstance(decision, Mapping):
        raise TypeError(f"a decision is a DecisionMessage or a dict, not {type(decision).__name__}")
    return dict(decision)


def error_text(error: object) -> str:
    """Why a task failed, such that the server takes it: what is too long loses its middle."""
    text = str(error).replace("\0", "\u2400").encode("utf-8", "replace").decode("utf-8")
    half = ERROR_CHARS // 2 - 2
    return text if len(text) <= ERROR_CHARS else f"{text[:half]}\n…\n{text[-half:]}"
