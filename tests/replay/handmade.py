"""Recordings made by hand, in which every instant is known: milliseconds of one clock."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    ARRIVE,
    ASSIGN,
    BLOCK,
    DEPEND,
    FINISH,
    GRAPH,
    MARK,
    RUN,
    SPAN,
    STATUS,
    SUBMIT,
    WANT,
    Place,
)
from stageprof_runtime.stage import STEP
from stageprof_runtime.underway import WAITS

CLIENT = Place("client", "host", 1, "Client-1", 1)
SCHEDULER = Place("scheduler", "host", 2, "tcp://host:1", 1)
#: the user's thread
LANE = 7
#: everything begins here, so that no instant is 0 (which stands for "never")
ZERO = 1_000


def ns(ms: float) -> int:
    return round((ms + ZERO) * 1e6)


class HandMade:
    """Collects rows; `recording()` makes a recording of them."""

    def __init__(self, workers: int = 2, threads: int = 1) -> None:
        self._rows: dict[Place, list[tuple[Any, ...]]] = {CLIENT: [], SCHEDULER: []}
        self._workers = [
            Place("worker", "host", 10 + w, f"tcp://host:{10 + w}", 1) for w in range(workers)
        ]
        for worker in self._workers:
            label = f"{worker.name} {threads} 0 {worker.pid}"
            self._rows[SCHEDULER].append((MARK, ns(0), "worker seen", label))
            self._rows[worker] = []
        #: the step that a place is at when the recording ends
        self.now: dict[Place, int] = {}
        self._runs = self._graphs = 0
        self._end = 0.0

    def span(self, step: str, start: float, stop: float, line: str = "") -> None:
        """Work of the user's thread, called at "file:line"."""
        self._rows[CLIENT].append((SPAN, STEP[step], ns(start), ns(stop), LANE, line, 1))

    def graph(
        self, sent: float, arrived: float, taken: float, *, wanted: int = 1, parent: int = -1
    ) -> int:
        """A graph that the user's thread hands over, or the task of a run; its number."""
        g, self._graphs = self._graphs, self._graphs + 1
        self._rows[CLIENT].append((SUBMIT, g, ns(sent), wanted, 0, LANE, "etl.py", 1))
        row = (GRAPH, g, ns(arrived), ns(taken), 1, wanted, CLIENT.name, parent)
        self._rows[SCHEDULER].append(row)
        return g

    def run(
        self,
        worker: int,
        start: float,
        stop: float,
        *,
        cause: int,
        needs: list[int] | None = None,
        lead: tuple[float, float] | None = None,
        fetched: float | None = None,
        finished: float | None = None,
        thread: int = 0,
        key: Any = "",
        wanted: bool = False,
        status: int = 0,
    ) -> int:
        """A run; `lead` is when it was assigned and received (at its start), `needs` its rows of
        DEPEND; its number."""  # noqa: D205, D209
        run, self._runs = self._runs, self._runs + 1
        place, key = self._workers[worker], key or f"task-{run}"
        assigned, received = lead or (start, start)
        ready = received if fetched is None else fetched
        finished = stop if finished is None else finished
        rows = self._rows[SCHEDULER]
        rows.append((ASSIGN, run, ns(assigned), place.name, cause, key))
        rows += [(DEPEND, run, on) for on in needs or ()]
        rows.append((FINISH, run, ns(finished), status, 8, "int"))
        if wanted:
            rows.append((WANT, run, ns(finished), key))
        times = (ns(received), ns(ready), ns(start), ns(stop))
        self._rows[place].append((RUN, run, *times, 100 * worker + thread + 1, 0, place.name))
        return run

    def taken_back(
        self,
        worker: int,
        assigned: float,
        released: float,
        *,
        cause: int,
        key: Any = "",
        needs: list[int] | None = None,
    ) -> int:
        """A run that never was: its task was stolen, or cancelled, before a thread was free."""
        run, self._runs = self._runs, self._runs + 1
        rows = self._rows[SCHEDULER]
        name = self._workers[worker].name
        rows.append((ASSIGN, run, ns(assigned), name, cause, key or f"task-{run}"))
        rows += [(DEPEND, run, on) for on in needs or ()]
        rows.append((FINISH, run, ns(released), STATUS.index("released"), 0, ""))
        return run

    def rows_of(self, place: Place) -> list[tuple[Any, ...]]:
        """What a place tells, to add to."""
        return self._rows[place]

    def goes_on(self, worker: int, assigned: float, *, cause: int) -> int:
        """A run that had not ended when the recording did."""
        run, self._runs = self._runs, self._runs + 1
        row = (ASSIGN, run, ns(assigned), self._workers[worker].name, cause, f"task-{run}")
        self._rows[SCHEDULER].append(row)
        return run

    def waits_since(self, start: float, call: str = "_gather", lane: int = LANE) -> None:
        """The client tells that a call has begun."""
        self._rows[CLIENT].append((MARK, ns(start), WAITS, f"{lane} {call}"))

    def wait(
        self, start: float, stop: float, run: int, ended: float, call: str = "_gather"
    ) -> None:
        """The user's thread waited for a run, of which it heard when it ended."""
        key = f"task-{run}"
        self._rows[CLIENT].append((ARRIVE, ns(ended), key))
        block = (BLOCK, ns(start), ns(stop), LANE, call, ns(ended), ns(ended), ns(stop), key)
        self._rows[CLIENT].append(block)

    def waits_within(self, worker: int, start: float, stop: float, run: int, ended: float) -> None:
        """The first thread of a worker waited, in its task, for a run that it had handed over."""
        key, lane = f"task-{run}", 100 * worker + 1
        rows = self._rows[self._workers[worker]]
        rows.append((ARRIVE, ns(ended), key))
        rows.append(
            (BLOCK, ns(start), ns(stop), lane, "_gather", *map(ns, (ended, ended, stop)), key)
        )

    def launched(self, run: int, arrived: float) -> int:
        """A graph of one task that a task handed over; its number."""
        g, self._graphs = self._graphs, self._graphs + 1
        row = (GRAPH, g, ns(arrived), ns(arrived), 1, 1, CLIENT.name, run)
        self._rows[SCHEDULER].append(row)
        return g

    def recording(self, stop: float, *, attached: bool = False) -> Recording:
        """The recording of the region from 0 to `stop`."""
        if not attached:
            begin = (MARK, ns(0), "region start", f"{LANE} {LANE}")
            end = (MARK, ns(stop), "region stop", f"{LANE}")
            self._rows[CLIENT] += [begin, end]
        return self._recorded(stop)

    def broken_off(self, stop: float, lane: int = LANE) -> Recording:
        """That of a program that was killed within its region, at `stop`."""
        self._rows[CLIENT].append((MARK, ns(0), "region start", f"{lane} {LANE}"))
        return self._recorded(stop)

    def _recorded(self, stop: float) -> Recording:
        store = Store()
        for place, rows in self._rows.items():
            store.add(pack(place, 0, ns(0), []))
            store.add(pack(place, 1, ns(stop), rows, now=self.now.get(place, 0)))
        return Recording(store)
