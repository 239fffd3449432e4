"""The local schedulers: threads, processes and synchronous.

All three run `dask.local.get_async`, which is given where to submit, and how to dump and load.
Handing it our own (see `computation`) keeps the observation to this one computation:
`dask.callbacks` are global to the process, and an exception in one fails the user's compute().
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from stageprof_runtime import process, rounds
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.computation import Computation, begin, counts
from stageprof_runtime.context import lane_number, within
from stageprof_runtime.event import BLOCK, GRAPH, SPAN, SUBMIT
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.probes import failure
from stageprof_runtime.probes.stacks import end, running
from stageprof_runtime.shield import theirs
from stageprof_runtime.stage import STEP, Stage
from stageprof_runtime.underway import GAVE_UP, GIVES_UP, calls

#: The computation that the calling thread runs.
_current: ContextVar[Computation | None] = ContextVar("stageprof_local", default=None)


def install(emit: Emit) -> Undo:
    """Observe what the local schedulers run from now on."""
    begin()
    failure.begin()
    process.again[install] = lambda _: failure.begin()
    names = ("local.get_async", "threads.get_async", "processes.get_async")
    undos = [replace(*place(name), lambda f: _get_async(emit, f)) for name in names]
    undos.append(replace(*place("local.state"), _state))
    undos.append(replace(*place("local.queue_get"), lambda f: _queue_get(emit, f)))
    return together(undos)


def _get_async(emit: Emit, get_async: Callable[..., Any]) -> Callable[..., Any]:
    def timed(submit: Any, num_workers: int, dsk: Any, result: Any, *args: Any, **kw: Any) -> Any:
        computation = Computation(emit, submit)
        start = now_ns()
        dsk = _materialized(emit, dsk)
        _hand_over(computation, start, dsk, result)
        for name, step in (("dumps", "task.dump"), ("loads", "result.load")):
            if name in kw:
                setattr(computation, name, kw[name])
                kw[name] = computation.timed(kw[name], step)
        before, task = _current.get(), running.get(get_ident())
        try:
            _current.set(computation)
            with within("client", Stage.SCHEDULING):
                return get_async(computation.submit, num_workers, dsk, result, *args, **kw)
        finally:
            _current.set(before)
            end(task)  # one that ran on this thread may not have ended: an interrupt came between
            row = (SPAN, STEP["local.loop"], start, now_ns(), get_ident(), "get", 0)
            emit.row("client", row)

    return timed


def _materialized(emit: Emit, dsk: Any) -> Any:
    if isinstance(dsk, Mapping):
        return dsk
    with within("client", Stage.CONSTRUCTION):
        start = now_ns()
        dsk = theirs(dsk.__dask_graph__)
    emit.span("client", STEP["materialize"], start, now_ns())
    return dsk


def _hand_over(computation: Computation, start: int, dsk: Any, result: Any) -> None:
    file, line = rounds.count(sys._getframe(1))
    wanted = len(result) if isinstance(result, list) else 1
    submit = (SUBMIT, computation.graph, start, wanted, 0, lane_number() or get_ident(), file, line)
    computation.emit.row("client", submit)
    counts[0] += len(dsk)
    graph = (GRAPH, computation.graph, start, now_ns(), len(dsk), wanted, "local", -1)
    computation.emit.row("client", graph)


def _state(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def noted(*args: Any, **kwargs: Any) -> Any:
        state = make(*args, **kwargs)
        computation = _current.get()
        if computation is not None:
            computation.needs = state["dependencies"]
        return state

    return noted


def _queue_get(emit: Emit, queue_get: Callable[..., Any]) -> Callable[..., Any]:
    def timed(queue: Any) -> Any:
        start, thread, name = now_ns(), lane_number() or get_ident(), "local"
        try:
            calls[thread] = start, name
            result = queue_get(queue)
        except GIVES_UP:
            name += GAVE_UP
            raise
        else:
            return result
        finally:
            calls.pop(thread, None)
            emit.row("client", (BLOCK, start, now_ns(), thread, name, 0, 0, 0, ""))

    return timed
