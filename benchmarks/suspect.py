"""The program of the study of regressions: about a second in each stage.

What it does is real work (calls of `delayed`, an optimizer that walks its graph, a large table in
a graph, an ordering done several times, sorting), but for one thing: the link between the workers
of one machine is no link, so that what is sent over it comes late on purpose. `delays` says which
stage takes how many seconds longer, at one known line; each delay notes how long it really took.

Nothing of this may be `__main__`: scheduler and workers import it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import dask
import dask.array as da
import dask.order
import numpy as np
from dask._task_spec import Task
from distributed import Client, Worker

#: Calls of `delayed`; every so manieth is computed, and their graph ordered so many times.
CALLS, USED, ORDERED = 12_000, 80, 880
#: Entries of the table; tasks of the graph that is walked, and how often.
ENTRIES, WALKED, WALKS = 500_000, 40_000, 500
#: Bytes that are sent from worker to worker, how often, and by how much later they come, seconds.
SENT, TIMES, LATENCY = 8_000_000, 4, 0.25
#: Numbers that are sorted in one task, and such tasks one after another. Stably, for how fast they
#: are sorted otherwise depends on the processor's instructions: a second here, 0.2 there.
SORTED, SORTS = 1_000_000, 9

#: Seconds that planted delays took in this process since `forget`.
_took: list[float] = []


def delay(seconds: float) -> None:
    """Take this long, and note how long it was."""
    if seconds <= 0:
        return
    begun = time.perf_counter()
    time.sleep(seconds)
    _took.append(time.perf_counter() - begun)


def taken() -> float:
    """Seconds that were noted in this process, which forgets them."""
    total = sum(_took)
    _took.clear()
    return total


# -- what runs elsewhere ------------------------------------------------------------------------


def tick(i: int) -> int:
    """Hardly any work."""
    return i


def total(parts: list[int]) -> int:
    """What all ticks lead to."""
    return sum(parts)


def smoothed(block: Any, seconds: float) -> Any:
    """Slow where meta inference tries it on an empty block."""
    if not block.size:
        delay(seconds)
    return block * 0.5


class Lookup:
    """A table that travels inside a graph, slow to pickle and unpickle by `seconds` a time."""

    def __init__(self, entries: dict[str, int], seconds: float) -> None:
        self.entries = entries
        self.seconds = seconds

    def __reduce__(self) -> Any:
        delay(self.seconds)
        return _rebuilt, (self.entries, self.seconds)


def _rebuilt(entries: dict[str, int], seconds: float) -> Lookup:
    delay(seconds)
    return Lookup(entries, seconds)


def scored(lookup: Lookup) -> int:
    """A task that holds the table."""
    return len(lookup.entries)


def shipped(nbytes: int) -> Any:
    """What is sent to another worker."""
    return np.zeros(nbytes, np.uint8)


def received(data: Any) -> int:
    """The other worker's task."""
    return int(data.nbytes)


def trained(seed: int, seconds: float, *_before: Any) -> int:
    """Sort for a while."""
    np.random.default_rng(seed).random(SORTED).sort(kind="stable")
    delay(seconds)
    return seed


class Walked:
    """A collection whose own optimizer walks through its graph."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.name = f"walked-{dask.base.tokenize(seconds, time.perf_counter_ns())}"

    def __dask_graph__(self) -> dict[Any, Any]:
        return {self.name: Task(self.name, tick, 1)}

    def __dask_keys__(self) -> list[Any]:
        return [self.name]

    def __dask_tokenize__(self) -> str:
        return self.name

    @property
    def __dask_optimize__(self) -> Any:
        return Walk(self.seconds)

    def __dask_postcompute__(self) -> Any:
        return first, ()


class Walk:
    """The optimizer of a `Walked`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, graph: Any, *_args: Any, **_options: Any) -> Any:
        """The same graph, after a while."""
        depth = [0] * WALKED
        for _ in range(WALKS):
            for i in range(1, WALKED):
                depth[i] = depth[i // 2] + 1
        delay(self.seconds)
        return graph


def first(results: Any) -> Any:
    """The first of a list of results."""
    return results[0]


# -- what is planted in processes of the cluster ------------------------------------------------


class Link:
    """Makes what a worker sends come late; for `Client.run`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, dask_worker: Worker) -> None:
        """Plant it in a worker."""
        plain = dask_worker.get_data
        seconds = self.seconds

        async def late(comm: Any, keys: Any, *args: Any, **kwargs: Any) -> Any:
            if any(str(key).startswith("shipped") for key in keys):
                begun = time.perf_counter()
                await asyncio.sleep(seconds)
                _took.append(max(0.0, time.perf_counter() - begun - LATENCY))
            return await plain(comm, keys, *args, **kwargs)

        dask_worker.handlers["get_data"] = late


class Order:
    """Makes the ordering of large graphs slow where it is done; for `Client.run_on_scheduler`."""

    plain: Final = staticmethod(dask.order.order)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> None:
        """Plant it in this process."""
        seconds = self.seconds

        def slowly(dsk: Any, *args: Any, **kwargs: Any) -> Any:
            if len(dsk) >= CALLS // USED:
                for _ in range(ORDERED - 1):
                    Order.plain(dsk, *args, **kwargs)
                delay(seconds)
            return Order.plain(dsk, *args, **kwargs)

        dask.order.order = slowly

    @staticmethod
    def undo() -> None:
        """Order as Dask does."""
        dask.order.order = Order.plain  # type: ignore[assignment]


def prepare(client: Client, delays: Mapping[str, float]) -> None:
    """What of the delays is planted before the program begins."""
    client.run(Link(LATENCY + delays.get("communication", 0.0) / TIMES))
    client.run_on_scheduler(Order(delays.get("scheduling", 0.0)))


# -- the program --------------------------------------------------------------------------------


def program(client: Client, delays: Mapping[str, float]) -> None:
    """Five computations one after another; at which lines what is planted is in `LINES`."""
    here, there = sorted(client.scheduler_info()["workers"])
    of = delays.get
    ticks = [dask.delayed(tick, pure=False)(i) for i in range(CALLS)]  # <- scheduling
    client.compute(dask.delayed(total)(ticks[::USED])).result()

    grid = da.ones((64, 64), chunks=32)
    smooth = grid.map_blocks(smoothed, of("construction", 0.0))  # <- construction
    smooth.sum().compute()

    walked = Walked(of("optimization", 0.0))
    dask.compute(walked)  # <- optimization

    entries = {f"customer {i}": i for i in range(ENTRIES)}
    lookup = Lookup(entries, of("serialization", 0.0) / 4)
    score = dask.delayed(scored)(lookup)  # <- serialization
    score.compute()

    for _ in range(TIMES):
        data = client.submit(shipped, SENT, workers=here, pure=False)
        client.submit(received, data, workers=there, pure=False).result()  # <- communication

    train = dask.delayed(trained)
    model = train(0, 0.0)
    for i in range(1, SORTS):
        each = of("execution", 0.0) / (SORTS - 1)
        model = train(i, each, model)  # <- execution
    model.compute()


def _lines() -> dict[str, int]:
    import inspect

    source, begun = inspect.getsourcelines(program)
    marked = (line.partition("# <- ")[2].strip() for line in source)
    return {stage: begun + i for i, stage in enumerate(marked) if stage}


#: Stage -> the line at which its delay is planted, and the prefix of the layer.
LINES: Final = _lines()
LAYERS: Final = {
    "construction": "smoothed",
    "optimization": "walked",
    "serialization": "scored",
    "communication": "received",
    "scheduling": "tick",
    "execution": "trained",
}
#: The steps among which it is, in equal parts.
STEPS: Final = {
    "construction": ("meta",),
    "optimization": ("lowlevel",),
    "serialization": ("graph.dump", "graph.load", "task.dump", "task.load"),
    "communication": ("data.transfer",),
    "scheduling": ("order",),
    "execution": ("compute",),
}
