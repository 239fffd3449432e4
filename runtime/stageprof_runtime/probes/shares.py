"""Whose each second of a step is: tasks and values inside messages, collections inside a graph.

A message holds tasks of several layers and values of several keys. Each is pickled by itself, so
its time and bytes are taken where that happens and summed by the layer that its key names: where
one layer's tasks are heavy, sharing a step out by counting tasks would blame the others.

Likewise the low-level optimization of a graph runs one optimizer after the other, each for the
collections that brought it. What Dask's own take is for the whole graph; what a collection's own
takes is that collection's.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from stageprof_runtime.carried import here, share
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import TASK_KINDS, place
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.probes.scheduling import role
from stageprof_runtime.stage import STEP

#: The classes of a task's description, by identity: classes of the user's are not compared.
NODES = frozenset(map(id, TASK_KINDS))


def install(_emit: Emit) -> Undo:
    """Note whose the bytes in messages are from now on."""
    return together(
        [
            replace(*place("protocol.pickle"), _pickle),
            replace(*place("protocol.unpickle"), _unpickle),
            replace(*place("protocol.dump_data"), _dump_data),
            replace(*place("protocol.load_data"), _load_data),
        ]
    )


def _pickle(dumps: Callable[..., Any]) -> Callable[..., Any]:
    def timed(x: Any, *, buffer_callback: Any = None, **kwargs: Any) -> Any:
        carried = here.dump
        if carried is None or buffer_callback is None or id(type(x)) not in NODES:
            return dumps(x, buffer_callback=buffer_callback, **kwargs)
        buffers: list[Any] = []
        start = now_ns()
        out = dumps(x, buffer_callback=buffers.append, **kwargs)
        stop, nbytes = now_ns(), len(out)
        for buffer in buffers:  # Dask too hands them on when it is done
            nbytes += memoryview(buffer).nbytes
            buffer_callback(buffer)
        carried.last = x.key
        carried.add(x.key, start, stop, nbytes)
        return out

    return timed


def _unpickle(loads: Callable[..., Any]) -> Callable[..., Any]:
    def timed(x: Any, *, buffers: Any = ()) -> Any:
        carried = here.load
        if carried is None:
            return loads(x, buffers=buffers)
        start = now_ns()
        out = loads(x, buffers=buffers)
        if id(type(out)) in NODES:
            stop, nbytes = now_ns(), len(x)
            if buffers:
                nbytes += sum(memoryview(buffer).nbytes for buffer in buffers)
            carried.loaded(out.key, start, stop, nbytes)
        return out

    return timed


def _dump_data(dump: Callable[..., Any]) -> Callable[..., Any]:
    def timed(x: Any, *args: Any, **kwargs: Any) -> Any:
        carried = here.dump
        if carried is None or id(x) not in carried.keys:
            return dump(x, *args, **kwargs)
        start = now_ns()
        header, frames = dump(x, *args, **kwargs)
        stop, carried.last = now_ns(), carried.keys[id(x)]
        nbytes = sum(memoryview(frame).nbytes for frame in frames)
        carried.add(carried.last, start, stop, nbytes)
        return header, frames

    return timed


def _load_data(load: Callable[..., Any]) -> Callable[..., Any]:
    def timed(header: Any, frames: Any, *args: Any, **kwargs: Any) -> Any:
        carried = here.load
        if carried is None:
            return load(header, frames, *args, **kwargs)
        nbytes = sum(memoryview(frame).nbytes for frame in frames)
        before, carried.before = carried.before, []
        here.load = None  # a value that is a task's description is a value
        start = now_ns()
        try:
            return load(header, frames, *args, **kwargs)
        finally:
            here.load = carried
            carried.values.append((start, now_ns(), nbytes, before))

    return timed


# -- collections ------------------------------------------------------------------------------


class _Optimizing(threading.local):
    """The optimizer that runs on this thread: the key that it is for, and since when."""

    depth: int = 0
    key: Any = None
    since: int = 0


_optimizing = _Optimizing()


def install_optimizers(emit: Emit) -> Undo:
    """Note for which collection a low-level optimizer of its own runs."""
    properties = [
        replace(*place(where), lambda f: _optimized(emit, f))
        for where in ("expr.hlg", "expr.hlg_sequence")
    ]
    return together([replace(*place("expr.hlg_keys"), lambda f: _keys(emit, f)), *properties])


def _optimized(emit: Emit, prop: Any) -> Any:
    def noted(self: Any) -> Any:
        _optimizing.depth += 1
        try:
            return prop.func(self)
        finally:
            _end(emit)
            _optimizing.depth -= 1

    seen = functools.cached_property(noted)
    seen.__set_name__(object, "_optimized_dsk")
    return seen


def _keys(emit: Emit, keys: Callable[..., Any]) -> Callable[..., Any]:
    """Dask asks each graph for its keys right before it calls that graph's optimizer."""

    def noted(self: Any) -> Any:
        found = keys(self)
        if _optimizing.depth:
            _end(emit)
            if _of_its_own(self.operand("low_level_optimizer")):
                _optimizing.key, _optimizing.since = _first(found), now_ns()
        return found

    return noted


def _end(emit: Emit) -> None:
    key, _optimizing.key = _optimizing.key, None
    if key is not None:
        share(emit, role(), STEP["lowlevel"], key, _optimizing.since, now_ns())


def _of_its_own(optimizer: Any) -> bool:
    """Whether an optimizer is not one of Dask's."""
    if type(optimizer) is MethodType:
        optimizer = optimizer.__func__
    if optimizer is None:
        return False
    kind = optimizer if type(optimizer) is FunctionType else type(optimizer)
    module = kind.__module__ if type(kind) in (FunctionType, type) else ""
    return not str(module).startswith("dask.")


def _first(keys: Any) -> Any:
    """The first key in nested lists of keys."""
    while type(keys) is list and keys:
        keys = keys[0]
    return keys
