"""What runs brought that waited for it: their results are weighed while there is time for it."""

from __future__ import annotations

import threading
from typing import Any, Final

from stageprof_runtime.clock import thread_ns
from stageprof_runtime.weight import weigh

#: A run waited if it took so long, ns, and less than this part of it on a processor.
LONG_NS, WAITED = 5_000_000, 0.5
#: Of the time that runs waited this part may go into weighing what they brought.
WEIGHING: Final = 0.01


def waited(ns: int, cpu: int) -> bool:
    """Whether a run waited that took `ns`, of which `cpu` on a processor."""
    return ns >= LONG_NS and cpu < WAITED * ns


class Scales:
    """Those of one computation; one thread weighs at a time."""

    def __init__(self) -> None:
        #: ns that runs have waited
        self.waited = 0
        self._weighed = 0
        self._free = threading.Lock()

    def weigh(self, result: Any) -> int:
        """Bytes of a result, about; -1 where there is no time for it, or another one is weighed."""
        if self._weighed > WEIGHING * self.waited or not self._free.acquire(blocking=False):
            return -1
        begun = thread_ns()
        try:
            return weigh(result)
        finally:
            self._weighed += thread_ns() - begun
            self._free.release()
