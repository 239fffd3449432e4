"""Looking at the event loop of a scheduler while it is busy: what it does, by step.

A thread of ours looks some 20 times a second. Where the loop waits for messages nothing more is
done; else its stack is told, from the callback that runs inward, and so is that of the thread to
which a scheduler hands the graphs that it takes in. The loop itself is never touched: no hook, no
wrapper, no callback of its own. What it does at no step that has a name (heartbeats, stealing, the
dashboard) is `unexplained`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Final

from stageprof_runtime.codes import Codes
from stageprof_runtime.context import phase
from stageprof_runtime.looker import Looker, for_bytecode
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.probes import scheduling
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.stage import STEP, UNEXPLAINED
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.stem import frames_of
from stageprof_runtime.stopped import work
from stageprof_runtime.tree import CODES, spots

#: What the looker is called in the coverage.
NAME: Final = "loops"
#: (end of the file's name, function) -> what a loop does there
_NAMED: Final = {
    ("distributed/scheduler.py", "_materialize_graph"): STEP["materialize"],
    ("distributed/scheduler.py", "_cull"): STEP["lowlevel"],
    ("distributed/scheduler.py", "_create_taskstate_from_graph"): STEP["state"],
    ("distributed/scheduler.py", "_transitions"): STEP["transition"],
    ("distributed/scheduler.py", "stimulus_task_finished"): STEP["transition"],
    ("distributed/scheduler.py", "stimulus_task_erred"): STEP["transition"],
    ("dask/_expr.py", "_optimized_dsk"): STEP["lowlevel"],
    ("distributed/protocol/core.py", "dumps"): STEP["task.dump"],
    ("distributed/protocol/core.py", "loads"): STEP["task.load"],
    ("distributed/scheduler.py", "update_graph"): STEP["graph.load"],
}
#: Where a loop or a pool's thread waits for something to do.
_IDLE: Final = ("/selectors.py", "/asyncio/runners.py", "/asyncio/base_events.py")
_OFFLOAD: Final = "Dask-Offload"


def install(emit: Emit) -> Undo:
    """Look at schedulers' loops from now on."""
    looker = Looker(NAME, Loops(emit).look)
    looker.start()
    return looker.stop


class Loops:
    """What there is to look at."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def look(self, _: int, ns: int, late_s: float) -> bool:
        """One look at every scheduler's loop; see `looker.Look`."""
        threads = [*scheduling._loops, *_offloading()]
        waited = for_bytecode(late_s, len(threads))
        with uncollected():
            frames = sys._current_frames()
            # Our own frame is among them and holds them, see `stacks`.
            try:
                busy = [t for t in threads if t not in running and not is_idle(frames.get(t))]
                for thread in busy:
                    self._tell(frames[thread], ns, waited=waited)
            finally:
                frames.clear()
        return bool(busy)

    def _tell(self, top: FrameType, ns: int, *, waited: bool) -> None:
        frames = of_callback(frames_of(top))
        how = work(top, "", waited=waited, idling=False)
        self._emit.flame("scheduler", step_of(frames), "", how, spots(frames), ns)


def _offloading() -> list[int]:
    """Threads that take in a graph, if one is being taken in."""
    if "scheduler" not in phase:
        return []
    threads = threading.enumerate()
    return [t.ident for t in threads if t.name.startswith(_OFFLOAD) and t.ident is not None]


def is_idle(top: FrameType | None) -> bool:
    """Whether a thread whose innermost frame this is waits for something to do, or has gone."""
    if top is None:
        return True
    code = top.f_code
    return code.co_filename.replace("\\", "/").endswith(_IDLE) or code.co_name == "_worker"


def of_callback(frames: Sequence[FrameType]) -> Sequence[FrameType]:
    """A stack from the callback that the loop runs, or from what a pool's thread runs, inward."""
    for i, frame in enumerate(frames):
        code = frame.f_code
        if code.co_qualname in ("Handle._run", "_WorkItem.run"):
            return frames[: max(i, 1)]
    return frames


def step_of(frames: Sequence[FrameType]) -> int:
    """The step that a scheduler's stack is in: that of the innermost frame which names one."""
    for frame in frames:
        step = _step(frame.f_code)
        if step:
            return step
    return UNEXPLAINED


def _judge(code: CodeType) -> int:
    file = code.co_filename.replace("\\", "/")
    if file.endswith("dask/order.py"):
        return STEP["order"]
    named = ((f, n) for f, n in _NAMED if n == code.co_name and file.endswith(f))
    return next((_NAMED[found] for found in named), UNEXPLAINED)


_step: Final = Codes(_judge, CODES).of
