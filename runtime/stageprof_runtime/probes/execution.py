"""Step `compute`: a task's function running on a worker's thread.

The worker plugin notes when a task came and when its dependencies were there; here the function
itself is timed, on its thread and by the worker's own clock.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Final

from stageprof_runtime import process
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place, run_id
from stageprof_runtime.context import inside
from stageprof_runtime.event import RUN, TURN
from stageprof_runtime.guard import SELDOM, Watch, attempt, caught
from stageprof_runtime.patch import Emit, Undo, observe, replace, replace_item, together
from stageprof_runtime.probes import failure, frames, stacks
from stageprof_runtime.stage import STEP, Stage
from stageprof_runtime.turns import in_turns

_EXECUTING: Final = ("worker", Stage.EXECUTION)
#: key -> when it came and when it was ready, of the tasks on the workers of this process. Tuples of
#: numbers are nothing to the garbage collector; there may be many.
pending: dict[Any, tuple[int, int]] = {}
#: thread -> key of the run that it is at, since when, and its processor clock then
begun: Final[dict[int, tuple[Any, int, int]]] = {}
TURNS: Final = Watch("worker.turns")


def install(emit: Emit) -> Undo:
    """Time task functions, synchronous and asynchronous."""
    failure.begin()
    process.again[install] = lambda _: failure.begin()
    return together(
        [
            observe(*place("worker.run"), functools.partial(_run, emit)),
            replace(*place("worker.run_async"), lambda f: _run_async(emit, f)),
            pending.clear,
            begun.clear,
        ]
    )


def finished(
    emit: Emit, worker: Any, key: object, start: int, stop: int, thread: int, cpu: int
) -> None:
    """Emit the row of a run; the worker must still know the key."""
    received, ready = pending.pop(key, (start, start))
    run = run_id(worker, key)
    if run >= 0:
        address = worker.contact_address
        row = (RUN, run, received, ready, start, stop, thread, cpu, address)
        emit.row_of("worker", address, row)


def _run(emit: Emit, run_task: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(run_task)
    def timed(task: Any, data: Any, execution_state: Any, key: Any, *rest: Any) -> Any:
        if watch.disabled:
            return run_task(task, data, execution_state, key, *rest)
        watch.calls = calls = watch.calls + 1
        entered = 0 if calls % SELDOM else now_ns()
        at, inside.at = inside.at, _EXECUTING
        before = message = None
        try:
            before = stacks.begin("worker", key)
        except BaseException as error:
            caught(error, watch)
        thread, cpu, start = get_ident(), thread_ns(), now_ns()
        begun[thread] = key, start, cpu
        try:
            message = run_task(task, data, execution_state, key, *rest)
            return message
        finally:
            stop, cpu = now_ns(), thread_ns() - cpu
            inside.at = at
            try:
                begun.pop(thread, None)
                stacks.end(before)
                finished(emit, execution_state["worker"], key, start, stop, thread, cpu)
                if type(message) is dict:
                    if type(result := message.get("result")).__name__ == "DataFrame":
                        frames.made(emit, key, result)
                    elif "actual_exception" in message:
                        _raised(emit, execution_state["worker"], key, message)
                if entered:
                    watch.took(start - entered + now_ns() - stop, SELDOM)
            except BaseException as error:
                caught(error, watch)

    return timed


def _run_async(emit: Emit, run_task: Callable[..., Any]) -> Callable[..., Any]:
    async def timed(task: Any, *args: Any, **kwargs: Any) -> Any:
        from distributed.worker import get_worker

        key, worker = getattr(task, "key", None), get_worker()
        tell = functools.partial(attempt, TURNS, _turn, emit, worker, key)
        start, message = now_ns(), None
        try:
            message = await in_turns(run_task(task, *args, **kwargs), tell)
            return message
        finally:
            # Its thread is the event loop's, which other tasks share: a lane of its own.
            finished(emit, worker, key, start, now_ns(), get_ident(), 0)
            _raised(emit, worker, key, message)

    return timed


def _turn(emit: Emit, worker: Any, key: object, *times: int) -> None:
    emit.row_of("worker", worker.contact_address, (TURN, run_id(worker, key), *times))


def _raised(emit: Emit, worker: Any, key: object, message: Any) -> None:
    """Say which exception it was, if that is what Dask's message of a task's end says."""
    if type(message) is dict and "actual_exception" in message:
        failure.failed(emit, "worker", worker.contact_address, key, message["actual_exception"])


@dataclass(frozen=True)
class Actors:
    """A probe: times calls of one worker's actors; its handlers are bound when it starts."""

    worker: Any

    def __call__(self, emit: Emit) -> Undo:
        """Time what this worker's actors do from now on."""
        return replace_item(self.worker.handlers, "actor_execute", lambda f: _actor(emit, f))


def _actor(emit: Emit, actor_execute: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(actor_execute)
    async def timed(*args: Any, **kwargs: Any) -> Any:
        start = now_ns()
        try:
            return await actor_execute(*args, **kwargs)
        finally:
            label = f"{kwargs.get('actor')}.{kwargs.get('function')}"
            emit.span("worker", STEP["compute"], start, now_ns(), label)

    return timed
