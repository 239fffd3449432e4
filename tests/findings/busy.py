"""Recordings made by hand of tasks whose work was looked at: milliseconds of one clock."""

from __future__ import annotations

from typing import Any, Final

from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import COLUMN, FINISH, HOLD, LINE, RUN, SAMPLE, STACK, UNUSED

FILE: Final = "/home/u/etl.py"
SECOND: Final = 1000.0


class Busy:
    """Tasks of one prefix on the threads of one worker, one computation that waits for them all."""

    def __init__(self, threads: int = 1) -> None:
        self.made = HandMade(1, threads)
        self._threads = threads
        self._graph = self.made.graph(0, 1, 2)
        self._stop = 2.0
        self._last = -1

    def tasks(
        self,
        prefix: str,
        count: int,
        each: float,
        *,
        cpu: float = 1.0,
        nbytes: int = 8,
        layer: str = "",
        type_: str = "int",
    ) -> None:
        """Tasks of `each` ms on all threads at a time; `cpu` is the busy part of it."""
        begin = self._stop
        for i in range(count):
            start = begin + (i // self._threads) * each
            key: Any = (layer, i) if layer else f"{prefix}-{i:032x}"
            run = self.made.run(
                0,
                start,
                start + each,
                cause=-1 - self._graph,
                lead=(begin, begin),
                thread=i % self._threads,
                key=key,
            )
            self._change(RUN, run, 7, round(cpu * each * 1e6))
            self._change(FINISH, run, 4, nbytes)
            self._change(FINISH, run, 5, type_)
            self._last, self._stop = run, max(self._stop, start + each)

    def _change(self, table: int, run: int, field: int, value: int | str) -> None:
        """A field of the last row of a table and run."""
        for rows in self.made._rows.values():
            for i in range(len(rows) - 1, max(-1, len(rows) - 4), -1):
                if rows[i][:2] == (table, run):
                    rows[i] = (*rows[i][:field], value, *rows[i][field + 1 :])

    def worker(self, *row: Any) -> None:
        self.made._rows[self.made._workers[0]].append(row)

    def look(
        self, prefix: str, line: int, function: str, how: str, count: int, *, entry: str = ""
    ) -> None:
        """Looks at tasks, 50 ms each."""
        label = f"{FILE}:{line} {function}" if function else ""
        ms = 50 * count
        self.worker(STACK, ns(1), prefix, label, how, entry or function, count, ms * 1_000_000)

    def column(self, prefix: str, name: str, dtype: str, kind: str, nbytes: int) -> None:
        self.worker(COLUMN, ns(1), prefix, name, dtype, kind, 100_000, nbytes)

    def unused(
        self, layer: str, how: str, label: str, reader: str, used: int, total: int, *, t: int = 0
    ) -> None:
        """What the `t`-th plan reads and does not use."""
        row = (UNUSED, ns(1 + t), layer, how, label, reader, used, total)
        self.made._rows[CLIENT].append(row)

    def line(self, name: str, line: int) -> None:
        self.made._rows[CLIENT].append((LINE, name, FILE, line, 0))

    def contention(self, value: float) -> None:
        for t in (0.0, self._stop):
            self.worker(SAMPLE, ns(t + 1), "gil.contention", value)

    def held(self, start: float, stop: float, thread: int = 0) -> None:
        """The watch saw a thread of the worker with the GIL."""
        self.worker(HOLD, ns(start), ns(stop), thread + 1, 0)

    def waited(self, start: float, stop: float, thread: int = 0) -> None:
        """The watch saw a thread of the worker wait for the GIL."""
        self.worker(HOLD, ns(start), ns(stop), thread + 1, 1)

    def facts(self, **values: float) -> None:
        """What the worker says of itself: `threads`, `cpus`."""
        for name, value in values.items():
            self.worker(SAMPLE, ns(1), f"worker.{name}", float(value))

    def host(self, cpus: float, busy: float, own: float) -> None:
        """Of so many processors so many were busy, and so many with this worker's process."""
        stop = self._stop + 1
        rows = {
            "host.cpus": (cpus, cpus),
            "host.busy_s": (0, busy * stop / 1e3),
            "process.cpu_s": (0, own * stop / 1e3),
        }
        for name, values in rows.items():
            for t, value in zip((1.0, stop), values, strict=True):
                self.worker(SAMPLE, ns(t), name, float(value))
        for place in (CLIENT, SCHEDULER):
            for t in (1.0, stop):
                self.made._rows[place].append((SAMPLE, ns(t), "process.cpu_s", 0.0))

    def recording(self) -> Recording:
        """The user's thread waits from its hand-over to the end of the last task."""
        self.made.wait(0.5, self._stop + 1, self._last, self._stop)
        return self.made.recording(self._stop + 2)
