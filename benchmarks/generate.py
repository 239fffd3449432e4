"""Makes a recording as a real computation would leave it, of any size, the same for every seed.

A discrete simulation: a scheduler that needs some 130 us per task serves workers whose threads
each run one task at a time. The tasks are layers of array-like keys `('name-<32 hex>', i, j)`,
each block depending on the same block of the layer before (in the second, as in
`x + x.T`, on two), and the roots queued until a thread is free. Every process has its own clock
that is off and drifts; timestamps have the nanosecond jitter of real ones (nothing is rounded,
or the file would look smaller than it is). The rows are packed by `stageprof_runtime.batch.pack`,
100 ms per place and batch, and written as the collector does: those of half a second together.
"""

from __future__ import annotations

import heapq
import math
import os
import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

from benchmarks.simulated import TICK, Process
from stageprof_collectors.storage.collector import GATHER_S
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.merge import merge
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    ARRIVE,
    ASSIGN,
    BLOCK,
    DEPEND,
    FINISH,
    GRAPH,
    LINE,
    MARK,
    PING,
    RUN,
    SAMPLE,
    SPAN,
    SUBMIT,
    SUM,
    WANT,
    Place,
)
from stageprof_runtime.stage import STEP

#: ticks whose batches are written together
GATHERED: Final = round(GATHER_S * 1e9 / TICK)
_SECOND: Final = 1_000_000_000
_NAMES: Final = ("random_sample", "add", "mean_chunk", "mean_combine-partial")
_FUNCTION_NAMES: Final = ("ndarray", "numpy.ndarray", "dict", "DataFrame")
#: one key in so many of the last layer is wanted by the client
_WANTED: Final = 64


class Simulation:
    """One computation of `layers` x (`tasks` / `layers`) tasks on `workers` x `threads`."""

    def __init__(self, *, tasks: int, workers: int, threads: int, layers: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.layers = layers
        self.blocks = max(1, tasks // layers)
        self.side = math.isqrt(self.blocks - 1) + 1
        self.names = [
            f"{_NAMES[i % len(_NAMES)]}-{self.random.getrandbits(128):032x}" for i in range(layers)
        ]
        self.client = self._process("client", "Client-7f3a5c11-1d2e-11f0-8a77", 0)
        self.scheduler = self._process("scheduler", "tcp://10.0.0.1:8786", 1)
        self.workers = [
            self._process("worker", f"tcp://10.0.0.{2 + w // 4}:{40001 + w}", 2 + w)
            for w in range(workers)
        ]
        self.free = [[(0.0, 140_000_000_000_000 + i * 8_392_704) for i in range(threads)]
                     for _ in self.workers]  # fmt: skip
        self.end = 0.0

    def _process(self, role: str, name: str, number: int) -> Process:
        place = Place(role, f"node-{number // 4}", 4000 + number, name, 1)
        offset = self.random.randrange(10**12, 10**15)
        return Process(place, offset, self.random.gauss(0, 5e-6))

    def run(self) -> None:
        """Simulate it all; afterwards the processes hold their rows."""
        begun = self._submit()
        self.end = self._schedule(begun)
        self._close(begun)
        self._watch()

    def processes(self) -> list[Process]:
        """Client, scheduler, then the workers."""
        return [self.client, self.scheduler, *self.workers]

    # -- the client before and after -------------------------------------------------

    def _submit(self) -> float:
        """Construction, optimization and the way to the scheduler; true time of arrival."""
        t = 5e6
        steps = ("build", "tokenize", "expr", "graph.dump", "graph.send")
        for step, seconds in zip(steps, (0.4, 0.1, 0.05, 0.2, 0.02), strict=True):
            stop = t + self._about(seconds * 1e9)
            row = (SPAN, STEP[step], self.client.clock(t), self.client.clock(stop))
            self.client.emit(stop, *row, 1, self.names[0], 0)
            t = stop
        for i, name in enumerate(self.names):
            self.client.emit(t, LINE, name, "/home/u/etl.py", 10 + i, 0)
        nbytes = 300 * self.blocks * self.layers
        self.client.emit(
            t, SUBMIT, 0, self.client.clock(t), self.wanted, nbytes, 1, "/home/u/etl.py", 31
        )
        return t

    @property
    def wanted(self) -> int:
        """How many keys the client asked for."""
        return -(-self.blocks // _WANTED)

    def _close(self, begun: float) -> None:
        start, stop = self.client.clock(begun), self.client.clock(self.end)
        key = self.last_wanted
        self.client.emit(
            self.end,
            BLOCK,
            start,
            stop,
            1,
            "compute",
            stop - 2_000_003,
            stop - 2_000_003,
            stop,
            key,
        )

    def _watch(self) -> None:
        """What the probes sample all the while: twice a second per place, a ping a second."""
        self.client.emit(0, MARK, self.client.clock(1), "region start", "1 1")
        self.client.emit(self.end, MARK, self.client.clock(self.end), "region stop", "1")
        for process in self.processes():
            for k in range(int(self.end // (_SECOND // 2)) + 1):
                self._sample(process, k * _SECOND / 2 + self.random.random() * 1e6)
                if k % 2 == 0:
                    self._ping(process, k * _SECOND / 2 + self.random.random() * 1e6)
            process.emit(0, MARK, process.clock(0), "joined", process.place.name)

    def _sample(self, process: Process, t: float) -> None:
        for name, size in (("memory", 1e9), ("cpu", 4.0), ("loop.lag", 1e-3), ("gil", 0.3)):
            process.emit(t, SAMPLE, process.clock(t), name, self._about(size))
        row = (STEP["task.load"], self.random.randrange(400), self.random.randrange(10**8), 10**6)
        process.emit(t, SUM, process.clock(t), *row)

    def _ping(self, process: Process, t: float) -> None:
        """A round trip of a process to the scheduler's clock."""
        if process is self.scheduler:
            return
        there, back = t + self._about(1.5e5), t + self._about(3e5)
        row = (process.clock(t), self.scheduler.clock(there), process.clock(back))
        process.emit(back, PING, *row, self.scheduler.place.name)

    # -- the scheduler and its workers ------------------------------------------------

    def _schedule(self, begun: float) -> float:
        """Serve all tasks; true time of the last end."""
        now = begun + self._about(5e-7 * 1e9 * self.blocks)
        self.scheduler.emit(
            now, GRAPH, 0, self.scheduler.clock(begun), self.scheduler.clock(now),
            self.blocks * self.layers, self.wanted, self.client.place.name, -1,
        )  # fmt: skip
        heap: list[tuple[float, int, int, int, int]] = []
        self._run_count = 0
        #: runs that each worker has
        self._busy = [0] * len(self.workers)
        #: blocks of the first layer that ended before the other of their pair: run and worker
        self._ended: dict[int, tuple[int, int]] = {}
        roots = deque(range(self.blocks))
        saturation = math.ceil(1.1 * len(self.free[0]))
        self._slots = saturation
        for worker in [w for w in range(len(self.workers)) for _ in range(saturation)]:
            if roots:
                now = self._assign(now, heap, worker, 0, roots.popleft(), -1)
        while heap:
            now = self._hear(now, heap, roots)
        return now + 1e6

    def _hear(self, now: float, heap: list[Any], roots: deque[int]) -> float:
        """The scheduler hears of the next end and hands out what that makes runnable."""
        heard, run, worker, layer, block = heapq.heappop(heap)
        self._busy[worker] -= 1
        now = max(now, heard) + self._about(6e4)
        nbytes = 8 * self.random.randrange(900_000, 1_000_000) if layer < self.layers - 1 else 8008
        kind = _FUNCTION_NAMES[layer % len(_FUNCTION_NAMES)]
        self.scheduler.emit(now, FINISH, run, self.scheduler.clock(now), 0, nbytes, kind)
        if layer + 1 < self.layers:
            now = self._next_layer(now, heap, worker, layer, block, run)
        elif block % _WANTED == 0:
            self._want(now, run, self._key(layer, block))
        idlest = self._busy.index(min(self._busy))
        if roots and self._busy[idlest] < self._slots:
            now = self._assign(now, heap, idlest, 0, roots.popleft(), run, [-1])
        return now

    def _next_layer(
        self, now: float, heap: list[Any], worker: int, layer: int, block: int, run: int
    ) -> float:
        """Hand out what needs a block that has just ended, and nothing that is still missing."""
        pair = block ^ 1
        if layer or pair >= self.blocks:
            return self._assign(now, heap, worker, layer + 1, block, run)
        if pair not in self._ended:
            self._ended[block] = run, worker
            return now
        other, its_worker = self._ended.pop(pair)
        needs = [other, run]
        now = self._assign(now, heap, worker, 1, block, run, needs)
        return self._assign(now, heap, its_worker, 1, pair, run, needs)

    def _want(self, now: float, run: int, key: object) -> None:
        self.last_wanted = key
        self.scheduler.emit(now, WANT, run, self.scheduler.clock(now), key)
        t = now + self._about(1e6)
        self.client.emit(t, ARRIVE, self.client.clock(t), key)

    def _assign(
        self,
        now: float,
        heap: list[Any],
        worker: int,
        layer: int,
        block: int,
        cause: int,
        needs: Sequence[int] = (),
    ) -> float:
        now += self._about(6e4)
        run = self._run_count
        self._run_count += 1
        self._busy[worker] += 1
        name = self.workers[worker].place.name
        key = self._key(layer, block)
        self.scheduler.emit(now, ASSIGN, run, self.scheduler.clock(now), name, cause, key)
        for on in needs:
            self.scheduler.emit(now, DEPEND, run, on)
        stop = self._execute(now, worker, run)
        heapq.heappush(heap, (stop + self._about(2.5e5), run, worker, layer, block))
        return now

    def _execute(self, now: float, worker: int, run: int) -> float:
        """Run a task on the thread that is free first; the true time of its end."""
        process = self.workers[worker]
        received = now + self._about(4e5)
        ready = received + self._about(3e4)
        if self.random.random() < 0.02:
            ready = self._transfer(process, received)
        free, thread = heapq.heappop(self.free[worker])
        start = max(ready + self._about(8e4), free + self._about(2e4))
        stop = start + self._about(1.1e7)
        heapq.heappush(self.free[worker], (stop, thread))
        cpu = int((stop - start) * (1 - 0.03 * self.random.random()))
        process.emit(
            stop, RUN, run, *map(process.clock, (received, ready, start, stop)), thread, cpu,
            process.place.name,
        )  # fmt: skip
        return stop

    def _transfer(self, process: Process, t: float) -> float:
        stop = t + self._about(8e6)
        peer = self.random.choice(self.workers).place.name
        row = (STEP["data.transfer"], process.clock(t), process.clock(stop), 1, peer)
        process.emit(stop, SPAN, *row, 8 * self.random.randrange(900_000, 1_000_000))
        return stop

    def _key(self, layer: int, block: int) -> object:
        return (self.names[layer], block // self.side, block % self.side)

    def _about(self, ns: float) -> float:
        """A duration of about that size: lognormal, as latencies and run times are."""
        return ns * self.random.lognormvariate(0.0, 0.35)


def ticks(simulation: Simulation) -> Iterator[list[bytes]]:
    """The batches that each tick of 100 ms brings from all places, as they are shipped."""
    processes = simulation.processes()
    seqs = [0] * len(processes)
    for tick in range(max(max(p.rows, default=0) for p in processes) + 1):
        batches = []
        for i, process in enumerate(processes):
            rows = process.rows.pop(tick, None)
            if rows:
                t = process.clock((tick + 1) * TICK)
                cost = {"transition": [seqs[i], 700 * seqs[i]]}
                batches.append(pack(process.place, seqs[i], t, rows, cost=cost))
                seqs[i] += 1
        if batches:
            yield batches


def generate(
    path: str | os.PathLike[str],
    *,
    tasks: int = 1000,
    workers: int = 4,
    threads: int = 2,
    layers: int = 4,
    seed: int = 0,
) -> Writer:
    """Write a recording of about `tasks` tasks (a multiple of `layers`); its closed writer."""
    simulation = Simulation(tasks=tasks, workers=workers, threads=threads, layers=layers, seed=seed)
    simulation.run()
    with Writer(path, {"generator": "benchmarks.generate", "tasks": tasks, "seed": seed}) as out:
        rounds = ticks(simulation)
        while batches := list(chain.from_iterable(islice(rounds, GATHERED))):
            out.write(*merge(batches))
    return out
