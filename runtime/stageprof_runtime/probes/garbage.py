"""Samples `gc.pause_s`: what the garbage collector took of this process.

While it collects it holds the GIL, so that the whole process stands still, whichever thread it
was that allocated too much. Collections of the youngest objects only are not counted: they come by
the thousand a second, take microseconds, and no setting makes them fewer for their objects.

Not before Python 3.12. There a collection may begin while CPython makes the object of another
thread's frame, and if a callback then lets go of the GIL the frame is gone when it goes on: the
process crashes (python/cpython#97002). Dask's own profiler makes such objects all the time.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.guard import Watch
from stageprof_runtime.patch import Emit, Undo, wrapped

#: Short ones are summed until they make this much; a sample then ends with the last of them.
SHORT_NS: Final = 1_000_000

#: A process has one collector: what it took goes to the process's first ring, whatever its role.
_ANY: Final = "any"


class Meter:
    """Sums the pauses of this process."""

    def __init__(self, emit: Emit, clock: Callable[[], int] = now_ns) -> None:
        self._emit = emit
        self._clock = clock
        self._began = self._total = 0
        self.watch = Watch("gc.callbacks")

    def hook(self, phase: str, info: dict[str, Any]) -> None:
        """What `gc.callbacks` call; not timed itself, as it returns at once of most collections."""
        try:
            if info["generation"] and not self.watch.disabled:
                self.note(phase)
        except BaseException as error:  # it would be printed among the user's own output
            self.watch.failed(error)

    def note(self, phase: str) -> None:
        """A collection begins or ends."""
        now = self._clock()
        if phase == "start":
            self._began = now
            return
        began, self._began = self._began, 0
        self._total += now - began if began else 0
        if self._total >= SHORT_NS:
            self.tell(now)

    def tell(self, now: int) -> None:
        """Emit what there is."""
        total, self._total = self._total, 0
        if total:
            self._emit.row(_ANY, (SAMPLE, now, "gc.pause_s", total / 1e9))


#: Whether a collection begins only where the interpreter is ready for any code.
SAFE: Final = sys.version_info >= (3, 12)


def install(emit: Emit) -> Undo:
    """Note what collections take from now on; nothing before Python 3.12."""
    if not SAFE:
        return lambda: None
    meter = Meter(emit)
    wrapped["gc.callbacks"] = meter.watch
    hook = meter.hook
    gc.callbacks.append(hook)
    return functools.partial(_leave, hook)


def _leave(hook: Any) -> None:
    if hook in gc.callbacks:
        gc.callbacks.remove(hook)
