"""Planted delays that time themselves: what a ground-truth test injects and reads back.

Everything here is importable by scheduler and workers, and logs to the file that `LOG` names in
the object itself, so that the truth is measured and not assumed.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def note(log: str, what: str, started: float) -> None:
    """Append what took how long, and in which process and thread."""
    line = {
        "what": what,
        "seconds": time.perf_counter() - started,
        "pid": os.getpid(),
        "main": threading.current_thread() is threading.main_thread(),
    }
    with Path(log).open("a") as file:
        file.write(json.dumps(line) + "\n")


def truths(log: str | Path) -> list[dict[str, Any]]:
    """What was noted so far."""
    path = Path(log)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def timed_sleep(log: str, what: str, seconds: float) -> None:
    """Sleep, and note how long it really took."""
    started = time.perf_counter()
    time.sleep(seconds)
    note(log, what, started)


def timed(log: str, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that notes how long each of its calls took."""

    def noted(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        result = function(*args, **kwargs)
        note(log, what, started)
        return result

    return noted


def rebuild(log: str, dump_s: float, load_s: float) -> Slow:
    """Unpickle a `Slow`, slowly."""
    timed_sleep(log, "load", load_s)
    return Slow(log, dump_s, load_s)


class Slow:
    """An object that is slow to pickle and to unpickle."""

    def __init__(self, log: str, dump_s: float, load_s: float) -> None:
        self.log = log
        self.dump_s = dump_s
        self.load_s = load_s

    def __reduce__(self) -> Any:
        timed_sleep(self.log, "dump", self.dump_s)
        return rebuild, (self.log, self.dump_s, self.load_s)


class Heavy(Slow):
    """The same, of which Dask thinks that it takes 900 MB."""

    def __sizeof__(self) -> int:
        return 900_000_000


class SlowToken:
    """An object that is slow to tokenize."""

    def __init__(self, log: str, seconds: float) -> None:
        self.log = log
        self.seconds = seconds

    def __dask_tokenize__(self) -> Any:
        timed_sleep(self.log, "tokenize", self.seconds)
        return ("slow-token", self.seconds)


def identity(x: Any, *rest: Any) -> Any:
    """Give back the first argument."""
    return x


def ignore(*args: Any) -> int:
    """Take anything, give back a number."""
    return 1


def make_heavy(log: str, dump_s: float, load_s: float) -> Heavy:
    """A task whose result is slow to spill and to read back."""
    return Heavy(log, dump_s, load_s)


def make_slow(log: str, dump_s: float, load_s: float, *needs: Any) -> Slow:
    """A task whose result is slow to bring home."""
    return Slow(log, dump_s, load_s)


def work(log: str, seconds: float, *needs: Any) -> float:
    """A task that takes this long."""
    timed_sleep(log, "work", seconds)
    return seconds


def blob(nbytes: int, seed: int = 0) -> Any:
    """A task that makes an incompressible array of this size."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def size(x: Any, *rest: Any) -> int:
    """The size of what a task was given, bytes."""
    return int(x.nbytes)


def meta_slow(block: Any, log: str, seconds: float) -> Any:
    """A function for map_blocks that is slow on the empty block of meta inference only."""
    if block.size == 0:
        timed_sleep(log, "meta", seconds)
    return block


class SlowGraph:
    """A collection whose low-level optimization is slow."""

    def __init__(self, log: str, seconds: float) -> None:
        self.log = log
        self.seconds = seconds
        self.key = f"slow-graph-{seconds}"

    def __dask_graph__(self) -> dict[str, Any]:
        return {self.key: (identity, 1)}

    def __dask_keys__(self) -> list[str]:
        return [self.key]

    def __dask_tokenize__(self) -> str:
        return self.key

    @property
    def __dask_optimize__(self) -> Any:
        return SlowOptimize(self.log, self.seconds)

    def __dask_postcompute__(self) -> Any:
        return first, ()

    def __dask_postpersist__(self) -> Any:
        return same, (self,)


class SlowOptimize:
    """An optimizer that takes its time; logs the process that it ran in."""

    def __init__(self, log: str, seconds: float) -> None:
        self.log = log
        self.seconds = seconds

    def __call__(self, graph: Any, *_: Any, **__: Any) -> Any:
        timed_sleep(self.log, "optimize", self.seconds)
        return graph


def first(results: Any) -> Any:
    """The first of a list of results."""
    return results[0]


def same(graph: Any, collection: Any, **_: Any) -> Any:
    """The collection itself, whatever its graph has become."""
    return collection


def hold(x: Any, event: str) -> Any:
    """Returns when an event of this name is set."""
    from distributed import Event  # a pool's process has none: it would import it as it loads

    Event(event).wait()
    return x


def fail_once(marker: str, log: str, seconds: float) -> int:
    """Take some time; fail at the first attempt."""
    timed_sleep(log, "work", seconds)
    path = Path(marker)
    if not path.exists():
        path.touch()
        raise ValueError("the first attempt fails")
    return 1


def die_once(marker: str, log: str, seconds: float) -> int:
    """Take some time; at the first attempt take the worker down."""
    timed_sleep(log, "work", seconds)
    path = Path(marker)
    if not path.exists():
        path.touch()
        os._exit(1)
    return 1


def slow_plugin(log: str, seconds: float, finish: str) -> Any:
    """A scheduler's plugin that takes its time whenever a run ends in a state."""
    from distributed import SchedulerPlugin

    class SlowPlugin(SchedulerPlugin):
        name = "slow"

        def transition(self, *args: Any, **_: Any) -> None:
            if args[1:3] == ("processing", finish):
                timed_sleep(log, "transition", seconds)

    return SlowPlugin()


def hold_soon(log: str, seconds: float, dask_scheduler: Any) -> None:
    """Have a scheduler's loop do nothing else for some time, a little later."""
    loop = dask_scheduler.loop.asyncio_loop
    loop.call_later(0.1, timed_sleep, log, "held", seconds)


def slow_exchange(log: str, seconds: float) -> None:
    """Have what a worker sends in P2P exchanges be on its way for so long, from now on; 0: not."""
    import asyncio

    from distributed.shuffle import _core

    run: Any = _core.ShuffleRun
    plain = getattr(run._send, "plain", run._send)

    async def late(self: Any, *args: Any) -> Any:
        started = time.perf_counter()
        await asyncio.sleep(seconds)
        note(log, "sent", started)
        return await plain(self, *args)

    vars(late)["plain"] = plain
    run._send = late if seconds else plain


def fail(*args: Any) -> None:
    """Always fails."""
    raise ValueError("as planted")


def launches(log: str, seconds: float) -> float:
    """A task that launches a task and waits for it."""
    from distributed import get_client, worker_client

    with worker_client() as client:
        inner = client.submit(work, log, seconds, pure=False).result()
    assert get_client() is not None
    return float(inner)


class Counter:
    """An actor."""

    def __init__(self) -> None:
        self.n = 0

    def add(self, log: str, seconds: float) -> int:
        """Take some time and count."""
        timed_sleep(log, "actor", seconds)
        self.n += 1
        return self.n

    def give(self, log: str, seconds: float) -> Slow:
        """Something that is slow to pickle and to unpickle."""
        return Slow(log, seconds, seconds)
