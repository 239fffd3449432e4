"""Recordings made by hand of programs with many tasks, modules, objects: what rules look at.

One client's thread, a scheduler and a worker of one thread; tasks follow one another, so that
the wall time is the sum of what is said. Times are in ms.
"""

from __future__ import annotations

from typing import Any, Final

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    ARRIVE,
    ASSIGN,
    BLOCK,
    DEPEND,
    FIELDS,
    FINISH,
    GRAPH,
    LINE,
    MARK,
    OBJECT,
    RUN,
    SAMPLED,
    SHARE,
    SPAN,
    SUBMIT,
    WANT,
    Place,
)
from stageprof_runtime.stage import CODE

CLIENT: Final = Place("client", "host", 1, "Client-1", 1)
SCHEDULER: Final = Place("scheduler", "host", 2, "tcp://host:1", 1)
WORKER: Final = Place("worker", "host", 10, "tcp://host:10", 1)
LANE: Final = 7
FILE: Final = "/home/u/etl.py"
#: everything begins here, so that no instant is 0 (which stands for "never")
ZERO: Final = 1_000


def ns(ms: float) -> int:
    return round((ms + ZERO) * 1e6)


class Program:
    """Collects rows as time goes by; `recording()` makes a recording of them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rows: dict[Place, list[tuple[Any, ...]]] = {CLIENT: [], SCHEDULER: [], WORKER: []}
        label = f"{WORKER.name} 1 0 {WORKER.pid}"
        self.rows[SCHEDULER].append((MARK, ns(0), "worker seen", label))
        self._runs = self._graphs = 0

    def client(self, step: str, ms: float, label: str = "", *, seen: bool = False) -> None:
        """The user's thread is in a step ("stage/step"); `seen` by the sampler only."""
        nbytes = SAMPLED if seen else 0
        row = (SPAN, CODE[step], ns(self.now), ns(self.now + ms), LANE, label, nbytes)
        self.rows[CLIENT].append(row)
        self.now += ms

    def made(self, name: str, line: int) -> None:
        """A layer or prefix of this name was made at a line."""
        self.rows[CLIENT].append((LINE, name, FILE, line, 1))

    def embedded(self, layer: str, **fields: Any) -> None:
        """An object is in a layer of the next graph; `fields` as in OBJECT, `dump` in ms."""
        known: dict[str, Any] = {
            "t": ns(self.now), "number": 1, "graph": self._graphs, "type": "pandas.DataFrame",
            "name": layer, "how": "argument 1 of map_partitions", "variable": "weights",
            "file": FILE, "line": 40, "nbytes": 32_000_000, "copies": 1, "pieces": 1, "tasks": 0,
            "dump": 0.0,
        } | fields  # fmt: skip
        known["dump"] = round(known["dump"] * 1e6)
        self.rows[CLIENT].append((OBJECT, *(known[name] for name in FIELDS[OBJECT])))

    def sent(self, layer: str, tasks: int, nbytes: int) -> None:
        """The scheduler dumped messages of a layer, so many bytes together, in no time."""
        row = (SHARE, ns(self.now), CODE["serialization/task.dump"], layer, tasks, 0, nbytes)
        self.rows[SCHEDULER].append(row)

    def tasks(
        self,
        keys: list[Any],
        *,
        work: float,
        lead: float = 1.0,
        chain: bool = False,
        type_: str = "int",
        nbytes: int = 8,
        imports: tuple[str, float] = ("", 0.0),
    ) -> list[int]:
        """Hand over a graph and wait for its tasks, one after another; their numbers.

        `lead` is what the scheduler and the message take for each; in a `chain` each needs the one
        before. The first task imports a module within its function, so many ms long.
        """
        g, self._graphs = self._graphs, self._graphs + 1
        began = self.now
        self.rows[CLIENT].append((SUBMIT, g, ns(began), 1, 0, LANE, FILE, 99))
        row = (GRAPH, g, ns(began), ns(began), len(keys), 1, CLIENT.name, -1)
        self.rows[SCHEDULER].append(row)
        runs = []
        for i, key in enumerate(keys):
            cause = self._runs - 1 if i else -1 - g
            if i and not chain:
                self.rows[SCHEDULER].append((DEPEND, self._runs, -1))
            length = work + (imports[1] if not i else 0.0)
            runs.append(self._run(key, cause, lead, length, type_, nbytes))
            if imports[0] and not i:
                self._import(imports[0], self.now - length, imports[1])
        self._wait(began, runs[-1], keys[-1])
        return runs

    def _run(self, key: Any, cause: int, lead: float, work: float, type_: str, nbytes: int) -> int:
        run, self._runs = self._runs, self._runs + 1
        t = self.now
        start, stop = t + lead, t + lead + work
        self.rows[SCHEDULER].append((ASSIGN, run, ns(t), WORKER.name, cause, key))
        self.rows[SCHEDULER].append((FINISH, run, ns(stop), 0, nbytes, type_))
        times = (ns(start), ns(start), ns(start), ns(stop))
        self.rows[WORKER].append((RUN, run, *times, 101, 0, WORKER.name))
        self.now = stop
        return run

    def _import(self, module: str, start: float, ms: float) -> None:
        step = CODE["execution/import"]
        self.rows[WORKER].append((SPAN, step, ns(start), ns(start + ms), 101, module, 0))

    def _wait(self, began: float, run: int, key: Any) -> None:
        end = ns(self.now)
        self.rows[SCHEDULER].append((WANT, run, end, key))
        self.rows[CLIENT].append((ARRIVE, end, key))
        self.rows[CLIENT].append((BLOCK, ns(began), end, LANE, "_gather", end, end, end, key))

    def recording(self, *, whole: bool = False) -> Recording:
        """The recording of all so far; `whole`: of the program from its first line on."""
        begin = (MARK, ns(0), "region start", f"{LANE} {LANE}")
        self.rows[CLIENT] += [begin, (MARK, ns(self.now), "region stop", f"{LANE}")]
        store = Store({"whole": whole})
        for place, rows in self.rows.items():
            store.add(pack(place, 0, ns(0), []))
            store.add(pack(place, 1, ns(self.now), rows))
        store.complete = True
        return Recording(store)


def calls(number: int, name: str = "checked") -> list[str]:
    """Keys as `delayed` makes them."""
    return [f"{name}-{i:08x}-0000-4000-8000-000000000000" for i in range(number)]


def pieces(number: int, name: str = "sum") -> list[tuple[str, int, int]]:
    """Keys as an array has them."""
    return [(f"{name}-{'0' * 32}", i // 10, i % 10) for i in range(number)]
