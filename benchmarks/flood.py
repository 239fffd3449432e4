"""The events of a computation on a thousand workers, batch by batch, as shippers send them.

Like `generate`, but computed in columns, so that ten million tasks take seconds to plan: chains of
four tasks, one for each block of an array, run one after another on every thread; the second needs
the first of the neighbouring thread, too, as in ``x + x.T``; the first one of a chain had been
queued until its thread was free. Every process has a clock of its own that is off and drifts.
Tasks are short and the scheduler is what holds them up, though it is faster than any today's: so
that each worker's tasks lead to `RATE` events a second, 200,000 for a thousand workers.

`Flood.stream` packs rows with the runtime's own `pack`; `send` writes the batches no faster than
asked, and `receive` reads them.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import repeat
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated import TICK, Process
from stageprof_runtime.batch import Row, pack
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
from stageprof_runtime.shipper import ROUNDS, ROWS
from stageprof_runtime.stage import STEP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LAYERS: Final = 4
THREADS: Final = 4
#: Events a second that a worker's tasks lead to, there and at the scheduler.
RATE: Final = 200
#: Events that a task leads to: ASSIGN, FINISH, RUN, and DEPEND for half of the layers.
EVENTS: Final = 3.75
_NAMES: Final = tuple(
    f"{name}-{i:032x}" for i, name in enumerate(("ones", "add", "mean", "sum"), 7)
)
_TYPES: Final = ("ndarray", "numpy.ndarray", "dict", "DataFrame")
_LENGTH: Final = struct.Struct("<I")
#: One key in so many of the last layer is wanted by the client.
_WANTED: Final = 64
_BEGUN: Final = 1e9


class Flood:
    """What `workers` processes of four threads do with about `tasks` tasks."""

    def __init__(self, tasks: int, workers: int, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self.workers, self.threads = workers, workers * THREADS
        self.waves = max(1, round(tasks / LAYERS / self.threads))
        self.tasks = self.waves * LAYERS * self.threads
        self.blocks = self.tasks // LAYERS
        self.side = math.isqrt(self.blocks - 1) + 1
        self.client = self._process("client", "Client-7f3a5c11", 0)
        self.scheduler = self._process("scheduler", "tcp://10.0.0.1:8786", 1)
        self.crew = [
            self._process("worker", f"tcp://10.{w // 250}.{w % 250}.2:{40001 + w}", 2 + w)
            for w in range(workers)
        ]
        self._plan()

    def _process(self, role: str, name: str, number: int) -> Process:
        place = Place(role, f"node-{number // 4}", 4000 + number, name, 1)
        offset = int(self._random.integers(10**12, 10**15))
        return Process(place, offset, float(self._random.normal(0, 5e-6)))

    def _about(self, ns: float, count: int) -> Floats:
        return ns * self._random.lognormal(0.0, 0.35, count)

    # -- the plan: true instants of all tasks, by (wave, layer, thread) -----------------------

    def _plan(self) -> None:
        shape = self.waves, LAYERS, self.threads
        names = ("assigned", "received", "ready", "start", "stop", "finished")
        self._at = {name: np.empty(shape) for name in names}
        last = np.full(self.threads, _BEGUN)
        neighbour = np.arange(self.threads) ^ 1
        held_up = EVENTS * THREADS / RATE * 1e9 - 1.25e7
        for wave in range(self.waves):
            for layer in range(LAYERS):
                after = np.maximum(last, last[neighbour]) if layer == 1 else last
                last = self._run(wave, layer, after, held_up)
        self.end = float(self._at["finished"].max()) + 1e6

    def _run(self, wave: int, layer: int, after: Floats, held_up: float) -> Floats:
        n = self.threads
        fetched = np.where(self._random.random(n) < 0.02, self._about(8e6, n), 0.0)
        lags = [self._about(ns, n) for ns in (held_up, 4e5, 3e4, 8e4, 1.1e7, 2.5e5)]
        lags[2] += fetched
        now = after
        for name, lag in zip(self._at, lags, strict=True):
            now = now + lag
            self._at[name][wave, layer] = now
        return now

    @cached_property
    def _order(self) -> Ints:
        """Tasks in the order of their assignment, which numbers their runs."""
        return np.argsort(self._at["assigned"], axis=None, kind="stable")

    @cached_property
    def _run_of(self) -> Ints:
        """The run of each task."""
        run = np.empty(self.tasks, np.int64)
        run[self._order] = np.arange(self.tasks)
        return run

    def _split(self, tasks: Ints) -> tuple[Ints, Ints, Ints]:
        """Wave, layer and thread of tasks."""
        wave, rest = np.divmod(tasks, LAYERS * self.threads)
        return wave, *np.divmod(rest, self.threads)

    def _keys(self, tasks: Ints) -> list[object]:
        wave, layer, thread = self._split(tasks)
        i, j = np.divmod(wave * self.threads + thread, self.side)
        names = map(_NAMES.__getitem__, layer.tolist())
        return list(zip(names, i.tolist(), j.tolist(), strict=True))

    # -- the stream ---------------------------------------------------------------------------

    def stream(self) -> Iterator[tuple[int, bytes]]:
        """Batches in the order of their sending, each with the number of rows in it."""
        ends = int(self.end) // TICK + 2
        workers, scheduled, client = self._of_workers(), self._of_scheduler(), self._of_client(ends)
        for tick in range(ends):
            last = tick == ends - 1
            now = (tick + 1) * TICK
            yield from client(now, (tick + 1) % ROUNDS == 0 or last)
            yield from scheduled(now, last=last)
            for w in range(self.workers):
                if last or w % ROUNDS == tick % ROUNDS:
                    yield from workers(w, now, tick)

    def _of_workers(self) -> Any:
        """Gives what a worker ships at an instant."""
        _, _, thread = self._split(np.arange(self.tasks))
        worker = thread // THREADS
        order = np.lexsort((self._at["stop"].ravel(), worker))
        stops = self._at["stop"].ravel()[order]
        first = np.searchsorted(worker[order], np.arange(self.workers + 1))
        shipped, seqs = first[:-1].copy(), [0] * self.workers

        def ship(w: int, now: int, tick: int) -> Iterator[tuple[int, bytes]]:
            upto = first[w] + np.searchsorted(stops[first[w] : first[w + 1]], now)
            rows = list(self._worked(w, order[shipped[w] : upto]))
            rows += self._watched(self.crew[w], now, joined=seqs[w] == 0, ping=tick % 10 < ROUNDS)
            shipped[w] = upto
            seqs[w] += 1
            yield self._packed(self.crew[w], seqs[w] - 1, now, rows)

        return ship

    def _worked(self, w: int, tasks: Ints) -> Iterator[Row]:
        """The RUN rows of one worker, and the transfers that some of them waited for."""
        process = self.crew[w]
        true = [self._at[name].ravel()[tasks] for name in ("received", "ready", "start", "stop")]
        times = [self._clock(process, t) for t in true]
        _, _, thread = self._split(tasks)
        ident = 140_000_000_000_000 + thread % THREADS * 8_392_704
        cpu = ((true[3] - true[2]) * (1 - 0.03 * self._random.random(len(tasks)))).astype(np.int64)
        columns = [self._run_of[tasks], *times, ident, cpu]
        lists = [column.tolist() for column in columns]
        yield from zip(repeat(RUN), *lists, repeat(process.place.name))
        for i in np.flatnonzero(true[1] - true[0] > 1e6).tolist():
            peer = self.crew[int(self._random.integers(self.workers))].place.name
            size = 8 * int(self._random.integers(900_000, 1_000_000))
            yield SPAN, STEP["data.transfer"], lists[1][i], lists[2][i], 1, peer, size

    def _of_scheduler(self) -> Any:
        """Gives what the scheduler ships at an instant."""
        begun, ended = self._order, np.argsort(self._at["finished"], axis=None, kind="stable")
        assigned = self._at["assigned"].ravel()[begun]
        finished = self._at["finished"].ravel()[ended]
        at, seq = [0, 0], 0

        def ship(now: int, *, last: bool) -> Iterator[tuple[int, bytes]]:
            nonlocal seq
            upto = np.searchsorted(assigned, now), np.searchsorted(finished, now)
            rows = list(self._assigned(begun[at[0] : upto[0]]))
            rows += self._finished(ended[at[1] : upto[1]])
            at[:] = [int(u) for u in upto]
            if now % (ROUNDS * TICK) == 0 or last:
                rows += self._watched(self.scheduler, now, joined=seq == 0, ping=False)
            if seq == 0:
                rows.append(self._graph)
            for some in (rows[i : i + ROWS] for i in range(0, len(rows), ROWS)):
                yield self._packed(self.scheduler, seq, now, some, counts=(self.tasks, *at))
                seq += 1

        return ship

    @property
    def _graph(self) -> Row:
        times = self.scheduler.clock(_BEGUN - 9e8), self.scheduler.clock(_BEGUN)
        return GRAPH, 0, *times, self.tasks, self._wanted, self.client.place.name, -1

    @property
    def _wanted(self) -> int:
        return -(-self.blocks // _WANTED)

    def _assigned(self, tasks: Ints) -> Iterator[Row]:
        wave, layer, thread = self._split(tasks)
        before = tasks - self.threads
        cause = np.where(before >= 0, self._run_of[before], -1)
        runs, causes = self._run_of[tasks].tolist(), cause.tolist()
        t = self._clock(self.scheduler, self._at["assigned"].ravel()[tasks]).tolist()
        names = [self.crew[w].place.name for w in (thread // THREADS).tolist()]
        yield from zip(repeat(ASSIGN), runs, t, names, causes, self._keys(tasks))
        queued = ((layer == 0) & (wave > 0)).tolist()
        pair = self._run_of[np.where(layer == 1, (before ^ 1), 0)].tolist()
        for i, of in enumerate(layer.tolist()):
            if of == 1:
                yield DEPEND, runs[i], causes[i]
                yield DEPEND, runs[i], pair[i]
            elif queued[i]:
                yield DEPEND, runs[i], -1

    def _finished(self, tasks: Ints) -> Iterator[Row]:
        _, layer, _ = self._split(tasks)
        runs = self._run_of[tasks].tolist()
        t = self._clock(self.scheduler, self._at["finished"].ravel()[tasks]).tolist()
        nbytes = 8 * self._random.integers(900_000, 1_000_000, len(tasks))
        sizes = np.where(layer < LAYERS - 1, nbytes, 8008).tolist()
        types = map(_TYPES.__getitem__, layer.tolist())
        yield from zip(repeat(FINISH), runs, t, repeat(0), sizes, types)
        wanted = self._is_wanted(tasks)
        for i, key in zip(np.flatnonzero(wanted).tolist(), self._keys(tasks[wanted]), strict=True):
            yield WANT, runs[i], t[i], key

    def _is_wanted(self, tasks: Ints) -> NDArray[np.bool_]:
        wave, layer, thread = self._split(tasks)
        block = wave * self.threads + thread
        wanted: NDArray[np.bool_] = (layer == LAYERS - 1) & (block % _WANTED == 0)
        return wanted

    def _of_client(self, ends: int) -> Any:
        """Gives what the client ships at an instant."""
        tasks = np.flatnonzero(self._is_wanted(np.arange(self.tasks)))
        heard = self._at["finished"].ravel()[tasks] + self._about(1e6, len(tasks))
        tasks, heard = tasks[np.argsort(heard)], np.sort(heard)
        self.end = max(self.end, float(heard[-1]) + 2e6)
        at = seq = 0

        def ship(now: int, due: bool) -> Iterator[tuple[int, bytes]]:  # noqa: FBT001
            nonlocal at, seq
            if not due:
                return
            upto = int(np.searchsorted(heard, now))
            t = self._clock(self.client, heard[at:upto]).tolist()
            rows: list[Row] = list(zip(repeat(ARRIVE), t, self._keys(tasks[at:upto])))
            at = upto
            rows += self._watched(self.client, now, joined=False, ping=True)
            rows += self._built() if seq == 0 else []
            rows += self._closed(tasks) if now >= ends * TICK else []
            yield self._packed(self.client, seq, now, rows)
            seq += 1

        return ship

    def _built(self) -> Iterator[Row]:
        """Construction, optimization and the way to the scheduler."""
        clock, t = self.client.clock, 5e6
        yield MARK, clock(1), "region start", "1 1"
        for step, ns in (("build", 3e7), ("expr", 2e7), ("graph.dump", 2e7), ("graph.send", 1e7)):
            yield SPAN, STEP[step], clock(t), clock(t + ns), 1, _NAMES[0], 0
            t += ns
        for i, name in enumerate(_NAMES):
            yield LINE, name, "/home/u/etl.py", 10 + i, 0
        nbytes = 300 * self.tasks
        yield SUBMIT, 0, clock(t), self._wanted, nbytes, 1, "/home/u/etl.py", 31

    def _closed(self, tasks: Ints) -> Iterator[Row]:
        clock = self.client.clock
        (key,) = self._keys(tasks[-1:])
        ends = [clock(self.end - ms * 1e6) for ms in (2, 2, 0)]
        yield BLOCK, clock(9e7), clock(self.end), 1, "compute", *ends, key
        yield MARK, clock(self.end), "region stop", "1"

    def _watched(self, process: Process, now: int, *, joined: bool, ping: bool) -> Iterator[Row]:
        """What the probes sample twice a second."""
        t = process.clock(now - 1e6 * self._random.random())
        for name, size in (("memory", 1e9), ("cpu", 4.0), ("loop.lag", 1e-3), ("gil", 0.3)):
            yield SAMPLE, t, name, float(self._about(size, 1)[0])
        count, ns = self._random.integers((400, 10**8)).tolist()
        yield SUM, t, STEP["task.load"], count, ns, 10**6
        if joined:
            yield MARK, process.clock(_BEGUN / 2), "joined", process.place.name
        if ping:
            there = now - self._about(3e5, 1)[0]
            sent, back = there - self._about(1.5e5, 1)[0], there + self._about(1.5e5, 1)[0]
            times = process.clock(sent), self.scheduler.clock(there), process.clock(back)
            yield PING, *times, self.scheduler.place.name

    def _clock(self, process: Process, t: Floats) -> Ints:
        return process.offset + (t * (1 + process.drift)).astype(np.int64)

    def _packed(
        self, process: Process, seq: int, now: int, rows: list[Row], counts: Any = (0, 0, 0)
    ) -> tuple[int, bytes]:
        cost = {"transition": [seq, 700 * seq]}
        batch = pack(process.place, seq, process.clock(now), rows, cost=cost, counts=counts)
        return len(rows), batch


def send(out: BinaryIO, batches: Iterable[tuple[int, bytes]], rate: float) -> dict[str, float]:
    """Write batches, each after its length, at no more than `rate` events a second."""
    begun, events, bytes_ = time.perf_counter(), 0, 0
    for rows, batch in batches:
        out.write(_LENGTH.pack(len(batch)) + batch)
        events, bytes_ = events + rows, bytes_ + len(batch)
        early = events / rate - (time.perf_counter() - begun)
        if early > 0.01:
            out.flush()
            time.sleep(early)
    out.write(_LENGTH.pack(0))
    out.flush()
    return {"events": events, "bytes": bytes_, "seconds": time.perf_counter() - begun}


def receive(source: BinaryIO) -> Iterator[bytes]:
    """What `send` wrote, batch by batch."""
    while length := _LENGTH.unpack(source.read(_LENGTH.size))[0]:
        yield source.read(length)
