"""What tasks leave behind in a worker's process, beside what Dask takes their results for.

The process is measured before a run and, if the run was worth it, after it, its result still
there. Both are rare, at most `RATE` a second: a measurement costs some microseconds.
"""

from __future__ import annotations

import functools
import mmap
from collections.abc import Callable
from typing import Any, Final

import psutil

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place, run_id
from stageprof_runtime.event import MEMORY
from stageprof_runtime.guard import Watch
from stageprof_runtime.patch import Emit, Undo, observe, together
from stageprof_runtime.procfile import ProcFile
from stageprof_runtime.shield import shield
from stageprof_runtime.system import managed

#: Measured before a run at most this often.
RATE: Final = 10
#: After it only if its result is this large or it ran this long: what is smaller is lost among
#: the pages that an allocator keeps.
LARGE_BYTES: Final = 10_000_000
LONG_NS: Final = 100_000_000
#: Or if nothing was told for so long: what remains between tasks shows a leak.
SILENT_NS: Final = 100_000_000


class Meter:
    """Measures this process, not too often."""

    def __init__(self, clock: Callable[[], int] = now_ns) -> None:
        self._clock = clock
        self._file = ProcFile("/proc/self/statm")
        #: when the process may be measured again
        self.due = 0
        self._told = 0

    def before(self) -> int:
        """Bytes of the process if it is time to measure it, else 0."""
        now = self._clock()
        if now < self.due:
            return 0
        self.due = now + 1_000_000_000 // RATE
        return self.bytes()

    def after(self, began: int, nbytes: int) -> int:
        """Bytes of the process if a run that began then and has this result is worth it, else 0."""
        now = self._clock()
        worth = nbytes >= LARGE_BYTES or now - began >= LONG_NS or now - self._told >= SILENT_NS
        if not worth:
            return 0
        self._told = now
        return self.bytes()

    def bytes(self) -> int:
        """Bytes of the process."""
        words = self._file.read().split()
        return int(words[1]) * mmap.PAGESIZE if words else int(psutil.Process().memory_info().rss)

    def close(self) -> None:
        """Measure no more."""
        self._file.close()


def install(emit: Emit) -> Undo:
    """Measure the process around some runs from now on."""
    where = place("worker.run")  # which may be missing: the meter keeps a file open
    meter = Meter()
    undo = observe(*where, functools.partial(_run, emit, meter))
    return together([meter.close, undo])


def _run(
    emit: Emit, meter: Meter, run_task: Callable[..., Any], watch: Watch
) -> Callable[..., Any]:
    shielded = shield(run_task, functools.partial(_measured, emit, meter), watch)

    @functools.wraps(run_task)
    def sometimes(*args: Any, **kwargs: Any) -> Any:
        return (shielded if now_ns() >= meter.due else run_task)(*args, **kwargs)

    return sometimes


def _measured(emit: Emit, meter: Meter, run_task: Callable[..., Any]) -> Callable[..., Any]:
    def measured(task: Any, data: Any, execution_state: Any, key: Any, *rest: Any) -> Any:
        before, began = meter.before(), now_ns()
        worker = execution_state["worker"]
        held = managed(worker)
        message = run_task(task, data, execution_state, key, *rest)
        after = meter.after(began, _nbytes(message)) if before else 0
        if after:
            emit.row("worker", (MEMORY, run_id(worker, key), before, after, held))
        return message

    return measured


def _nbytes(message: Any) -> int:
    """What Dask took a run's result for; 0 if it failed."""
    nbytes = message.get("nbytes") if type(message) is dict else 0
    return nbytes if type(nbytes) is int else 0
