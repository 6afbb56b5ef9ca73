"""The smallest callback of a harness: it logs what each agent has decided.

    treadle harness run examples.harness:act

Replace the log line with what your decisions mean: post a comment, merge, call somebody.
"""

from typing import Any

import structlog

log = structlog.get_logger(__name__)


async def act(task: Any, decision: Any) -> None:
    """Act on the decision of an agent; called once for each task."""
    log.info("decision.received", task_id=str(task.task_id), decision=decision)
