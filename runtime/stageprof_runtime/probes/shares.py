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

from stageprof_runtime.carried import Dumping, Loading, Part, here, loading, share
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import TASK_KINDS, place
from stageprof_runtime.guard import SELDOM, Watch, caught
from stageprof_runtime.patch import Emit, Undo, observe, replace, together
from stageprof_runtime.probes.scheduling import role
from stageprof_runtime.ring import SHORT_NS
from stageprof_runtime.stage import STEP

#: The classes of a task's description, by identity: classes of the user's are not compared.
NODES = frozenset(map(id, TASK_KINDS))


def install(emit: Emit) -> Undo:
    """Note whose the bytes in messages are from now on."""
    return together(
        [
            observe(*place("protocol.pickle"), functools.partial(_pickle, emit)),
            observe(*place("protocol.unpickle"), _unpickle),
            observe(*place("protocol.dump_data"), functools.partial(_dump_data, emit)),
            observe(*place("protocol.load_data"), _load_data),
        ]
    )


def _pickle(emit: Emit, dumps: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(dumps)
    def timed(x: Any, *args: Any, **kwargs: Any) -> Any:
        dump, hand_on = here.dump, kwargs.get("buffer_callback")
        if dump is None or hand_on is None or id(type(x)) not in NODES or watch.disabled:
            return dumps(x, *args, **kwargs)
        buffers: list[Any] = []
        kwargs["buffer_callback"] = buffers.append
        start = now_ns()
        out = dumps(x, *args, **kwargs)
        stop = now_ns()
        try:
            key = dump.last = x.key
            nbytes = len(out) + (_nbytes(buffers) if buffers else 0)
            if stop - start >= SHORT_NS:
                share(emit, dump.role, dump.step, key, start, stop, nbytes)
            else:
                dump.shorts.append((key, stop - start, nbytes))
            watch.calls = calls = watch.calls + 1
            if not calls % SELDOM:
                watch.took(now_ns() - stop, SELDOM)
        except BaseException as error:
            caught(error, watch)
        for buffer in buffers:  # Dask too hands them on when it is done
            hand_on(buffer)
        return out

    return timed


def _unpickle(loads: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(loads)
    def timed(x: Any, *args: Any, **kwargs: Any) -> Any:
        if here.load is False or watch.disabled:
            return loads(x, *args, **kwargs)
        start = now_ns()
        out = loads(x, *args, **kwargs)
        stop = now_ns()
        try:
            if id(type(out)) in NODES and (carried := loading()) is not None:
                buffers = kwargs.get("buffers")
                nbytes = len(x) + (_nbytes(buffers) if buffers else 0)
                if stop - start < SHORT_NS and not carried.before:
                    carried.shorts.append((out.key, stop - start, nbytes))
                else:
                    carried.task(out.key, start, stop, nbytes)
                watch.calls = calls = watch.calls + 1
                if not calls % SELDOM:
                    watch.took(now_ns() - stop, SELDOM)
        except BaseException as error:
            caught(error, watch)
        return out

    return timed


def _dump_data(emit: Emit, dump: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(dump)
    def timed(x: Any, *args: Any, **kwargs: Any) -> Any:
        if here.dump is None or watch.disabled:
            return dump(x, *args, **kwargs)
        start = now_ns()
        header, frames = dump(x, *args, **kwargs)
        try:
            stop = now_ns()
            _dumped(emit, here.dump, x, start, stop, frames)
            watch.calls = calls = watch.calls + 1
            if not calls % SELDOM:
                watch.took(now_ns() - stop, SELDOM)
        except BaseException as error:
            caught(error, watch)
        return header, frames

    return timed


def _dumped(emit: Emit, dump: Dumping, x: Any, start: int, stop: int, frames: Any) -> None:
    keys = dump.keys()
    if id(x) in keys:
        dump.last = keys[id(x)]
        share(emit, dump.role, dump.step, dump.last, start, stop, _nbytes(frames))


def _load_data(load: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(load)
    def timed(header: Any, frames: Any, *args: Any, **kwargs: Any) -> Any:
        carried = _loading(watch)
        if carried is None:
            return load(header, frames, *args, **kwargs)
        before, carried.before = carried.before, []
        here.load = False  # a value that is a task's description is a value
        start = now_ns()
        try:
            return load(header, frames, *args, **kwargs)
        finally:
            stop, here.load = now_ns(), carried
            try:
                carried.values.append(Part(start, stop, _nbytes(frames), before))
                watch.calls = calls = watch.calls + 1
                if not calls % SELDOM:
                    watch.took(now_ns() - stop, SELDOM)
            except BaseException as error:
                caught(error, watch)

    return timed


def _loading(watch: Watch) -> Loading | None:
    try:
        return None if watch.disabled else loading()
    except BaseException as error:
        caught(error, watch)
        return None


def _nbytes(buffers: Any) -> int:
    nbytes = 0
    for buffer in buffers:
        nbytes += memoryview(buffer).nbytes
    return nbytes


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
