"""Looking at the region's thread from outside: what of construction nothing else can see.

Dask offers no hook for collection methods, tokenizing and meta inference, so a thread of ours
looks at the stack of the region's thread every `PERIOD_S` and says, from Dask's frames on it,
which step it is in; frames of the user's alone are `outside` and give no span.

A profiler inside the thread (`sys.setprofile`, pyinstrument's) was measured to double the time
of a loop of `delayed` calls; looking from outside costs it about one in a hundred.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

from stageprof_runtime.clock import now_ns
from stageprof_runtime.context import waiting
from stageprof_runtime.event import SAMPLED, SPAN
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.lines import DASK, USER, kind
from stageprof_runtime.probes.layers import line_of_rewriting
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import STEP
from stageprof_runtime.standstill import uncollected

#: Seconds between two looks.
PERIOD_S = 0.02
#: A gap this many periods long means that the thread held the GIL in one C call: the call just
#: returned when we could look, so the gap belongs to what is seen now.
LATE = 2.0

_META = frozenset(
    {
        "compute_meta", "make_meta", "meta_from_array", "_emulate", "emulate", "meta_nonempty",
        "apply_infer_dtype", "infer_dtype", "_meta", "meta", "_get_meta_map_partitions",
        "infer_storage_options", "_infer_meta", "meta_from_dd",
    }
)  # fmt: skip
_MATERIALIZE = frozenset({"__dask_graph__", "_layer", "_task", "_construct_graph", "to_dict"})
_EXPR = frozenset({"optimize", "optimize_until", "simplify", "lower_completely", "fuse"})

#: Waiting is recorded exactly by its own probe; what is seen of it here is not construction.
_WAITING = frozenset({("distributed/utils.py", "sync"), ("dask/local.py", "queue_get")})
#: Starting and closing clusters and clients is the user's own affair: `outside`.
_AFFAIRS = frozenset({"__init__", "__exit__", "close", "restart", "wait_for_workers", "shutdown"})

#: In these a graph of all that is wanted is handed over: what is done there is not for the line
#: that called them but for the whole graph.
_HANDING_OVER = frozenset(
    {
        ("dask/base.py", "compute"), ("dask/base.py", "persist"),
        ("distributed/client.py", "compute"), ("distributed/client.py", "persist"),
    }
)  # fmt: skip

_NONE, _DASK, _USER, _OUTSIDE, _HANDS_OVER = 0, -1, -2, -3, -4
#: By identity, for hashing code reads all of it; the code is kept, so that its number stays its.
_codes: dict[int, tuple[int, CodeType]] = {}


def _seen(code: CodeType) -> int:
    """A step, or `_DASK`, `_USER` or `_NONE`, for one frame's code."""
    known = _codes.get(id(code))
    if known is None:
        known = _codes[id(code)] = _judge(code), code
    return known[0]


def _judge(code: CodeType) -> int:  # noqa: C901, PLR0911 (a table of rules, read from above)
    whose = kind(code.co_filename)
    if whose == USER:
        return _USER
    if whose != DASK:
        return _NONE
    file, name = code.co_filename.replace("\\", "/"), code.co_name
    if "/distributed/deploy/" in file or (
        file.endswith("distributed/client.py") and name in _AFFAIRS
    ):
        return _OUTSIDE
    if any(file.endswith(f) and name == n for f, n in _WAITING):
        return _OUTSIDE
    if any(file.endswith(f) and name == n for f, n in _HANDING_OVER):
        return _HANDS_OVER
    if file.endswith("dask/tokenize.py"):
        return STEP["tokenize"]
    if name in _META:
        return STEP["meta"]
    if "/distributed/protocol/" in file:
        return STEP["graph.dump"]
    if name == "_optimized_dsk":
        return STEP["lowlevel"]
    if file.endswith("dask/order.py"):
        return STEP["order"]
    if file.endswith("dask/_expr.py") and name in _EXPR:
        return STEP["expr"]
    return STEP["materialize"] if name in _MATERIALIZE else _DASK


def look(frame: FrameType | None, depth: int = 0) -> tuple[int, str]:
    """The step that a stack is in and the user's line as "file:line"; (0, "") for `outside`.

    The innermost frame that names a step decides; Dask's frames without a name are `build`.
    Of the outermost frames `depth` are not looked at. The line is the one that called Dask; in an
    optimization the one that made what is being rewritten; "" where a whole graph is handed over.
    """
    step, outermost, line = 0, "", ""
    optimizing = handing_over = False
    frames = _frames(frame)
    for here in frames[: len(frames) - depth]:
        seen = _seen(here.f_code)
        if seen == _OUTSIDE:
            return 0, ""
        if seen == _USER:
            # A user's function called by Dask (meta inference) is not the line that called Dask.
            if outermost:
                line = line or f"{here.f_code.co_filename}:{here.f_lineno}"
        elif seen != _NONE:
            outermost, line = here.f_code.co_name, ""
            step = step or max(seen, 0)
            optimizing |= seen == STEP["expr"]
            handing_over |= seen == _HANDS_OVER
    if outermost in ("", "<module>"):  # a module of Dask being imported by the user is theirs
        return 0, ""
    if optimizing or handing_over:
        made = line_of_rewriting(frame) if optimizing else ("", 0)
        line = f"{made[0]}:{made[1]}" if made[0] else ""
    return step or STEP["build"], line


def _frames(frame: FrameType | None) -> list[FrameType]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


class Sampler:
    """Looks at one thread and emits spans of the steps of construction that it sees."""

    def __init__(self, ring: Ring, thread: int, task: Any = None, depth: int = 0) -> None:
        self._ring = ring
        self._thread = thread
        self._task = task
        self._depth = depth
        self._stop = threading.Event()
        self._state: tuple[int, str] = (0, "")
        self._since = self._last = now_ns()
        self.watch = Watch("sampler")
        #: nanoseconds of our own, and looks taken
        self.cost_ns = 0
        self.looks = 0
        self._worker = threading.Thread(target=self._run, name="stageprof-sampler", daemon=True)

    @classmethod
    def here(cls, ring: Ring, task: Any = None) -> Sampler:
        """A sampler of the calling thread, started."""
        frames = _frames(sys._getframe())
        inside = any(_seen(f.f_code) not in (_NONE, _USER) for f in frames)
        sampler = cls(ring, get_ident(), task, len(frames) if inside else 0)
        sampler._worker.start()
        return sampler

    def stop(self) -> None:
        """Stop looking and emit what is open; returns when the thread is gone."""
        self._stop.set()
        if self._worker.is_alive():
            self._worker.join()

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S) and not self.watch.disabled:
            start = now_ns()
            attempt(self.watch, self._once, start)
            self.looks += 1
            self.cost_ns += now_ns() - start
        attempt(self.watch, self.see, (0, ""), now_ns())

    def _once(self, t: int) -> None:
        self.see(self._look(), t)

    def _look(self) -> tuple[int, str]:
        if self._thread in waiting:
            return 0, ""
        if self._task is not None and asyncio.current_task(self._task.get_loop()) is not self._task:
            return 0, ""
        with uncollected():
            return look(sys._current_frames().get(self._thread), self._depth)

    def see(self, state: tuple[int, str], t: int) -> None:
        """The thread was seen in a state at `t`; a change closes the span before it."""
        last, self._last = self._last, t
        if state == self._state:
            return
        late = t - last > LATE * PERIOD_S * 1e9
        change = last if late else (last + t) // 2
        step, line = self._state
        if step and change > self._since:
            self._ring.emit((SPAN, step, self._since, change, self._thread, line, SAMPLED))
        self._state, self._since = state, change
