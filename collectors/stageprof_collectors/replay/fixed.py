"""Through a model with nothing decided anew; see `simulation`."""

from __future__ import annotations

from heapq import heapreplace

import numpy as np

from stageprof_collectors.account.program import Kind, Op, Program
from stageprof_collectors.account.thread import NO_POOL
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.replay.model import Model, Waits
from stageprof_collectors.replay.queued import Queued
from stageprof_collectors.replay.simulation import Amounts, Paths, Pools


class Fixed(Paths):
    """The way in which nothing is decided anew."""

    def __init__(self, model: Model, programs: list[Program], waits: Waits) -> None:
        super().__init__(model, programs, waits)
        self._only, self._several = self._split(waits)
        self._rows: list[int] = self.order.tolist()
        self._events = self._bounds(model.start[self.order])

    def _split(self, waits: Waits) -> tuple[list[int], dict[int, list[int]]]:
        """The one thing that a run waits for; -1 for none, -2 for several, which are apart."""
        number = np.diff(waits.first)
        only = np.full(self.n, -1, np.int64)
        one = np.flatnonzero(number == 1)
        only[one] = waits.on[waits.first[one]]
        only[number > 1] = -2
        first, on = self.first, self.on
        several = np.flatnonzero(number > 1).tolist()
        return only.tolist(), {i: on[first[i] : first[i + 1]] for i in several}

    def _bounds(self, starts: Ints) -> list[tuple[int, int, Op, int]]:
        """Operations in the order of their instants, each with how many runs began before it."""
        events = sorted(
            (op.at, k, i, op) for k, p in enumerate(self.programs) for i, op in enumerate(p.ops)
        )
        bounds = np.searchsorted(starts, np.array([e[0] for e in events], np.int64)).tolist()
        return [(b, k, op, i) for b, (_, k, i, op) in zip(bounds, events, strict=True)]

    def wall(self, amounts: Amounts, pool: list[int], pools: Pools) -> int:
        """When the region's program ends, ns from its start."""
        known = list(self.known)
        heaps = [sorted(pool) for pool in pools]
        now = [0] * len(self.programs)
        begun = 0
        for bound, k, op, i in self._events:
            self._run(amounts, pool, heaps, known, self._rows[begun:bound])
            begun = max(begun, bound)
            run = self.programs[k].run
            if i == 0 and run >= 0:
                now[k] = known[run]
            now[k] = self._step(amounts, known, now[k] + amounts.before[k][i], op, k, i)
            if op.kind == Kind.END and run < 0:
                return now[k]
            if op.kind == Kind.END:
                known[run] = now[k] + amounts.lag[run]
        return now[0]

    def _step(self, amounts: Amounts, known: list[int], now: int, op: Op, k: int, i: int) -> int:
        after = amounts.after[k][i]
        if op.kind == Kind.GRAPH:
            begun = max(now, known[self.n + op.behind]) if isinstance(op, Queued) else now
            known[self.n + op.on[0]] = begun + after
        elif op.kind == Kind.WAIT:
            now = max(now, max((known[run] for run in op.on), default=0)) + after
        elif op.kind == Kind.INLINE:
            now += amounts.compute[op.on[0]]
            known[op.on[0]] = now
        return now

    def _run(
        self, amounts: Amounts, pool: list[int], heaps: Pools, known: list[int], rows: list[int]
    ) -> None:
        """Let runs happen one after another, in the order of their start."""
        only, several, received = self._only, self._several, self.received
        way, pre, turn, compute, lag = amounts[:5]
        programs = self.program_of
        for i in rows:
            on = only[i]
            if on >= 0:
                t = known[on] + way[i]
            elif on == -1:
                t = received[i] + way[i]
            else:
                t = max([known[j] for j in several[i]]) + way[i]
            p = pool[i]
            if p == NO_POOL:
                known[i] = t + pre[i] + (0 if i in programs else compute[i] + lag[i])
                continue
            free = heaps[p][0]
            t = (t + pre[i] if t > free else free + turn[i]) + compute[i]
            heapreplace(heaps[p], t)
            known[i] = t + lag[i]
