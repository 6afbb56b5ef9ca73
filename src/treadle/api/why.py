"""The parts of the reasons why a task waits that a restricted token may see.

A reason may name other tasks, agents and queues. So each reason, and each of its details, is hidden
from restricted tokens until `REASONS` opens it; of a hidden reason only the code is shown.
"""

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """The details and the sentence of a reason that a restricted token gets."""

    details: frozenset[str]
    # Replaces the sentence of SQL where a detail is left out.
    sentence: str | None = None


def _shown(details: str, sentence: str | None = None) -> Shown:
    return Shown(frozenset(details.split()), sentence)


_ENDED = _shown("completed_at agent attempt max_attempts class said")
_HELD = _shown(
    "agent status attempt max_attempts claimed_at started_at heartbeat_at lease_until stale"
)
_WORK = _shown("agent status")
_ASKED = _shown(
    "wait_id kind name question options event event_key approvers answers opened_at expires_at"
    " budget_id"
)
_TIMED = _shown("run_at retry_at attempt max_attempts class")
_PAUSED = _shown("queue type paused_by paused_at said")
# The error and the probe belong to other tasks.
_BREAKER = _shown(
    "type state failures opened_at opened_by probe_at", "the breaker of type {type} is {state}"
)
_GATE = _shown(
    "gate closed_until closed_at closed_by said slowdowns unit amount period_s left needs"
)
_BUDGET = "budget_id scope key period limit_usd spent_usd reserved_usd"
_AGENTS = _shown("queue type capabilities missing")
# Of each reason of `why`: the details that are about the task itself, its queue, its type and the
# limits that it is under. A reason or a detail that is not here is hidden from restricted tokens;
# of `tasks`, only those are shown that the token sees.
REASONS: dict[str, Shown] = {
    **dict.fromkeys(("completed", "cancelled", "dead_lettered"), _ENDED),
    **dict.fromkeys(("claimed", "running", "validating", "claim_expired"), _HELD),
    **dict.fromkeys(("not_dispatched", "work_blocked", "dispatched"), _WORK),
    **dict.fromkeys(("question", "event", "budget_question", "wait_expired"), _ASKED),
    **dict.fromkeys(("run_at", "retry_at", "promoter"), _TIMED),
    **dict.fromkeys(("queue_paused", "type_paused"), _PAUSED),
    **dict.fromkeys(("breaker_open", "breaker_probe", "breaker_half_open"), _BREAKER),
    **dict.fromkeys(("gate_closed", "gate_rate", "gate_size"), _GATE),
    **dict.fromkeys(("no_agent", "no_handler", "no_capability"), _AGENTS),
    "unknown": _shown("status"),
    "held": _shown("task_id"),
    "budget": _shown(f"{_BUDGET} left_usd needs_usd"),
    "admission": _shown(
        f"key max held ahead tasks {_BUDGET}",
        "a slot is free: the next claim or the promoter admits the task",
    ),
    "manual": _shown("queue"),
    "dag_open": _shown("dag_id dag"),
    "assigned": _shown("agent status heartbeat_at queue type missing"),
    "dependencies": _shown("open all tasks", "waiting for {open} of {all} dependencies"),
    "key_full": _shown(
        "key max held ahead tasks", "concurrency key {key} is full: {held} of {max}"
    ),
    "agents_full": _shown("", "every agent that could take it is at its limit"),
    "agent_budget": _shown("max_cost_usd", "no agent that could take it can afford it"),
    "claimable": _shown("position of fair probe", "claimable now: the next claim takes it"),
    "position": _shown("position of fair", "position {position} of {of}"),
}


def redact(reason: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    """A reason with what is opened in `REASONS`, and of other tasks those that are `seen`."""
    shown = REASONS.get(reason["reason"], Shown(frozenset()))
    told = reason["detail"] or {}
    detail = {name: value for name, value in told.items() if name in shown.details}
    if "tasks" in detail:
        detail["tasks"] = [task for task in tasks_named(reason) if task["id"] in seen]
    if detail == told and reason["reason"] in REASONS:
        return reason
    sentence = f"waiting: {reason['reason']}"
    if shown.sentence is not None:
        sentence = shown.sentence.format(**detail)
    return {**reason, "sentence": sentence, "detail": detail}


def tasks_named(reason: dict[str, Any]) -> list[dict[str, Any]]:
    """The other tasks that a reason names."""
    return (reason["detail"] or {}).get("tasks") or []
