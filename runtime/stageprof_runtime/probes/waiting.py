"""The caller waiting for the cluster: blocking calls of clients, and what they waited for.

A row of BLOCK says from when to when a thread (or an async region's task) waited, when the last
key that it needed was known to be done, and which part of it fetched results. Starting and
closing clients and clusters is the user's own affair and is left out.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from types import CoroutineType, FrameType, FunctionType, MethodType
from typing import Any, Final

from stageprof_runtime import process, rounds
from stageprof_runtime.awaited import LOOK
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import lane_number
from stageprof_runtime.context import waiting as waiting_threads
from stageprof_runtime.coordination import WAITS, waits_for
from stageprof_runtime.event import BLOCK, SUBMIT
from stageprof_runtime.fetched import fetched
from stageprof_runtime.guard import Watch
from stageprof_runtime.lines import user_line
from stageprof_runtime.made import Lines, forget, noting
from stageprof_runtime.patch import Emit, Undo, observe, replace, together
from stageprof_runtime.probes import layers
from stageprof_runtime.probes.arrivals import arrived, last
from stageprof_runtime.probes.locks import held_up
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.shield import shield
from stageprof_runtime.stage import STEP
from stageprof_runtime.underway import GAVE_UP, GIVES_UP, LONG_NS, NOT_OURS, calls, ended

#: What `submit` and `map` hand over: nothing but the keys has a name that tasks have.
_OF_KEYS: Final = frozenset({"LLGExpr", "_MapExpr"})

#: Numbers of the graphs that clients of this process hand over.
_numbers: Final = itertools.count()


#: Calls that have a block of their own where they are awaited.
_TIMED: Final = frozenset({"_gather", "_wait", "_result"})


class _Handing(threading.local):
    #: of the graph that this thread handed over last
    number: int = -1


handing: Final = _Handing()


class _Fetch:
    """When results were being fetched during one blocking call."""

    def __init__(self) -> None:
        self.start = 0
        self.stop = 0


_fetch: ContextVar[_Fetch | None] = ContextVar("stageprof_fetch", default=None)


def install(emit: Emit) -> Undo:
    """Time what blocks a client's caller, synchronous and asynchronous, and hand-overs."""
    with noting(emit) as lines:
        if not process.uses(layers.install):  # a worker, on which only tasks make graphs
            process.again[install] = lines.tell
        return together(
            [
                forget,
                observe(
                    *place("client.sync"), lambda f, w: shield(f, lambda g: _sync(emit, g, w), w)
                ),
                replace(*place("client.next"), lambda f: _next(emit, f)),
                replace(*place("client.next_by_name"), lambda f: _next(emit, f)),
                replace(*place("client.gather_remote"), _gather_remote),
                replace(*place("client.gather"), lambda f: _awaited(emit, f, "gather")),
                replace(*place("client.wait"), lambda f: _awaited(emit, f, "wait")),
                replace(*place("client.result"), lambda f: _awaited(emit, f, "result")),
                replace(*place("client.anext"), lambda f: _awaited(emit, f, "next")),
                replace(*place("client.submit"), lambda f: _submit(emit, lines, f)),
                replace(*place("client.send"), lambda f: _send(emit, f)),
                replace(*place("actor.result"), lambda f: _actor_result(emit, f)),
                replace(*place("actor.awaited"), lambda f: _awaited(emit, f, "actor")),
                arrived.clear,
                fetched.clear,
                rounds.forget,
            ]
        )


def _sync(emit: Emit, sync: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    def timed(self: Any, func: Any, *args: Any, asynchronous: Any = None, **kwargs: Any) -> Any:
        name, here = _name(func), sys._getframe(1)
        if asynchronous is None:
            asynchronous = self.asynchronous
        mine = name not in NOT_OURS and _is_client(self)
        if asynchronous or not mine:
            result = sync(self, func, *args, asynchronous=asynchronous, **kwargs)
            if not mine or name in _TIMED or not lane_number():
                return result
            others = waits_for(here)
            if others and lane_number() > 0:  # any coroutine of the thread: one may only listen
                return result
            name = f"{WAITS}{others}" if others else name
            return _to_be_awaited(emit, result, name, (func, args), watch)
        others = waits_for(here)
        name = f"{WAITS}{others}" if others else name
        fetch, around = _Fetch(), _fetch.get()
        thread = get_ident()
        before, inside = calls.get(thread), thread in waiting_threads
        start = now_ns()
        try:  # an interrupt may come at any time: nothing of this may stay
            _fetch.set(fetch)
            waiting_threads.add(thread)
            calls[thread] = start, name
            return sync(self, func, *args, asynchronous=asynchronous, **kwargs)
        except GIVES_UP:
            name += "" if others else GAVE_UP
            raise
        finally:
            if not inside:
                waiting_threads.discard(thread)
            _fetch.set(around)
            ended(thread, before)
            stop = now_ns()
            if others and thread in running:
                held_up(emit, here, others, start, stop)
            else:
                _block(emit, start, stop, thread, name, fetch, (func, args), here)

    return timed


def _to_be_awaited(emit: Emit, result: Any, call: str, needs: object, watch: Watch) -> Any:
    """What an asynchronous call gave, in an async region: a block once it is awaited."""
    if type(result) is not CoroutineType:
        return result

    async def given() -> Any:
        return await result

    given.__name__, given.__qualname__ = result.__name__, result.__qualname__
    made = shield(given, lambda f: _awaited(emit, f, call, needs), watch)()
    # Whoever cancels it before it runs is not told that what is in it was never awaited.
    weakref.finalize(made, result.close).atexit = False
    return made


def _name(function: Any) -> str:
    """What a function is called; of anything else that is called, nothing is asked."""
    function = function.__func__ if type(function) is MethodType else function
    if type(function) is not FunctionType:
        return ""
    # A function of a method's own has no name in some: "Client.upload_file.<locals>._".
    name, _, inner = function.__qualname__.partition(".<locals>.")
    return name.rpartition(".")[2] if inner == "_" else function.__name__


def _is_client(owner: Any) -> bool:
    """Clients, and what waits through one (actors, queues, ...); not clusters."""
    cluster = sys.modules.get("distributed.deploy.cluster")
    return cluster is None or not isinstance(owner, cluster.Cluster)


def _block(
    emit: Emit,
    start: int,
    stop: int,
    thread: int,
    call: str,
    fetch: _Fetch,
    needs: object,
    here: FrameType | None = None,
) -> None:
    came, key = last(needs, fetch.start or stop)
    row = (BLOCK, start, stop, thread, call, came, fetch.start, fetch.stop, key)
    emit.row("client", row)
    if fetch.start and here is not None:
        fetched.call(here)


def _next(emit: Emit, advance: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any) -> Any:
        start, thread, name = now_ns(), get_ident(), "as_completed"
        future: list[Any] = []
        try:
            calls[thread] = start, name
            result = advance(self)
            # With its result, which is the user's, comes a pair.
            future.append(result[0] if type(result) is tuple else result)
        except GIVES_UP:
            name += GAVE_UP
            raise
        else:
            return result
        finally:
            calls.pop(thread, None)
            stop = now_ns()
            if future or stop - start >= LONG_NS:  # else nothing was left to wait for
                _block(emit, start, stop, thread, name, _Fetch(), future)

    return timed


def _gather_remote(gather_remote: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        fetch = _fetch.get() or _Fetch()
        fetch.start = now_ns()
        try:
            response = await gather_remote(self, *args, **kwargs)
        finally:
            fetch.stop = now_ns()
        fetched.note(response.get("data") or {})
        return response

    return timed


def _awaited(
    emit: Emit, function: Callable[..., Any], call: str, needs: object = ()
) -> Callable[..., Any]:
    """An awaitable of the client's: a block if it is awaited by an async region's own task."""

    @functools.wraps(function)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        ours = lane_number()
        if not ours or _fetch.get() is not None:
            return await function(*args, **kwargs)
        fetch = _Fetch()
        token = _fetch.set(fetch)
        start, name = now_ns(), call
        try:
            calls[ours] = start, call
            return await function(*args, **kwargs)
        except GIVES_UP:
            name += "" if call.startswith(WAITS) else GAVE_UP
            raise
        finally:
            calls.pop(ours, None)
            stop = now_ns()
            _fetch.reset(token)
            _block(emit, start, stop, ours, name, fetch, needs or args, sys._getframe(1))

    return timed


def _submit(emit: Emit, lines: Lines, submit: Callable[..., Any]) -> Callable[..., Any]:
    """Building futures and a message: construction, but for the dump inside it."""

    def timed(self: Any, expr: Any, keys: Any, *args: Any, **kwargs: Any) -> Any:
        start = now_ns()
        futures = submit(self, expr, keys, *args, **kwargs)
        file, line = user_line(sys._getframe(1))
        if type(expr).__name__ in _OF_KEYS:
            lines.together(itertools.islice(futures, LOOK), (file, line))
        emit.span("client", STEP["build"], start, now_ns(), f"{file}:{line}" if line else "")
        return futures

    return timed


def _send(emit: Emit, send: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, msg: Any) -> Any:
        if msg.get("op") == "update-graph":
            handing.number = number = next(_numbers)
            line = rounds.count(sys._getframe(1))
            thread, frames = lane_number() or get_ident(), msg["expr_ser"].frames
            nbytes = sum(memoryview(frame).nbytes for frame in frames)
            row = (SUBMIT, number, now_ns(), len(msg["keys"]), nbytes, thread, *line)
            emit.row("client", row)
        return send(self, msg)

    return timed


def _actor_result(emit: Emit, result: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        start, thread = now_ns(), get_ident()
        try:
            calls[thread] = start, "actor"
            return result(self, *args, **kwargs)
        finally:
            calls.pop(thread, None)
            _block(emit, start, now_ns(), thread, "actor", _Fetch(), ())

    return timed
