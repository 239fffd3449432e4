"""Chrome's Trace Event Format, which https://ui.perfetto.dev and chrome://tracing open.

A process for each place and one for the critical path; a row for each thread, more where things
overlap; a slice for each task and span; a row beside for when each thread held the GIL or waited
for it; counters for memory, CPU and the GIL. Times are microseconds from the first event.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from stageprof.export.rows import nested
from stageprof.recording import Recording
from stageprof_collectors.profiles.gil import Names
from stageprof_collectors.profiles.holders import spans
from stageprof_collectors.tables.lines import Lines
from stageprof_collectors.tables.tasks import layer_of
from stageprof_collectors.text import safe
from stageprof_runtime.event import SAMPLED
from stageprof_runtime.stage import stage_of, step_name

Event = dict[str, Any]

#: The process of the critical path; pid 0 is the idle process of the kernel to Perfetto.
PATH_PID: Final = 1
_COUNTERS: Final = ("memory.", "cpu.", "gil.")


class Slice(NamedTuple):
    """What a slice says: its name (which gives its colour), its category and its details."""

    name: str
    category: str
    args: Event


#: A process for each role and name, which of a worker is its address.
Pids = dict[tuple[str, str], int]
Slices = defaultdict[tuple[int, str], list[tuple[int, int, Slice]]]


def write(recording: Recording, file: Path) -> None:
    """Write the trace."""
    encode = msgspec.json.Encoder().encode
    with file.open("wb") as out:
        out.write(b'{"displayTimeUnit":"ms","traceEvents":[\n')
        for number, event in enumerate(events(recording)):
            out.write(b",\n" if number else b"")
            out.write(encode(event))
        out.write(b"\n]}\n")


def events(recording: Recording) -> Iterator[Event]:
    """The events: names of processes and rows first, then all others by time."""
    pids = _pids(recording)
    slices = _slices(recording, pids)
    counters = _counters(recording, pids)
    zero = min(
        [s[0] for row in slices.values() for s in row] + [t for t, *_ in counters], default=0
    )
    names = [_process_name(pid, name) for name, pid in _called(recording, pids)]
    names.append(_process_name(PATH_PID, "critical path"))
    drawn: list[tuple[int, Event]] = [(t, event) for t, event in counters]
    tid = PATH_PID + len(pids) + 1  # a thread with its process's number were the main one
    for (pid, thread), found in slices.items():
        rows = 0
        for row, start, stop, what in nested(found):
            rows = max(rows, row + 1)
            drawn.append((start, _complete(pid, tid + row, stop - start, what)))
        names += [_row_name(pid, tid + row, thread, row) for row in range(rows)]
        tid += rows
    yield from names
    for start, event in sorted(drawn, key=lambda pair: pair[0]):
        yield {**event, "ts": (start - zero) / 1e3}


def _pids(recording: Recording) -> Pids:
    """A number for each place, and for workers that only the scheduler told of."""
    store = recording.store
    found: Pids = {}
    for place in store.places:
        found.setdefault((place.role, place.name), len(found) + PATH_PID + 1)
    for run in sorted(set(recording.timeline.runs["worker"].tolist())):
        found.setdefault(("worker", store.strings[run]), len(found) + PATH_PID + 1)
    return found


def _called(recording: Recording, pids: Pids) -> Iterator[tuple[str, int]]:
    """What each process is called in the app; where that is two's, with the name of each."""
    names = recording.worker_names
    labels = [f"worker {names.get(n) or n}" if role == "worker" else role for role, n in pids]
    often = Counter(labels)
    for label, ((_, name), pid) in zip(labels, pids.items(), strict=True):
        yield label if often[label] == 1 else f"{label} {name}", pid


def _slices(recording: Recording, pids: Pids) -> Slices:
    slices: Slices = defaultdict(list)
    threads = _Threads()
    for start, stop, step in ((s.start, s.stop, s) for s in recording.path_steps):
        code = step.what.step
        what = Slice(f"{stage_of(code)} {step_name(code)}".strip(), str(stage_of(code)), {})
        slices[PATH_PID, "what the caller waited for"].append((start, stop, what))
    for pid, thread, start, stop, what in _tasks(recording, pids):
        slices[pid, threads.name(pid, thread)].append((start, stop, what))
    for pid, thread, start, stop, what in _spans(recording, pids):
        slices[pid, threads.name(pid, thread)].append((start, stop, what))
    for row, turns in _turns(recording, pids, threads):
        slices[row] += turns
    return slices


class _Threads:
    """Short names for threads, whose own numbers are too large for JSON."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], str] = {}
        self._count: defaultdict[int, int] = defaultdict(int)
        self._gil: defaultdict[tuple[int, str], int] = defaultdict(int)

    def name(self, pid: int, thread: int) -> str:
        if (pid, thread) not in self._names:
            self._count[pid] += 1
            self._names[pid, thread] = f"thread {self._count[pid]}"
        return self._names[pid, thread]

    def gil(self, pid: int, thread: int, called: str) -> str:
        """A row of its own for the thread's GIL; `called` is what to say of one without slices."""
        known = self._names.get((pid, thread))
        name = f"{known} ({safe(called)}): GIL" if known else f"{safe(called)}: GIL"
        self._gil[pid, name] += 1
        again = self._gil[pid, name]
        return f"{name} ({again})" if again > 1 else name


def _tasks(recording: Recording, pids: Pids) -> Iterator[tuple[int, int, int, int, Slice]]:
    lines, frame = Lines(recording.store), recording.tasks()
    runs = recording.timeline.runs
    times = zip(runs["start"].tolist(), runs["stop"].tolist(), strict=True)
    columns = ("key", "prefix", "layer", "worker", "thread", "gil_share", "nbytes", "status")
    rows = zip(*(frame[name].tolist() for name in columns), strict=True)
    for (start, stop), (key, prefix, layer, worker, thread, gil, nbytes, status) in zip(
        times, rows, strict=True
    ):
        line = lines.of(layer_of(layer))
        args = {
            "key": safe(key, limit=1000),
            "layer": safe(layer, limit=1000),
            "line": safe(f"{line.file}:{line.line}", limit=1000) if line.file else "",
            "gil_share": gil if gil == gil else None,  # noqa: PLR0124 (JSON knows no NaN)
            "nbytes": nbytes,
            "status": status,
        }
        category = safe(prefix).replace(",", " ")
        yield (
            pids["worker", worker],
            thread,
            start,
            stop,
            Slice(safe(prefix), category, args),
        )


def _spans(recording: Recording, pids: Pids) -> Iterator[tuple[int, int, int, int, Slice]]:
    store, spans = recording.store, recording.timeline.spans
    own = [pids[place.role, place.name] for place in store.places]
    names = ("start", "stop", "step", "place", "thread", "nbytes", "label")
    rows = zip(*(spans[name].tolist() for name in names), strict=True)
    for start, stop, step, place, thread, nbytes, label in rows:
        args: Event = {"label": safe(store.strings[label], limit=1000)}
        args |= {"sampled": True} if nbytes == SAMPLED else {"nbytes": nbytes}
        yield own[place], thread, start, stop, Slice(step_name(step), str(stage_of(step)), args)


#: What a thread had of the GIL, as in HOLD.
_TURN: Final = (Slice("holds the GIL", "gil", {}), Slice("waits for the GIL", "gil", {}))


def _turns(
    recording: Recording, pids: Pids, threads: _Threads
) -> Iterator[tuple[tuple[int, str], list[tuple[int, int, Slice]]]]:
    """Of each thread its row, and when it held the GIL and waited for it."""
    store, gil = recording.store, recording.timeline.gil
    own = [pids[place.role, place.name] for place in store.places]
    names, pid_of = Names(recording), dict(zip(gil.process[::-1].tolist(), own[::-1], strict=False))
    for process, thread in sorted(gil.threads):
        pid, called = pid_of[process], names.of(process, thread)[1]
        columns = (column.tolist() for column in spans(gil.threads[process, thread]))
        turns = [(start, stop, _TURN[waits]) for start, stop, waits in zip(*columns, strict=True)]
        if turns:
            yield (pid, threads.gil(pid, thread, called)), turns


def _counters(recording: Recording, pids: Pids) -> list[tuple[int, Event]]:
    store, table = recording.store, recording.timeline.read("sample", "t")
    own = [pids[place.role, place.name] for place in store.places]
    rows = zip(*(table[name].tolist() for name in ("t", "place", "name", "value")), strict=True)
    return [
        (t, _counter(own[place], store.strings[name], value))
        for t, place, name, value in rows
        if store.strings[name].startswith(_COUNTERS) and value == value  # noqa: PLR0124
    ]


def _counter(pid: int, name: str, value: float) -> Event:
    return {"ph": "C", "pid": pid, "tid": 0, "name": safe(name), "args": {"value": value}}


def _complete(pid: int, tid: int, duration: int, what: Slice) -> Event:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": what.name,
        "cat": what.category,
        "dur": max(duration, 0) / 1e3,
        "args": what.args,
    }


def _process_name(pid: int, name: str) -> Event:
    return _metadata(pid, 0, "process_name", safe(name))


def _row_name(pid: int, tid: int, thread: str, row: int) -> Event:
    return _metadata(pid, tid, "thread_name", f"{thread}{' +' + str(row) if row else ''}")


def _metadata(pid: int, tid: int, kind: str, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "args": {"name": name}}
