"""What a stack that is seen from outside says: which step of construction the thread is in."""

from __future__ import annotations

import asyncio.events
import threading
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Final

from stageprof_runtime.codes import Codes
from stageprof_runtime.lines import DASK, USER, kind
from stageprof_runtime.probes.layers import line_of_rewriting
from stageprof_runtime.stage import STEP
from stageprof_runtime.tree import CODES

_META = frozenset(
    {
        "compute_meta", "make_meta", "meta_from_array", "_emulate", "emulate", "meta_nonempty",
        "apply_infer_dtype", "infer_dtype", "_meta", "meta", "_get_meta_map_partitions",
        "infer_storage_options", "_infer_meta", "meta_from_dd",
    }
)  # fmt: skip
_MATERIALIZE = frozenset({"__dask_graph__", "_layer", "_task", "_construct_graph", "to_dict"})
_EXPR = frozenset({"optimize", "optimize_until", "simplify", "lower_completely", "fuse"})

#: Starting and closing clusters and clients is the user's own affair: `outside`. So is what they
#: have done on servers that is no task.
_AFFAIRS = frozenset(
    {
        "__init__", "__exit__", "close", "restart", "restart_workers", "wait_for_workers",
        "shutdown", "run", "run_on_scheduler", "register_plugin", "register_worker_plugin",
        "register_scheduler_plugin", "unregister_worker_plugin", "upload_file",
    }
)  # fmt: skip

#: But futures are made by what hands graphs over, and gathered one by one.
_NO_AFFAIRS: Final = ("Future.", "FutureState.", "as_completed.")

_NONE, _DASK, _USER, _OUTSIDE, _HANDS_OVER, _WAITS, _SYNCS, _RUNS = 0, -1, -2, -3, -4, -5, -6, -7

#: Files and functions of Dask's that say more than the step they are in.
_NAMED: Final = {
    # Waiting is recorded exactly by its own probe; what is seen of it here is not construction.
    ("dask/local.py", "queue_get"): _WAITS,
    ("distributed/client.py", "__next__"): _WAITS,  # of `as_completed`
    # But of what comes here otherwise than by a client's call (`progress` does) no probe tells.
    ("distributed/utils.py", "sync"): _SYNCS,
    # A graph of all that is wanted is handed over: what is done there is not for the line that
    # called them but for the whole graph.
    ("dask/base.py", "compute"): _HANDS_OVER,
    ("dask/base.py", "persist"): _HANDS_OVER,
    ("distributed/client.py", "compute"): _HANDS_OVER,
    ("distributed/client.py", "persist"): _HANDS_OVER,
    # With what a local scheduler does around its loop: a pool of processes is made and ended.
    ("dask/local.py", "get_async"): STEP["local.loop"],
    ("dask/threaded.py", "get"): STEP["local.loop"],
    ("dask/multiprocessing.py", "get"): STEP["local.loop"],
}

#: In these of `threading` a thread waits for others: for a lock, an event, a future, their end.
_LOCKS: Final = frozenset({"wait", "join", "_wait_for_tstate_lock"})


def _judge(code: CodeType) -> int:  # noqa: C901, PLR0911 (a table of rules, read from above)
    whose = kind(code.co_filename)
    if whose == USER:
        return _USER
    if whose != DASK:
        return _RUNS if _runs(code) else _NONE
    file, name = code.co_filename.replace("\\", "/"), code.co_name
    in_client = file.endswith("distributed/client.py")
    affair = in_client and name in _AFFAIRS and not code.co_qualname.startswith(_NO_AFFAIRS)
    if affair or "/distributed/deploy/" in file:
        return _OUTSIDE
    for (where, called), says in _NAMED.items():
        if name == called and file.endswith(where):
            return says
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


def _runs(code: CodeType) -> bool:
    """Whether it is what an event loop runs everything with: coroutines and callbacks."""
    return code.co_name == "_run" and code.co_filename == asyncio.events.__file__


#: A step, or one of the numbers above, for one frame's code.
_seen: Final = Codes(_judge, CODES).of


#: What `look` says of a stack that waits in Dask, which is told exactly by its own probe; of one
#: that waits for other threads of the process; and of one that waits for Dask's loop.
WAITS: Final = -1
LOCKED: Final = -2
LOOPS: Final = -3
#: What `own_step` says of a function of Dask's that names no step, and of the user's own affairs.
DASKS: Final = -1
AFFAIR: Final = -2


#: What such a frame says of the whole stack.
_ENDS: Final = {_OUTSIDE: 0, _WAITS: WAITS, _SYNCS: LOOPS}


def _end(seen: int, outward: Sequence[FrameType]) -> int:
    """What such a frame says; who waits for the loop to start or close a cluster is at that."""
    affair = seen == _SYNCS and any(_seen(frame.f_code) == _OUTSIDE for frame in outward)
    return 0 if affair else _ENDS[seen]


def _locked(code: CodeType) -> bool:
    return code.co_name in _LOCKS and code.co_filename == threading.__file__


def own_step(code: CodeType) -> int:
    """The step that a function names; 0 if it is at that of its caller, `DASKS` or `AFFAIR`."""
    seen = _seen(code)
    if seen in (_OUTSIDE, _WAITS, _SYNCS):
        return AFFAIR
    return DASKS if seen in (_DASK, _HANDS_OVER) else max(seen, 0)


def is_dasks(code: CodeType) -> bool:
    """Whether a function is Dask's."""
    return _seen(code) not in (_NONE, _USER, _RUNS)


def loops_of(frames: Sequence[FrameType]) -> int:
    """How many event loops run on a thread, one in another."""
    return sum(_seen(frame.f_code) == _RUNS for frame in frames)


def _own(frames: Sequence[FrameType], depth: int, loops: int) -> Sequence[FrameType] | None:
    """The frames that are the user's doing; None where a loop that runs there does its own."""
    for i, frame in enumerate(frames):
        if _seen(frame.f_code) == _RUNS and loops_of(frames[i:]) > loops:
            asked = i > 0 and _seen(frames[i - 1].f_code) == _USER  # a coroutine of the user's
            return frames[:i] if asked else None
    return frames[: len(frames) - depth]


def look(frames: Sequence[FrameType], depth: int = 0, loops: int = 0) -> tuple[int, str]:
    """The step that a stack is in and the user's line as "file:line"; (0, "") for `outside`.

    A stack that waits is `WAITS`, `LOOPS` or `LOCKED`. Frames are given from the innermost outward.

    The innermost frame that names a step decides; Dask's frames without a name are `build`.
    Of the outermost frames `depth` are not looked at, and of event loops the outermost `loops` are
    not the program's. What the others do is their own, and the thread waits, but for coroutines of
    the user's. The line is the one that called Dask; in an optimization the one that made what is
    being rewritten; "" where a whole graph is handed over.
    """
    step, outermost, line = 0, "", ""
    optimizing = handing_over = False
    own = _own(frames, depth, loops)
    if own is None:
        return WAITS, ""
    for i, here in enumerate(own):
        seen = _seen(here.f_code)
        if seen in _ENDS:
            return _end(seen, own[i:]), ""
        if seen == _USER:
            # A user's function called by Dask (meta inference) is not the line that called Dask.
            if outermost:
                line = line or f"{here.f_code.co_filename}:{here.f_lineno}"
        elif seen not in (_NONE, _RUNS):
            outermost, line = here.f_code.co_name, ""
            step = step or max(seen, 0)
            optimizing |= seen == STEP["expr"]
            handing_over |= seen == _HANDS_OVER
    if outermost in ("", "<module>"):  # a module of Dask being imported by the user is theirs
        return (LOCKED if frames and _locked(frames[0].f_code) else 0), ""
    if optimizing or handing_over:
        made = line_of_rewriting(frames[0]) if optimizing else ("", 0)
        line = f"{made[0]}:{made[1]}" if made[0] else ""
    return step or STEP["build"], line
