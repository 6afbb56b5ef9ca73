"""Nudges: tell agents that tasks wait for them. Delivery does not depend on any of it.

A nudge is sent once and its answer decides nothing: an agent that is down finds its tasks when it
comes back. Agents that are slow or gone hold up neither the harness nor each other.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import structlog

from treadle.db.gateway import Gateway
from treadle.db.harness import Nudge
from treadle.errors import TreadleError
from treadle.json import clean_text
from treadle.services.notifier_addresses import AddressRefused, Rules
from treadle.services.outbound import request, transport
from treadle.settings import Settings

log = structlog.get_logger(__name__)
AGENTS = 20


def rules_of(settings: Settings) -> Rules:
    """Where nudges may go: as where the dispatcher may."""
    timeout_s = settings.harness_nudge_timeout_s
    return replace(Rules.of_agents(settings), who="harness", timeout_s=timeout_s)


class Nudger:
    """Sends nudges to some agents at once, to each one after the other."""

    def __init__(self, gateway: Gateway, rules: Rules, transport: Any) -> None:
        self._gateway = gateway
        self._rules = rules
        self._transport = transport
        self._slots = anyio.Semaphore(AGENTS)
        self.busy: set[str] = set()

    async def send(self, agent_url: str, nudges: list[Nudge]) -> None:
        """Nudge an agent about its tasks; after one that failed the others are pointless."""
        try:
            async with self._slots:
                problem = None
                for nudge in nudges:
                    problem = await self._post(nudge)
                    if problem is not None:
                        break
                    log.info("harness.nudged", agent_url=agent_url, task_id=str(nudge.task_id))
                if problem is not None:
                    log.warning("harness.nudge_failed", agent_url=agent_url, error=problem)
                await self._gateway.note_nudge(agent_url, problem)
        except TreadleError as error:
            log.warning("harness.waiting", error=str(error))
        finally:
            self.busy.discard(agent_url)

    async def _post(self, nudge: Nudge) -> str | None:
        """What went wrong, if anything."""
        import httpx2

        try:
            with anyio.fail_after(self._rules.timeout_s):
                answer = await request(
                    self._transport,
                    "POST",
                    httpx2.URL(f"{nudge.agent_url}/task"),
                    rules=self._rules,
                    allowed=nudge.allow_private,
                    headers={"content-type": "application/json"},
                    body=b'{"task_id": "%s"}' % str(nudge.task_id).encode(),
                )
            with anyio.move_on_after(1, shield=True):
                await answer.aclose()
        except TimeoutError:
            return f"no answer within {self._rules.timeout_s:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, AddressRefused, OSError, ValueError) as error:
            return clean_text(str(error).strip() or type(error).__name__, 500)
        return None if answer.is_success else f"answered {answer.status_code}"


@asynccontextmanager
async def open_nudger(gateway: Gateway, rules: Rules) -> AsyncIterator[Nudger]:
    """A nudger with its connections."""
    async with transport(AGENTS, keep=AGENTS // 2) as made:
        yield Nudger(gateway, rules, made)
