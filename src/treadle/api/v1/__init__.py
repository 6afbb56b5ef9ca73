"""The native HTTP API, /v1: one module per noun, with its routes and their bodies."""

from fastapi import APIRouter

from treadle.api.v1 import (
    agents,
    artifacts,
    breakers,
    budgets,
    claims,
    dags,
    dead_letters,
    events,
    gates,
    harness,
    keys,
    queues,
    retention,
    schedules,
    steps,
    tasks,
    triggers,
    types,
    waits,
    webhooks,
)


def routers() -> list[APIRouter]:
    """The routers; routes that fleets call all the time come first."""
    return [
        tasks.busy,
        claims.busy,
        claims.router,
        tasks.router,
        artifacts.router,
        steps.router,
        agents.router,
        waits.router,
        dags.router,
        dead_letters.router,
        schedules.router,
        budgets.router,
        queues.router,
        types.router,
        gates.router,
        breakers.router,
        keys.router,
        triggers.router,
        webhooks.router,
        harness.router,
        retention.router,
        events.router,
    ]
