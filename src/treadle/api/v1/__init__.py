"""The native API, /v1: everything that treadle can do, over HTTP.

One module per noun with its routes; the bodies are in models_<noun>.py.
"""

from fastapi import APIRouter

from treadle.api.v1 import (
    actions,
    agents,
    artifacts,
    budgets,
    claims,
    dags,
    dead_letters,
    events,
    gates,
    harness,
    history,
    queues,
    results,
    running,
    schedules,
    tasks,
    triggers,
    types,
    waits,
    webhooks,
)


def routers() -> list[APIRouter]:
    """One per noun."""
    return [
        tasks.busy,
        tasks.router,
        actions.router,
        results.router,
        artifacts.router,
        claims.router,
        running.router,
        agents.router,
        waits.router,
        dags.router,
        dead_letters.router,
        schedules.router,
        budgets.router,
        queues.router,
        types.router,
        gates.router,
        triggers.router,
        webhooks.router,
        harness.router,
        history.router,
        events.router,
    ]
