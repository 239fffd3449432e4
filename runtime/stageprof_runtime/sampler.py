"""Looking at the region's thread from outside: what of construction nothing else can see.

Dask offers no hook for collection methods, tokenizing and meta inference, so a thread of ours
looks at the stack of the region's thread every `PERIOD_S` at first and says, from Dask's frames on
it, which step it is in; frames of the user's alone are `outside` and give no span.

The stacks that it sees are told, too, by step (`event.FLAME`); each stands for half the time to the
look before it and half the time to the one after.

A profiler inside the thread (`sys.setprofile`, pyinstrument's) was measured to double the time
of a loop of `delayed` calls; looking from outside costs most programs about one in a hundred, and
some more that give the GIL up very often (the figures are in docs/profiles.md).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Sequence
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.codes import Codes
from stageprof_runtime.context import waiting
from stageprof_runtime.event import SAMPLED, SPAN
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.lines import DASK, USER, kind
from stageprof_runtime.looker import GOLDEN, for_bytecode
from stageprof_runtime.probes.layers import line_of_rewriting
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import OUTSIDE, STEP
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.stem import Stem, frames_of
from stageprof_runtime.stopped import clock_of, idle, used_ns, work
from stageprof_runtime.tree import CODES, Spot, spots

#: Seconds between two looks.
PERIOD_S = 0.02
#: After so many since it waited in Dask last, which are 5 s, half as often, and after as many more
#: half of that: what began so long ago is told as well by fewer.
OFTEN: Final = 250
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

_NONE, _DASK, _USER, _OUTSIDE, _HANDS_OVER, _WAITS = 0, -1, -2, -3, -4, -5


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
        return _WAITS
    if any(file.endswith(f) and name == n for f, n in _HANDING_OVER):
        return _HANDS_OVER
    if file.endswith("dask/tokenize.py"):
        return STEP["tokenize"]
    if file.endswith("dask/local.py") and name == "get_async":
        return STEP["local.loop"]
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


#: A step, or one of the numbers above, for one frame's code.
_seen: Final = Codes(_judge, CODES).of


#: What `look` says of a stack that waits in Dask, which is told exactly by its own probe.
WAITS: Final = -1
#: What `own_step` says of a function of Dask's that names no step, and of the user's own affairs.
DASKS: Final = -1
AFFAIR: Final = -2


def own_step(code: CodeType) -> int:
    """The step that a function names; 0 if it is at that of its caller, `DASKS` or `AFFAIR`."""
    seen = _seen(code)
    if seen in (_OUTSIDE, _WAITS):
        return AFFAIR
    return DASKS if seen in (_DASK, _HANDS_OVER) else max(seen, 0)


def look(frames: Sequence[FrameType], depth: int = 0) -> tuple[int, str]:
    """The step that a stack is in and the user's line as "file:line"; (0, "") for `outside`.

    A stack that waits in Dask is `WAITS`. Frames are given from the innermost outward.

    The innermost frame that names a step decides; Dask's frames without a name are `build`.
    Of the outermost frames `depth` are not looked at. The line is the one that called Dask; in an
    optimization the one that made what is being rewritten; "" where a whole graph is handed over.
    """
    step, outermost, line = 0, "", ""
    optimizing = handing_over = False
    for here in frames[: len(frames) - depth]:
        seen = _seen(here.f_code)
        if seen in (_OUTSIDE, _WAITS):
            return (WAITS if seen == _WAITS else 0), ""
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
        made = line_of_rewriting(frames[0]) if optimizing else ("", 0)
        line = f"{made[0]}:{made[1]}" if made[0] else ""
    return step or STEP["build"], line


class Stood(NamedTuple):
    """Where the thread was seen: the step, what it did, and its stack."""

    step: int
    how: str
    stack: list[Spot]


class Sampler:
    """Looks at one thread and emits the spans of construction, and the stacks, that it sees."""

    def __init__(
        self, ring: Ring, thread: int, task: Any = None, depth: int = 0, stem: Stem | None = None
    ) -> None:
        self._ring = ring
        self._thread = thread
        self._task = task
        self._depth = depth
        self._stem = stem or Stem([])
        self._clock = clock_of(thread) if thread == get_ident() else 0
        self._used = used_ns(self._clock)
        self._stop = threading.Event()
        self._state: tuple[int, str] = (0, "")
        #: where the thread stood when it was looked at last, and ns before that which are for it
        self._stood: Stood | None = None
        self._stood_ns = 0
        self._since = self._last = now_ns()
        self.watch = Watch("sampler")
        #: nanoseconds of a processor that its thread used, and looks taken
        self.cost_ns = 0
        self.looks = 0
        self._period_s = PERIOD_S
        self._worker = threading.Thread(target=self._run, name="stageprof-sampler", daemon=True)

    @classmethod
    def here(cls, ring: Ring, task: Any = None) -> Sampler:
        """A sampler of the calling thread, started."""
        frames = frames_of(sys._getframe())
        inside = any(_seen(f.f_code) not in (_NONE, _USER) for f in frames)
        depth = len(frames) if inside else 0
        sampler = cls(ring, get_ident(), task, depth, Stem(frames))
        sampler._worker.start()
        return sampler

    def stop(self) -> None:
        """Stop looking and emit what is open; returns when the thread is gone."""
        self._stop.set()
        waiting.tell()
        if self._worker.is_alive():
            self._worker.join()

    def _run(self) -> None:
        asked, awake = now_ns(), 0
        while not self._stop.wait(self._period_s) and not self.watch.disabled:
            start = now_ns()
            attempt(self.watch, self._once, start, (start - asked) / 1e9 - self._period_s)
            self.looks += 1
            awake += 1
            self._period_s = PERIOD_S * (1 << min(awake // OFTEN, 2))
            self.cost_ns = thread_ns()  # with what it takes to wake
            if self._thread in waiting:
                self._rest()
                awake = 0
            asked = now_ns()
        attempt(self.watch, self._end, now_ns())

    def _rest(self) -> None:
        """The thread waits in Dask, mostly for much longer than our period.

        The first look after it comes at any part of a period, or what a loop does between its waits
        would be seen always or never.
        """
        waiting.until(self._stop.is_set, self._thread)
        self._last = now_ns()
        self._period_s = PERIOD_S * (self.looks * GOLDEN % 1)

    def _once(self, t: int, late_s: float) -> None:
        state, stood = self._look(t, waited=for_bytecode(late_s, 1))
        self.stand(stood, t)
        self.see(state, t)

    def _end(self, t: int) -> None:
        self.stand(None, t)
        self.see((0, ""), t)

    def _look(self, t: int, *, waited: bool) -> tuple[tuple[int, str], Stood | None]:
        if self._thread in waiting:
            return (0, ""), None
        if self._task is not None and asyncio.current_task(self._task.get_loop()) is not self._task:
            return (0, ""), None
        with uncollected():
            frames = frames_of(sys._current_frames().get(self._thread))
            step, line = look(frames, self._depth)
            if step == WAITS or not frames or self._thread in running:  # others look at tasks
                return (max(step, 0), line), None
            return (step, line), self._stack(frames, step or OUTSIDE, t, waited=waited)

    def _stack(self, frames: list[FrameType], step: int, t: int, *, waited: bool) -> Stood | None:
        stack = spots(self._stem.rest(frames))
        if not stack:  # the region is just beginning or ending
            return None
        used, before = used_ns(self._clock), self._used
        self._used = used
        wall = t - self._last
        if min(before, used) >= 0 and step != OUTSIDE:
            # of other looks the clock was not read
            self._ring.cpu(step, wall, min(used - before, wall))
        idling = before >= 0 and idle(used - before, wall, 1)
        how = work(frames[0], "", waited=waited, idling=idling)
        return Stood(step, how, stack)

    def stand(self, stood: Stood | None, t: int) -> None:
        """The thread stood there at `t`; to be called before `see`."""
        gap = max(t - self._last, 0)
        mine = gap if self._late(t) else gap // 2
        if self._stood is not None:
            step, how, stack = self._stood
            self._ring.flame(step, "", how, stack, self._stood_ns + gap - mine)
        self._stood, self._stood_ns = stood, mine

    def _late(self, t: int) -> bool:
        return t - self._last > LATE * max(self._period_s, PERIOD_S) * 1e9

    def see(self, state: tuple[int, str], t: int) -> None:
        """The thread was seen in a state at `t`; a change closes the span before it."""
        late, last, self._last = self._late(t), self._last, t
        if state == self._state:
            return
        change = last if late else (last + t) // 2
        step, line = self._state
        if step and change > self._since:
            self._ring.emit((SPAN, step, self._since, change, self._thread, line, SAMPLED))
        self._state, self._since = state, change
