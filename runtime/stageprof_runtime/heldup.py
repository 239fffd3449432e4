"""Tasks that wait for a lock and the like of Dask's for long, told while they still wait.

The span of such a wait comes when it ends (`probes.locks`); one that never does would not be seen.
A mark "held up" at the instant at which the wait began says, once, "<thread> TAB <prefix> TAB
<file:line what>"; asked every half second by the shipper of a worker.
"""

from __future__ import annotations

import sys
from typing import Final

from dask.utils import key_split

from stageprof_runtime.clock import now_ns
from stageprof_runtime.coordination import WAITS
from stageprof_runtime.event import MARK
from stageprof_runtime.lines import user_line
from stageprof_runtime.probes.failure import part
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import Ring
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.underway import calls

#: The name of the mark.
NAME: Final = "held up"
#: Waits that last so long are told of, ns.
LONG_NS: Final = 2_000_000_000
#: Marks of one process in one recording.
MOST: Final = 1_000


class HeldUp:
    """Tells one session of each long wait of this process's tasks once."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._told: set[tuple[int, int]] = set()

    def tell(self) -> None:
        """Emit a mark for each that lasts, and was not told of before."""
        now = now_ns()
        for thread, (start, call) in calls.copy().items():
            long = call.startswith(WAITS) and now - start >= LONG_NS
            if long and (thread, start) not in self._told and len(self._told) < MOST:
                self._told.add((thread, start))
                self._say(thread, start, call.removeprefix(WAITS))

    def _say(self, thread: int, start: int, what: str) -> None:
        _, key = running.get(thread, ("", None))
        with uncollected():
            frame = sys._current_frames().get(thread)
            line = None if frame is None else user_line(frame)
        if line is not None and key is not None:
            label = "{}:{} {}".format(*line, what)
            said = "\t".join((str(thread), part(key_split(key)), label.replace("\t", " ")))
            self._ring.emit((MARK, start, NAME, said))
