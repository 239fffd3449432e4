"""Round trips to a scheduler's clock, of which collectors keep the quickest.

Five tell the clocks' distance at once, then one a second follows their drift. Each is a message
there and one back, which costs the two loops about a millisecond together: ten a second for each
worker, as it once was, was a third of all that a recording cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import PING
from stageprof_runtime.ring import Ring

#: Round trips at first.
FIRST: Final = 5
#: Nanoseconds until the next.
EVERY_NS: Final = 1_000_000_000
#: What a scheduler answers that did not say the time.
UNANSWERED: Final = 0


class Pings:
    """Asks one scheduler, seen from one place."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._next = 0

    async def ask(
        self, clock: Callable[[], Awaitable[int | None]], address: str, *, first: int = FIRST
    ) -> int | None:
        """Ask it now, if it is time; what it answered last, UNANSWERED if it did not.

        None if it knows nothing of the session; see `relay.STALLED` too.
        """
        now = now_ns()
        answer: int | None = UNANSWERED
        if now < self._next:
            return answer
        for _ in range(1 if self._next else first):
            answer = await self._once(clock, address)
            if answer is None or answer <= 0:
                return answer
        self._next = now + EVERY_NS
        return answer

    async def _once(self, clock: Callable[[], Awaitable[int | None]], address: str) -> int | None:
        sent = now_ns()
        try:
            theirs = await clock()
        except (OSError, TimeoutError, RuntimeError):  # busy or gone, or we are: another time
            return UNANSWERED
        if theirs is not None and theirs > 0:
            self._ring.emit((PING, sent, theirs, now_ns(), address))
        return theirs
