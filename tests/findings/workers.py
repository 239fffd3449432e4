"""Recordings made by hand of workers that have little memory: milliseconds and megabytes."""

from __future__ import annotations

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_runtime.event import MARK, MEMORY, SAMPLE, SPAN
from stageprof_runtime.stage import IMPORT, STEP, Stage

#: The thread of a worker's event loop.
LOOP = 5
MB = 1_000_000


class Workers(HandMade):
    """Workers with a memory limit, Dask's own thresholds, and what befell them."""

    def __init__(
        self, workers: int = 1, limit: int = 1000, threads: int = 1, **thresholds: float
    ) -> None:
        super().__init__(workers, threads)
        usual = {"target": 0.6, "spill": 0.7, "pause": 0.8, "terminate": 0.95} | thresholds
        for worker in self._workers:
            rows = self._rows[worker]
            rows.append((MARK, ns(0), "loop thread", str(LOOP)))
            for name, value in {"limit": limit * MB, **usual}.items():
                rows.append((SAMPLE, ns(0), f"worker.memory.{name}", float(value)))

    def took(
        self, worker: int, at: float, process: float, managed: float = 0, spilled: float = 0
    ) -> None:
        """What a worker's memory was at an instant."""
        values = {"process": process, "managed": managed, "spilled": spilled}
        for name, value in values.items():
            row = (SAMPLE, ns(at), f"memory.{name}", float(value * MB))
            self._rows[self._workers[worker]].append(row)

    def machine(self, megabytes: float) -> None:
        """What the machine of all workers has."""
        for worker in self._workers:
            row = (SAMPLE, ns(0), "worker.host_memory", float(megabytes * MB))
            self._rows[worker].append(row)

    def spilled(self, worker: int, start: float, stop: float, nbytes: float = 100) -> None:
        """A worker's loop wrote a result to disk."""
        step = STEP["spill.write"]
        row = (SPAN, step, ns(start), ns(stop), LOOP, "", round(nbytes * MB))
        self._rows[self._workers[worker]].append(row)

    def imported(self, worker: int, start: float, stop: float) -> None:
        """A worker's only thread imported a module within a task."""
        step = IMPORT[Stage.EXECUTION]
        row = (SPAN, step, ns(start), ns(stop), 100 * worker + 1, "module", 0)
        self._rows[self._workers[worker]].append(row)

    def paused(self, worker: int, start: float, stop: float | None = None) -> None:
        """A worker was paused, and ran again if `stop` is given."""
        self._befell("worker paused", start, self._workers[worker].name)
        if stop is not None:
            self._befell("worker resumed", stop, self._workers[worker].name)

    def killed(self, worker: int, at: float, taken: float, results: int = 0) -> None:
        """A nanny ended its worker, which was running one task."""
        name = self._workers[worker].name
        self._befell("worker killed", at, f"{name} {round(taken * MB)}")
        self.lost(worker, at, results, running=1)

    def lost(
        self, worker: int, at: float, results: int, running: int, *, well: bool = False
    ) -> None:
        """A worker went."""
        name = self._workers[worker].name
        self._befell("worker lost", at, f"{name} {results} {running} {int(well)}")
        self._befell("worker left", at, name)

    def around(
        self, worker: int, run: int, before: float, after: float, managed: float = 0
    ) -> None:
        """What the worker took before and after a run."""
        row = (MEMORY, run, *(round(n * MB) for n in (before, after, managed)))
        self._rows[self._workers[worker]].append(row)

    def sized(self, nbytes: float, kind: str) -> None:
        """Dask took the last run's result for this."""
        rows = self._rows[SCHEDULER]
        at = max(i for i, row in enumerate(rows) if len(row) == 6 and row[5] == "int")
        rows[at] = (*rows[at][:4], round(nbytes * MB), kind)

    def _befell(self, name: str, at: float, label: str) -> None:
        self._rows[SCHEDULER].append((MARK, ns(at), name, label))


def chain(made: Workers, gap: float = 0, length: float = 1000, runs: int = 5) -> float:
    """Runs one after another on the first worker with a gap before each; when the last ended."""
    graph = made.graph(0, 0, 0)
    now, last = 0.0, -1
    for i in range(runs):
        start = now + (gap if i else 0)
        cause = -1 - graph if i == 0 else last
        last = made.run(
            0, start, start + length, cause=cause, lead=(now, now), wanted=i == runs - 1
        )
        now = start + length
    made.wait(0, now, last, now)
    return now
