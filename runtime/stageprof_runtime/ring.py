"""A bounded ring of rows: what probes append to and a shipper empties."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.event import CPU, SHARE, SPAN, STACK, SUM
from stageprof_runtime.sums import Sums
from stageprof_runtime.tree import Spot, Tree

#: Rows kept while the shipper is away; at 20,000 rows/s more than three seconds of them.
CAPACITY = 65_536
#: A span shorter than this is added to a running sum instead of being kept by itself.
SHORT_NS = 200_000
#: Names whose shares of a step are summed apart between two batches of sums; those of more go
#: under "". A graph has tens of layers, seldom thousands.
NAMES = 2_000

#: Sums by step; shares by step and layer; looks by prefix, line, kind and function.
_Steps = dict[int, list[int]]
_Shares = dict[tuple[int, str], list[int]]
_Looks = dict[tuple[str, str, str, str], list[int]]


class Ring:
    """Holds at most `capacity` rows; when full the oldest goes and is counted.

    Appending takes no lock: a deque's append and popleft are atomic.
    """

    def __init__(self, capacity: int = CAPACITY, *, short_ns: int = SHORT_NS) -> None:
        self.capacity = capacity
        #: with fewer rows than this a few more can be appended without asking
        self.roomy = capacity - 8
        self.short_ns = short_ns
        self.rows: deque[Row] = deque()
        #: Rows lost so far because the ring was full.
        self.dropped = 0
        self._dropping = threading.Lock()
        #: what short spans took together, by step: count, ns, bytes
        self.sums: Sums[int] = Sums()
        #: what of a step was for one layer, by both
        self.shares: Sums[tuple[int, str]] = Sums(NAMES, lambda key: (key[0], ""))
        #: what was done of a step where the thread's clock was read, by step: ns, ns on a processor
        self._cpus: Sums[int] = Sums()
        self._stacks: Sums[tuple[str, str, str, str]] = Sums(NAMES, lambda k: (k[0], "", k[2], ""))
        self._tree = Tree()
        #: what a hook calls for every task, after it has looked at `roomy`
        self.append = self.rows.append

    def __len__(self) -> int:
        return len(self.rows)

    def room(self) -> int:
        """How many rows fit until the oldest has to go."""
        return max(0, self.capacity - len(self.rows))

    def emit(self, row: Row) -> None:
        """Add one row."""
        while len(self.rows) >= self.capacity:  # by more than one where threads came at once
            self._drop()
        self.append(row)

    def _drop(self) -> None:
        try:
            self.rows.popleft()
        except IndexError:  # it was emptied meanwhile
            return
        with self._dropping:  # only a full ring takes the lock, so that the count is exact
            self.dropped += 1

    def span(
        self,
        step: int,
        start: int,
        stop: int,
        thread: int,
        label: object = "",
        nbytes: int = 0,
        cpu: int = 0,
    ) -> None:
        """Add a span of the calling thread, or its length to the step's sum if it is short.

        With `cpu`, what the thread's clock said as it began, time on a processor is summed up too.
        """
        if stop - start >= self.short_ns:
            self.emit((SPAN, step, start, stop, thread, label, nbytes))
            if cpu:
                self.cpu(step, stop - start, thread_ns() - cpu)
            return
        self.sums.add(step, 1, stop - start, nbytes)

    def cpu(self, step: int, ns: int, cpu_ns: int) -> None:
        """Add time of a step to what is known of its time on a processor."""
        self._cpus.add(step, ns, cpu_ns)

    def share(self, step: int, name: str, count: int, ns: int, nbytes: int = 0, t: int = 0) -> None:
        """Add what of a step was for one layer to its sum; with `t`, by itself: it ended then."""
        if t:
            self.emit((SHARE, t, step, name, count, ns, nbytes))
        else:
            self.shares.add((step, name), count, ns, nbytes)

    def stack(self, name: str, label: str, how: str, entry: str, ns: int) -> None:
        """Add one look at a task to the sum of its prefix, line, kind and function."""
        self._stacks.add((name, label, how, entry), 1, ns)

    def flame(self, step: int, name: str, how: str, stack: Sequence[Spot], ns: int) -> None:
        """Add a look at a stack while a step was done, for a task of prefix `name` or ""."""
        self._tree.look(step, name, how, stack, ns)

    def place(self, stack: Sequence[Spot]) -> int:
        """The number of a stack in the tree; -1 if nothing of it is kept."""
        return self._tree.place(stack)

    def take(self, *, sums_too: bool = True) -> list[Row]:
        """Remove and return what is here, with the sums of short spans or without."""
        rows: list[Row] = []
        try:
            rows.extend(self.rows.popleft() for _ in range(len(self.rows)))
        except IndexError:  # a full ring lost its oldest meanwhile
            pass
        if not sums_too:
            return rows
        t = now_ns()
        sums, shares = self.sums.take(), self.shares.take()
        rows += _summed(t, sums, shares, self._stacks.take(), self._cpus.take())
        rows.extend(self._tree.take(t))
        return rows

    def sums_so_far(self) -> list[Row]:
        """What `take` would give now of sums, but for looks at stacks; they stay."""
        sums, shares = self.sums.known, self.shares.known
        return _summed(now_ns(), sums, shares, self._stacks.known, self._cpus.known)

    def clear(self) -> None:
        """Forget everything."""
        self.rows.clear()
        self.sums.clear()
        self.shares.clear()
        self._stacks.clear()
        self._cpus.clear()
        self._tree = Tree()  # a forked child may find the lock of the old one taken for ever


def _summed(t: int, sums: _Steps, shares: _Shares, looks: _Looks, cpus: _Steps) -> list[Row]:
    """Sums as rows; other threads may be adding to them."""
    rows: list[Row] = [(SUM, t, step, *total) for step, total in tuple(sums.items())]
    rows += [(SHARE, t, *which, *total) for which, total in tuple(shares.items())]
    rows += [(STACK, t, *which, *total[:2]) for which, total in tuple(looks.items())]
    return rows + [(CPU, t, step, *total[:2]) for step, total in tuple(cpus.items())]
