"""Blocking calls of this process that are under way, and who tells a recording of them.

A row of BLOCK is emitted when a call ends. Of one that lasts, a mark tells that it began: a program
may be killed while it waits. A short call costs an entry in a dict, and no row.
"""

from __future__ import annotations

import asyncio
from typing import Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.ring import Ring

#: The mark, at the instant at which a call began: its lane, and which call it is.
WAITS: Final = "waits since"
#: The mark that calls are told of here, from this instant on: who is not told of does not wait.
TELLS: Final = "waits are told"
#: Calls that last so long are told of, ns.
LONG_NS: Final = 100_000_000
#: Errors with which a call ends that did not wait to its end, and what it is named with then.
GIVES_UP: Final = (KeyboardInterrupt, TimeoutError, asyncio.CancelledError)
GAVE_UP: Final = " gave up"
#: Calls that are not the computation: they are `outside`.
NOT_OURS = frozenset(
    {
        "_start", "_close", "_shutdown", "_restart", "_restart_workers", "_wait_for_workers",
        "_run", "_run_on_scheduler", "_register_worker_plugin", "_register_scheduler_plugin",
        "_register_nanny_plugin", "_unregister_worker_plugin", "upload_file",
    }
)  # fmt: skip

#: lane (thread, or negative number of an async region) -> when its call began, and which it is
calls: Final[dict[int, tuple[int, str]]] = {}


def ended(lane: int, before: tuple[int, str] | None) -> None:
    """A call of a lane is over; `before` is what was under way there when it began."""
    if before is None:
        calls.pop(lane, None)
    else:
        calls[lane] = before


class Waits:
    """Tells one session of each long call once; asked every half second by its shipper."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._told: dict[int, tuple[int, str]] = {}
        self._begun = False

    def tell(self) -> None:
        """Emit a mark for each call that is under way, and was not told of before."""
        now, before = now_ns(), self._told
        if not self._begun:
            self._begun = True
            self._ring.emit((MARK, now, TELLS, ""))
        long = {lane: call for lane, call in calls.copy().items() if now - call[0] >= LONG_NS}
        self._told = long
        for lane, (start, call) in long.items():
            if before.get(lane) != (start, call):
                self._ring.emit((MARK, start, WAITS, f"{lane} {call}"))
