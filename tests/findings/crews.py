"""Recordings made by hand of workers that come late, stand idle, fail: times are in ms."""

from __future__ import annotations

from typing import Any

from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof_runtime.event import ARRIVE, BLOCK, LINE, MARK, RUN, SAMPLE, SPAN, STACK, SUBMIT
from stageprof_runtime.stage import IMPORT, STEP, Stage

FILE = "etl.py"


class Crewed(HandMade):
    """Workers of which facts are known, and graphs whose lines are."""

    def took(self, worker: int, stop: float, cpu_s: float) -> None:
        """A worker's process took so much of all CPUs from the beginning to an instant."""
        for at, value in ((0.0, 1.0), (stop, 1.0 + cpu_s)):
            row = (SAMPLE, ns(at), "process.cpu_s", value)
            self._rows[self._workers[worker]].append(row)

    def cpus(self, worker: int, number: int) -> None:
        """So many CPUs a worker may use."""
        row = (SAMPLE, ns(0), "worker.cpus_usable", float(number))
        self._rows[self._workers[worker]].append(row)

    def free(self) -> None:
        """The Pythons of all workers have no GIL."""
        for place in self._workers:
            row = (MARK, ns(0), "gil source", "ticker: this Python runs without a GIL")
            self._rows[place].append(row)

    def on_host(self, worker: int, host: str) -> None:
        """A worker is on another host; to be said before its runs."""
        was = self._workers[worker]
        self._workers[worker] = was._replace(host=host)
        self._rows[self._workers[worker]] = self._rows.pop(was)

    def limit(self, worker: int, megabytes: float, managed: float = 0) -> None:
        """A worker's memory limit, and what its results took."""
        for name, value in (("worker.memory.limit", megabytes), ("memory.managed", managed)):
            row = (SAMPLE, ns(1), name, value * 1e6)
            self._rows[self._workers[worker]].append(row)

    def late(self, worker: int, at: float, threads: int = 1) -> None:
        """A worker came only then."""
        place = self._workers[worker]
        rows = self._rows[SCHEDULER]
        rows[:] = [r for r in rows if not (r[0] == MARK and str(r[3]).startswith(place.name))]
        rows.append((MARK, ns(at), "worker seen", f"{place.name} {threads} 0 {place.pid}"))

    def left(self, worker: int, at: float) -> None:
        """A worker went then."""
        name = self._workers[worker].name
        self._rows[SCHEDULER].append((MARK, ns(at), "worker left", name))

    def at_line(self, graph: int, line: int) -> None:
        """The line that handed a graph over."""
        rows = self._rows[CLIENT]
        for i, row in enumerate(rows):
            if row[0] == SUBMIT and row[1] == graph:
                rows[i] = (*row[:6], FILE, line)

    def made(self, name: str, line: int) -> None:
        """Tasks of this name were made at a line."""
        self._rows[CLIENT].append((LINE, name, FILE, line, 1))

    def imported(self, module: str, stop: float) -> None:
        """The user's thread imported it, from the beginning on, to build a collection."""
        row = (SPAN, IMPORT[Stage.CONSTRUCTION], ns(0), ns(stop), LANE, module, 0)
        self._rows[CLIENT].append(row)

    def verdict(self, verdict: str, line: int) -> None:
        """What the program's text says of a loop."""
        self._rows[CLIENT].append((MARK, ns(0), "loop", f"{verdict} {FILE}:{line}"))

    def raised(self, worker: int, error: str, prefix: str, line: int, at: float = 1) -> None:
        """A task raised there; it ended at that time."""
        label = f"{error}\t{prefix}\t{FILE}:{line}"
        self._rows[self._workers[worker]].append((MARK, ns(at), "task failed", label))

    def killed(self, at: float, prefix: str) -> None:
        """The scheduler gave a task up that went with its workers."""
        label = f"KilledWorker\t{prefix}\t"
        self._rows[SCHEDULER].append((MARK, ns(at), "task failed", label))

    def ended(self, label: str, at: float = 1) -> None:
        """An exception left the region."""
        self._rows[CLIENT].append((MARK, ns(at), "region raised", label))

    def fails(self, worker: int, stop: float, key: str, error: str = "", status: int = 1) -> int:
        """A run of 100 ms in a graph of its own that fails then; what it raised, if it is told."""
        cause = -1 - self.graph(stop - 100, stop - 100, stop - 100)
        run = self.run(worker, stop - 100, stop, cause=cause, key=key, status=status)
        if error:
            self.raised(worker, error, key.partition("-")[0], 8, at=stop)
        return run

    def looked(self, worker: int, prefix: str, how: str, ms: float) -> None:
        """Looks at tasks saw this kind of work."""
        row: tuple[Any, ...] = (
            STACK,
            ns(1),
            prefix,
            f"{FILE}:9 work",
            how,
            prefix,
            10,
            round(ms * 1e6),
        )
        self._rows[self._workers[worker]].append(row)

    def loaded(self, start: float, stop: float, nbytes: int) -> None:
        """The client unpickled a result."""
        row = (SPAN, STEP["result.load"], ns(start), ns(stop), LANE + 1, "", nbytes)
        self._rows[CLIENT].append(row)

    def wait_for(self, start: float, stop: float, key: Any) -> None:
        """The user's thread waited for a key that was there at the end."""
        self._rows[CLIENT].append((ARRIVE, ns(stop), key))
        block = (BLOCK, ns(start), ns(stop), LANE, "_gather", ns(stop), ns(stop), ns(stop), key)
        self._rows[CLIENT].append(block)

    def computed(self, part: float) -> None:
        """Runs so far had a processor for such a part of their time."""
        for worker in self._workers:
            rows = self.rows_of(worker)
            rows[:] = [
                (*row[:7], round(part * (row[5] - row[4])), *row[8:]) if row[0] == RUN else row
                for row in rows
            ]

    def sized(self, nbytes: int, kind: str = "int") -> None:
        """The last run's result had so many bytes."""
        rows = self._rows[SCHEDULER]
        at = max(i for i, row in enumerate(rows) if len(row) == 6 and row[5] == "int")
        rows[at] = (*rows[at][:4], nbytes, kind)


def side_by_side(
    made: Crewed,
    lengths: list[tuple[int, float]],
    prefix: str = "work",
    keys: list[tuple[str, int]] | None = None,
) -> float:
    """One graph of runs that need nothing, each on its worker for so long; when all were done."""
    named: list[Any] = keys or [
        f"{prefix}-{i:08x}-0000-4000-8000-000000000000" for i in range(len(lengths))
    ]
    graph = made.graph(0, 0, 0, wanted=len(lengths))
    ends: dict[int, float] = {}
    last: dict[int, int] = {}
    final = -1
    for i, (worker, length) in enumerate(lengths):
        start = ends.get(worker, 0.0)
        cause = last.get(worker, -1 - graph)
        needs = [-1] if worker in last else []
        run = made.run(
            worker, start, start + length, cause=cause, needs=needs, key=named[i], wanted=True,
            lead=(start, start),
        )  # fmt: skip
        ends[worker], last[worker] = start + length, run
        if ends[worker] == max(ends.values()):
            final = i
    end = max(ends.values())
    made.wait_for(0, end, named[final])
    return end
