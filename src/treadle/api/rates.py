"""How often somebody may ask: a bucket for each caller, in this process."""

import time

MOST_CALLERS = 10_000
# A caller that was quiet may ask for so many seconds' worth at once.
BURST_S = 2.0


class Rates:
    """Requests a second for each caller; 0 is no limit.

    Kept is the time at which a caller's bucket is full again, nothing else.
    """

    def __init__(self, per_s: float) -> None:
        self._cost_s = 1 / per_s if per_s > 0 else 0.0
        self._depth_s = max(BURST_S, self._cost_s)
        self._full_at: dict[str, float] = {}

    def take(self, caller: str) -> float:
        """Count a request; 0 when it may go on, else the seconds until it may."""
        if not self._cost_s:
            return 0.0
        now = time.monotonic()
        full_at = max(self._full_at.get(caller, 0.0), now) + self._cost_s
        wait_s = full_at - now - self._depth_s
        if wait_s > 1e-9:
            return wait_s
        if caller not in self._full_at and len(self._full_at) >= MOST_CALLERS:
            self._forget(now)
        self._full_at[caller] = full_at
        return 0.0

    def give_back(self, caller: str) -> None:
        """Take back what was counted last: it was somebody else."""
        if caller in self._full_at:
            self._full_at[caller] -= self._cost_s

    def _forget(self, now: float) -> None:
        """Those whose buckets are full come again as if they were new."""
        kept = {caller: at for caller, at in self._full_at.items() if at > now}
        # More than that at once are not one caller's doing; each starts over.
        self._full_at = kept if len(kept) < MOST_CALLERS else {}
