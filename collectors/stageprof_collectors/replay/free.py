"""Through a model with any free thread taking the next run that can start; see `simulation`."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from stageprof_collectors.account.program import Kind, Op, Program
from stageprof_collectors.account.thread import NO_POOL
from stageprof_collectors.replay.model import Model, Waits
from stageprof_collectors.replay.queued import Queued
from stageprof_collectors.replay.simulation import Amounts, Paths, Pools


class Free(Paths):
    """The way in which any thread that is free takes the next run that can start."""

    def __init__(self, model: Model, programs: list[Program], waits: Waits) -> None:
        super().__init__(model, programs, waits)
        nodes = self.n + len(model.graphs)
        rows = np.repeat(np.arange(self.n), np.diff(waits.first))
        order = np.argsort(waits.on, kind="stable")
        self._after: list[int] = rows[order].tolist()
        first = np.zeros(nodes + 1, np.int64)
        np.cumsum(np.bincount(waits.on, minlength=nodes)[:nodes], out=first[1:])
        self._after_first: list[int] = first.tolist()
        self._left: list[int] = np.diff(waits.first).tolist()
        rank = np.zeros(self.n, np.int64)
        rank[model.order] = np.arange(self.n)
        self._rank: list[int] = rank.tolist()
        self._by_rank: list[int] = model.order.tolist()
        self._handed = {op.on[0] for p in programs for op in p.ops if op.kind == Kind.GRAPH}

    def wall(self, amounts: Amounts, pool: list[int], pools: Pools) -> int:
        """When the region's program ends, ns from its start; -1 if it never does."""
        return _Course(self, amounts, pool, pools).wall()


class _Course:
    """One pass of `Free`: events in order of time, each an integer (instant, then what).

    The low bits are a node: a run that is ready; plus n, one that has stopped; plus 2n, a thread
    of a pool that appears, or beyond the pools, a program that goes on.
    """

    def __init__(self, free: Free, amounts: Amounts, pool: list[int], pools: Pools) -> None:
        self.f, self.a, self._pool = free, amounts, pool
        self._pools = pools
        self._shift = (2 * free.n + len(pools) + len(free.programs) + 1).bit_length()
        self._heap: list[int] = []
        self._left = list(free._left)
        self._base = [0] * free.n
        self._known: dict[int, int] = {}
        self._waiting: list[list[int]] = [[] for _ in pools]
        self._idle = [0] * len(pools)
        #: run -> programs that wait for it; of each program what is left, where, and since when
        self._watched: dict[int, list[int]] = {}
        self._open = [0] * len(free.programs)
        self._at = [0] * len(free.programs)
        self._now = [0] * len(free.programs)
        self._end = -1

    def _push(self, t: int, code: int) -> None:
        heappush(self._heap, t << self._shift | code)

    def wall(self) -> int:
        """Go through all events until the region has ended."""
        self._begin()
        n, heap, shift = self.f.n, self._heap, self._shift
        mask = (1 << shift) - 1
        beyond = 2 * n + len(self._pools)
        while heap and self._end < 0:
            event = heappop(heap)
            t, code = event >> shift, event & mask
            if code < n:
                self._ready(code, t)
            elif code < 2 * n:
                self._stopped(code - n, t)
            elif code < beyond:
                self._thread(code - 2 * n, t)
            else:
                self._go_on(code - beyond)
        return self._end

    def _begin(self) -> None:
        f, n = self.f, self.f.n
        for p, since in enumerate(self._pools):
            for t in since:
                self._heap.append(max(0, t) << self._shift | 2 * n + p)
        way, left, received = self.a.way, self._left, f.received
        self._heap += [
            max(0, received[i] + way[i]) << self._shift | i for i in range(n) if not left[i]
        ]
        heapify(self._heap)
        for g in range(len(f.model.graphs)):
            if g not in f._handed:
                self._release(n + g, f.known[n + g])
        for k, program in enumerate(f.programs):
            if program.run < 0:
                self._push(0, 2 * n + len(self._pools) + k)

    def _ready(self, i: int, t: int) -> None:
        pool = self._pool[i]
        if pool == NO_POOL:
            self._apart(i, t + self.a.pre[i])
        elif self._idle[pool]:
            self._idle[pool] -= 1
            t += self.a.pre[i] + self.a.compute[i]
            heappush(self._heap, t << self._shift | self.f.n + i)
        else:
            heappush(self._waiting[pool], self.f._rank[i])

    def _apart(self, i: int, t: int) -> None:
        k = self.f.program_of.get(i, -1)
        if i in self.f.inline:
            return
        if k < 0:
            self._release(i, t + self.a.compute[i] + self.a.lag[i])
        else:
            self._now[k] = t
            self._go_on(k)

    def _stopped(self, i: int, t: int) -> None:
        self._release(i, t + self.a.lag[i])
        self._thread(self._pool[i], t)

    def _thread(self, pool: int, t: int) -> None:
        """A thread of a pool is free."""
        waiting = self._waiting[pool]
        if not waiting:
            self._idle[pool] += 1
            return
        i = self.f._by_rank[heappop(waiting)]
        t += self.a.turn[i] + self.a.compute[i]
        heappush(self._heap, t << self._shift | self.f.n + i)

    def _release(self, node: int, t: int) -> None:
        """A node is known to have happened: what waits for it may go on."""
        f, left, base = self.f, self._left, self._base
        self._known[node] = t
        for i in f._after[f._after_first[node] : f._after_first[node + 1]]:
            base[i] = max(base[i], t)
            left[i] -= 1
            if not left[i]:
                heappush(self._heap, base[i] + self.a.way[i] << self._shift | i)
        for k in self._watched.pop(node, ()):
            self._now[k] = max(self._now[k], t)
            self._open[k] -= 1
            if not self._open[k]:
                self._push(self._now[k], 2 * f.n + len(self._pools) + k)

    def _go_on(self, k: int) -> None:
        """A program begins, or what it waited for has happened."""
        program, before, after = self.f.programs[k], self.a.before[k], self.a.after[k]
        while True:
            i, half = divmod(self._at[k], 2)
            op = program.ops[i]
            if not half:
                self._now[k] += before[i]
                self._at[k] += 1
                if op.kind == Kind.WAIT and not self._all_known(k, op):
                    return
            self._at[k] = 2 * i + 2
            self._do(k, op, after[i])
            if op.kind == Kind.END:
                return

    def _all_known(self, k: int, op: Op) -> bool:
        self._now[k] = max([self._now[k], *(self._known.get(run, 0) for run in op.on)])
        missing = [run for run in op.on if run not in self._known]
        for run in missing:
            self._watched.setdefault(run, []).append(k)
        self._open[k] = len(missing)
        return not missing

    def _do(self, k: int, op: Op, after: int) -> None:
        now, run = self._now[k], self.f.programs[k].run
        if op.kind == Kind.GRAPH:
            n = self.f.n
            begun = max(now, self._known.get(n + op.behind, 0)) if isinstance(op, Queued) else now
            self._release(n + op.on[0], begun + after)
        elif op.kind == Kind.WAIT:
            self._now[k] = now + after
        elif op.kind == Kind.INLINE:
            self._now[k] = now + self.a.compute[op.on[0]]
            self._release(op.on[0], self._now[k])
        elif run < 0:
            self._end = now
        else:
            self._release(run, now + self.a.lag[run])
