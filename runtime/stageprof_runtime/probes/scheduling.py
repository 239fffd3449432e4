"""Steps `materialize`, `lowlevel`, `order`, `state`, `transition`: a graph entering a scheduler.

The functions are the same for dask.distributed and for the local schedulers; whose they are is
told by the thread: the scheduler's loop and the offload thread, or any other.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import within
from stageprof_runtime.event import ASSIGN, FINISH, STATUS
from stageprof_runtime.graphs import holds
from stageprof_runtime.guard import SELDOM, Watch, attempt, caught
from stageprof_runtime.operations import operations, optimized
from stageprof_runtime.patch import Emit, Undo, observe, replace, together
from stageprof_runtime.stage import STEP, stage_of

_loops: Counter[int] = Counter()
#: id of a scheduler -> when its transitions began, ns, whose first one is made before the others
_begun: Final[dict[int, int]] = {}


def install(emit: Emit) -> Undo:
    """Time materializing, low-level optimization, ordering and state, wherever they run."""
    steps = {
        "scheduler.materialize": "materialize",
        "scheduler.cull": "lowlevel",
        "order": "order",
    }
    undos = [replace(*place("scheduler.state"), functools.partial(_state, emit))]
    undos += [
        observe(*place("scheduler.transitions"), functools.partial(_transitions, emit)),
        observe(*place("scheduler.finished"), _ended),
        observe(*place("scheduler.erred"), _ended),
    ]
    undos += [
        replace(*place(where), functools.partial(_timed, emit, STEP[step]))
        for where, step in steps.items()
    ]
    undos += [
        replace(*place(where), functools.partial(_cached, emit))
        for where in ("expr.hlg", "expr.hlg_sequence")
    ]
    undos.append(observe(*place("scheduler.send_task"), functools.partial(_sent, emit)))
    return together(undos)


def _sent(emit: Emit, send: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """A task that is stolen goes to another worker as a new run, without a transition."""

    @functools.wraps(send)
    def noted(self: Any, worker: Any, ts: Any, *args: Any, **kwargs: Any) -> Any:
        old = None if watch.disabled else getattr(ts, "run_id", None)
        try:
            return send(self, worker, ts, *args, **kwargs)
        finally:
            if old is not None and ts.run_id != old:
                attempt(watch, _stolen, emit, worker, ts, old)

    return noted


def _stolen(emit: Emit, worker: Any, ts: Any, old: int) -> None:
    t = now_ns()
    emit.row("scheduler", (FINISH, old, t, STATUS.index("released"), 0, ""))
    emit.row("scheduler", (ASSIGN, ts.run_id, t, worker, old, ts.key))


def install_local(emit: Emit) -> Undo:
    """The same for the names that the local schedulers imported."""
    steps = {
        "order.local": "order",
        "local.state": "state",
        "processes.cull": "lowlevel",
        "processes.fuse": "lowlevel",
    }
    return together(
        [
            replace(*place(where), functools.partial(_timed, emit, STEP[step]))
            for where, step in steps.items()
        ]
    )


def here_is_loop() -> Undo:
    """Remember the calling thread as a scheduler's event loop."""
    ident = threading.get_ident()
    _loops[ident] += 1

    def undo() -> None:
        _loops[ident] -= 1
        if _loops[ident] <= 0:
            del _loops[ident]

    return undo


def role() -> str:
    """The role of the calling thread in what is shared by scheduler and client."""
    if not _loops:
        return "client"
    if threading.get_ident() in _loops:  # most often, and without looking for its name
        return "scheduler"
    offloaded = threading.current_thread().name.startswith("Dask-Offload")
    return "scheduler" if offloaded else "client"


def _timed(emit: Emit, step: int, function: Callable[..., Any]) -> Callable[..., Any]:
    stage = stage_of(step)

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        who = role()
        with within(who, stage, step):
            start, cpu = now_ns(), thread_ns()
            try:
                return function(*args, **kwargs)
            finally:
                emit.span(who, step, start, now_ns(), cpu=cpu)

    return timed


def _state(emit: Emit, function: Callable[..., Any]) -> Callable[..., Any]:
    """The step `state`; and how many tasks the graph holds: plugins are told what it needs too."""
    timed = _timed(emit, STEP["state"], function)

    @functools.wraps(function)
    def told(*args: Any, **kwargs: Any) -> Any:
        holds(len(kwargs.get("dsk") or ()))
        return timed(*args, **kwargs)

    return told


def _ended(function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """A run has ended: what becomes of its own task is decided here, and the others follow.

    With what plugins do at it, it is most of what the scheduler does for a task.
    """

    @functools.wraps(function)
    def begun(self: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.disabled:
            return function(self, *args, **kwargs)
        _begun[id(self)] = now_ns()
        try:
            return function(self, *args, **kwargs)
        except BaseException:
            _begun.pop(id(self), None)  # no others follow
            raise

    return begun


def _transitions(emit: Emit, function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    """The same for transitions: twice for every task, on the scheduler's loop and nowhere else."""
    step = STEP["transition"]

    @functools.wraps(function)
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        start = _begun.pop(id(self), 0) or now_ns()
        if watch.disabled:
            return function(self, *args, **kwargs)
        watch.calls = calls = watch.calls + 1
        try:
            return function(self, *args, **kwargs)
        finally:
            stop = now_ns()
            try:
                emit.span("scheduler", step, start, stop)
                if not calls % SELDOM:
                    watch.took(now_ns() - stop, SELDOM)
            except BaseException as error:
                caught(error, watch)

    return timed


def _cached(emit: Emit, prop: functools.cached_property[Any]) -> functools.cached_property[Any]:
    optimize = _timed(emit, STEP["lowlevel"], prop.func)

    def counted(self: Any) -> Any:
        graph = optimize(self)
        optimized(emit, role(), STEP["lowlevel"], operations(self), graph)
        return graph

    timed = functools.cached_property(counted)
    timed.__set_name__(object, "_optimized_dsk")
    return timed
