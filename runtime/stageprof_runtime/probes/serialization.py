"""Steps `*.dump`, `*.load`: bytes made and unmade for the network.

All that crosses a comm goes through `distributed.protocol.dumps` and `loads`, on the event loop
or, when large, on the offload thread. What a message is, and so whose hop it is, is read off its
operations. The graph itself is dumped and loaded by the client and the scheduler before and
after.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.carried import Dumping, Loading, here, tell
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import exchange, inside, within
from stageprof_runtime.guard import SELDOM, Watch, attempt, caught
from stageprof_runtime.patch import Emit, Undo, observe, replace, together
from stageprof_runtime.probes.failure import unloaded
from stageprof_runtime.ring import SHORT_NS
from stageprof_runtime.stage import STEP, Stage

#: operation -> role that dumps, step, role that loads, step
_HOPS: dict[str, tuple[str, int, str, int]] = {
    op: (sender, STEP[dump], receiver, STEP[load])
    for op, sender, dump, receiver, load in (
        ("compute-task", "scheduler", "task.dump", "worker", "task.load"),
        ("task-finished", "worker", "task.dump", "scheduler", "task.load"),
        ("task-erred", "worker", "task.dump", "scheduler", "task.load"),
        ("update-graph", "client", "graph.dump", "scheduler", "graph.load"),
        ("key-in-memory", "scheduler", "result.dump", "client", "result.load"),
        ("actor_execute", "client", "data.dump", "worker", "data.load"),
        ("update_data", "client", "data.dump", "worker", "data.load"),
        ("scatter", "client", "data.dump", "scheduler", "data.load"),
        ("shuffle_receive", "worker", "data.dump", "worker", "data.load"),
    )
}
#: What operations and plugins of stageprof's own are called.
OURS: Final = "stageprof-"
#: A message that says nothing of its hop is one of a worker's, to or from its scheduler.
_DUMP: Final = STEP["task.dump"]
_OTHER: Final = ("worker", _DUMP, "worker", STEP["task.load"])
#: The same of a message that says only that it carries data: for whom, its coroutine knows.
_CARRYING: Final = {
    "data": ("worker", STEP["data.dump"], "worker", STEP["data.load"]),
    "result": ("worker", STEP["result.dump"], "client", STEP["result.load"]),
}
#: What the scheduler passes on to a worker, as a client's call of an actor; and what it answers.
_PASSED_ON: Final = "proxy"
_ANSWER: Final = {"status", "result"}
#: Messages looked at in a batch of them before it counts as "of the first kind seen".
_LOOK = 64

#: Where a thread is while it dumps for a role, or loads.
_AT: Final = {role: (role, Stage.SERIALIZATION) for role in ("client", "scheduler", "worker")}


def install(emit: Emit) -> Undo:
    """Time every dump and load of messages and graphs."""
    return together(
        [
            observe(*place("protocol.dumps"), functools.partial(_dumps, emit)),
            observe(*place("protocol.loads"), functools.partial(_loads, emit)),
            replace(*place("client.serialize"), lambda f: _graph(emit, f, "client", "graph.dump")),
            replace(
                *place("scheduler.deserialize"),
                lambda f: _graph(emit, f, "scheduler", "graph.load"),
            ),
        ]
    )


def _dumps(emit: Emit, dumps: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(dumps)
    def timed(msg: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.disabled:
            return dumps(msg, *args, **kwargs)
        watch.calls = calls = watch.calls + 1
        entered = 0 if calls % SELDOM else now_ns()
        try:
            role, step, _, _ = _hop(msg)
            before, dump = (here.dump, inside.at), Dumping(msg, role, step)
            start, cpu = now_ns(), thread_ns()
            here.dump, inside.at = dump, _AT[role]
        except BaseException as error:
            caught(error, watch)
            return dumps(msg, *args, **kwargs)
        try:
            frames = dumps(msg, *args, **kwargs)
        finally:
            stop = now_ns()
            here.dump, inside.at = before
        try:
            if dump.shorts:
                tell(emit, role, step, dump.shorts)
            peer = _peer() if stop - start >= SHORT_NS else ""
            emit.span(role, step, start, stop, peer, _theirs(msg, _nbytes(frames)), cpu)
            if entered:
                watch.took(start - entered + now_ns() - stop, SELDOM)
        except BaseException as error:
            caught(error, watch)
        return frames

    return timed


def _loads(emit: Emit, loads: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
    @functools.wraps(loads)
    def timed(frames: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.disabled:
            return loads(frames, *args, **kwargs)
        watch.calls = calls = watch.calls + 1
        entered = 0 if calls % SELDOM else now_ns()
        try:
            nbytes = _nbytes(frames)
            # What it is can be told only afterwards; until then an import is the client's or
            # whoever's process this is: the emitter falls back to the process's own ring.
            before = here.load, inside.at
            start, cpu = now_ns(), thread_ns()
            here.load, inside.at = True, _AT["worker"]
        except BaseException as error:
            caught(error, watch)
            return loads(frames, *args, **kwargs)
        try:
            msg = loads(frames, *args, **kwargs)
        except BaseException as error:
            attempt(watch, unloaded, emit, "worker", error)
            raise
        finally:
            stop, carried = now_ns(), here.load
            here.load, inside.at = before
        try:
            _, _, role, step = _hop(msg)
            if isinstance(carried, Loading):
                carried.emit(emit, role, step, msg)
            emit.span(role, step, start, stop, "", _theirs(msg, nbytes), cpu)
            if entered:
                watch.took(start - entered + now_ns() - stop, SELDOM)
        except BaseException as error:
            caught(error, watch)
        return msg

    return timed


def _graph(emit: Emit, function: Callable[..., Any], role: str, step: str) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        with within(role, Stage.SERIALIZATION, STEP[step]):
            start, cpu = now_ns(), thread_ns()
            result = function(*args, **kwargs)
            stop = now_ns()
        frames = result[1] if step == "graph.dump" else args[1]
        emit.span(role, STEP[step], start, stop, "", _nbytes(frames), cpu)
        return result

    return timed


def _hop(msg: Any) -> tuple[str, int, str, int]:
    """Who dumps a message and at which step, and who loads it; of several in one the first's."""
    if type(msg) is dict:
        if (hop := _HOPS.get(msg.get("op", ""))) is not None:
            return hop
        if msg.get("op") == _PASSED_ON:
            return _hop(msg.get("msg"))
        if "data" in msg:
            return _CARRYING[_what()]
        return _CARRYING["result"] if msg.keys() == _ANSWER else _OTHER
    for part in msg[:_LOOK] if type(msg) in (list, tuple) else ():
        if type(part) is dict and (hop := _HOPS.get(part.get("op", ""))):
            return hop
    return _OTHER


def _what() -> str:
    current = exchange.get()
    return current[0] if current else "result"


def _peer() -> str:
    current = exchange.get()
    return current[1] if current else ""


def _theirs(msg: Any, nbytes: int) -> int:
    """Of the bytes of a message those that are not stageprof's own, which are sent in it too.

    What it sends would hide what the program does: more of it goes to more workers.
    """
    if type(msg) is dict:
        return 0 if _is_ours(msg.get("op")) or _is_ours(msg.get("name")) else nbytes
    for part in msg[:_LOOK] if type(msg) in (list, tuple) else ():
        # first what is cheap to ask: most parts are tasks, and the scheduler's loop waits
        if type(part) is dict and "batch" in part and _is_ours(part.get("op")):
            nbytes -= len(part["batch"])
    return max(0, nbytes)


def _is_ours(name: Any) -> bool:
    return type(name) is str and name.startswith(OURS)


def _nbytes(frames: Any) -> int:
    """Bytes in a list of frames; 0 where that can't be told."""
    nbytes = 0
    try:
        for frame in frames or ():
            nbytes += frame.nbytes if type(frame) is memoryview else len(frame)
    except TypeError:
        return 0
    return nbytes
