"""Steps `*.dump`, `*.load`, `compress`, `decompress`: bytes made and unmade for the network.

All that crosses a comm goes through `distributed.protocol.dumps` and `loads`, on the event loop
or, when large, on the offload thread. What a message is, and so whose hop it is, is read off its
operations. The graph itself is dumped and loaded by the client and the scheduler before and
after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stageprof_runtime.carried import dumping, here, loading
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import exchange, inside, within
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.stage import STEP, Stage

#: operation -> (role that dumps, step, role that loads, step)
_HOPS: dict[str, tuple[str, str, str, str]] = {
    "compute-task": ("scheduler", "task.dump", "worker", "task.load"),
    "task-finished": ("worker", "task.dump", "scheduler", "task.load"),
    "task-erred": ("worker", "task.dump", "scheduler", "task.load"),
    "update-graph": ("client", "graph.dump", "scheduler", "graph.load"),
    "key-in-memory": ("scheduler", "result.dump", "client", "result.load"),
    "actor_execute": ("client", "data.dump", "worker", "data.load"),
    "update_data": ("client", "data.dump", "worker", "data.load"),
    "scatter": ("client", "data.dump", "scheduler", "data.load"),
}
#: Messages looked at in a batch of them before it counts as "of the first kind seen".
_LOOK = 64
#: A decompression shorter than this had nothing to do (most messages are not compressed).
WORTH_NS = 5_000


def install(emit: Emit) -> Undo:
    """Time every dump, load, compression and decompression of messages and graphs."""
    return together(
        [
            replace(*place("protocol.dumps"), lambda f: _dumps(emit, f)),
            replace(*place("protocol.loads"), lambda f: _loads(emit, f)),
            replace(*place("protocol.compress"), lambda f: _timed(emit, f, "compress")),
            replace(*place("protocol.decompress"), lambda f: _timed(emit, f, "decompress")),
            replace(*place("client.serialize"), lambda f: _graph(emit, f, "client", "graph.dump")),
            replace(
                *place("scheduler.deserialize"),
                lambda f: _graph(emit, f, "scheduler", "graph.load"),
            ),
        ]
    )


def _dumps(emit: Emit, dumps: Callable[..., Any]) -> Callable[..., Any]:
    def timed(msg: Any, *args: Any, **kwargs: Any) -> Any:
        role, step = _dump_hop(msg)
        with within(role, Stage.SERIALIZATION), dumping(emit, role, STEP[step], msg):
            start = now_ns()
            frames = dumps(msg, *args, **kwargs)
            stop = now_ns()
        emit.span(role, STEP[step], start, stop, _peer(), _nbytes(frames))
        return frames

    return timed


def _loads(emit: Emit, loads: Callable[..., Any]) -> Callable[..., Any]:
    def timed(frames: Any, *args: Any, **kwargs: Any) -> Any:
        # What it is can be told only afterwards; until then an import is the client's or
        # whoever's process this is: the emitter falls back to the process's own ring.
        with within("worker", Stage.SERIALIZATION), loading() as loaded:
            start = now_ns()
            msg = loads(frames, *args, **kwargs)
            stop = now_ns()
            role, step = _load_hop(msg)
            loaded.emit(emit, role, STEP[step], msg)
        emit.span(role, STEP[step], start, stop, "", _nbytes(frames))
        return msg

    return timed


def _timed(emit: Emit, function: Callable[..., Any], step: str) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = now_ns()
        result = function(*args, **kwargs)
        role, stop = inside.role or "worker", now_ns()
        emit.span(role, STEP[step], start, stop)
        if here.load is not None:
            if stop - start >= WORTH_NS:
                here.load.before.append((start, stop))
        elif here.dump is not None and here.dump.last is not None:
            here.dump.add(here.dump.last, start, stop, 0, STEP[step])
        return result

    return timed


def _graph(emit: Emit, function: Callable[..., Any], role: str, step: str) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        with within(role, Stage.SERIALIZATION, STEP[step]):
            start = now_ns()
            result = function(*args, **kwargs)
            stop = now_ns()
        frames = result[1] if step == "graph.dump" else args[1]
        emit.span(role, STEP[step], start, stop, "", _nbytes(frames))
        return result

    return timed


def _dump_hop(msg: Any) -> tuple[str, str]:
    hop = _hop(msg)
    if hop:
        return hop[0], hop[1]
    if type(msg) is dict and "data" in msg:
        return "worker", f"{_what()}.dump"
    return "worker", "task.dump"


def _load_hop(msg: Any) -> tuple[str, str]:
    hop = _hop(msg)
    if hop:
        return hop[2], hop[3]
    if type(msg) is dict and "data" in msg:
        what = _what()
        return ("worker" if what == "data" else "client"), f"{what}.load"
    return "worker", "task.load"


def _hop(msg: Any) -> tuple[str, str, str, str] | None:
    if type(msg) is dict:
        return _HOPS.get(msg.get("op", ""))
    if type(msg) in (list, tuple):
        for part in msg[:_LOOK]:
            if type(part) is dict and (hop := _HOPS.get(part.get("op", ""))):
                return hop
    return None


def _what() -> str:
    current = exchange.get()
    return current[0] if current else "result"


def _peer() -> str:
    current = exchange.get()
    return current[1] if current else ""


def _nbytes(frames: Any) -> int:
    """Bytes in a list of frames; 0 where that can't be told."""
    try:
        return sum(
            frame.nbytes if type(frame) is memoryview else len(frame) for frame in frames or ()
        )
    except TypeError:
        return 0
