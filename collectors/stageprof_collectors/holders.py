"""`rec.gil()`: seconds of the GIL by process, task prefix and line of code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from stageprof_collectors.gil import Gil
from stageprof_collectors.looks import Looks, place
from stageprof_collectors.timeline import Ints

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

COLUMNS: Final = [
    "place", "thread", "prefix", "function", "file", "line", "hold_s", "wait_s", "caused_s",
    "source",
]  # fmt: skip
#: What names the lines: py-spy, or the looks from within the process.
SPY, LOOKS = "py-spy", "looks"


class Stretches(NamedTuple):
    """Pieces of a thread's time in which it was in one run (-1: none) and at one line."""

    start: Ints
    stop: Ints
    run: Ints
    #: number of the text "file:line function" in the store's strings; -1: not known
    label: Ints


def gil(recording: Recording) -> pd.DataFrame:
    """See `Recording.gil`."""
    known = recording.timeline.gil
    frames = [
        _of_thread(recording, known, process, thread) for process, thread in sorted(known.threads)
    ]
    full = [frame for frame in frames if len(frame)]
    if not full:
        return pd.DataFrame(columns=COLUMNS)
    by = [name for name in COLUMNS if not name.endswith("_s")]
    total = pd.concat(full).groupby(by, sort=False, as_index=False).sum()
    order = ["hold_s", "wait_s"]
    return total[COLUMNS].sort_values(order, ascending=False, ignore_index=True)


def _of_thread(recording: Recording, known: Gil, process: int, thread: int) -> pd.DataFrame:
    pieces = _stretches(recording, known, process, thread)
    if not len(pieces.start):
        return pd.DataFrame(columns=COLUMNS)
    totals = known.threads[process, thread]
    had = [total.between(pieces.start, pieces.stop) / 1e9 for total in totals]
    prefixes = recording.tasks()["prefix"].to_numpy(object)
    frame = pd.DataFrame(
        {
            "prefix": np.where(pieces.run >= 0, np.append(prefixes, "")[pieces.run], ""),
            "label": pieces.label,
            **dict(zip(("hold_s", "wait_s", "caused_s"), had, strict=True)),
        }
    )
    frame = frame.groupby(["prefix", "label"], sort=False, as_index=False).sum()
    frame = frame[frame[["hold_s", "wait_s"]].sum(axis=1) > 0]
    frame["place"], frame["thread"] = _names(recording, known, process, thread)
    return _by_line(recording, frame)


def _stretches(recording: Recording, known: Gil, process: int, thread: int) -> Stretches:
    runs = recording.timeline.runs
    stood = recording.timeline.read("stood", "start", "stop")
    mine = np.flatnonzero((known.process[stood["place"]] == process) & (stood["thread"] == thread))
    here = (runs["wplace"] >= 0) & (runs["thread"] == thread)
    here &= known.process[np.maximum(runs["wplace"], 0)] == process
    at = np.flatnonzero(here)
    span = known.threads[process, thread]
    bounds = [total.edges[[0, -1]] for total in span if len(total.edges)]
    ends = ("start", "stop")
    edges = np.unique(
        np.concatenate([*bounds, *(runs[e][at] for e in ends), *(stood[e][mine] for e in ends)])
    )
    start, stop = edges[:-1], edges[1:]
    run = _covering(runs["start"][at], runs["stop"][at], at, start)
    label = _covering(stood["start"][mine], stood["stop"][mine], stood["label"][mine], start)
    return Stretches(start, stop, run, label)


def _covering(starts: Ints, stops: Ints, values: Ints, at: Ints) -> Ints:
    """The value of the interval that is going on at each instant, the last begun; -1: none."""
    if not len(starts):
        return np.full(len(at), -1)
    order = np.argsort(starts, kind="stable")
    found = np.searchsorted(starts[order], at, side="right") - 1
    row = order[np.maximum(found, 0)]
    return np.where((found >= 0) & (stops[row] > at), values[row], -1)


def _names(recording: Recording, known: Gil, process: int, thread: int) -> tuple[str, str]:
    """What a process and a thread of it are called."""
    places = np.flatnonzero(known.process == process).tolist()
    roles = [recording.store.places[p] for p in places]
    place_name = " and ".join(dict.fromkeys(_called(recording, p.role, p.name) for p in roles))
    loops = {label for _, p, label in recording.timeline.marks("loop thread") if p in places}
    if str(thread) in loops:
        return place_name, "event loop"
    marks = (label for _, p, label in recording.timeline.marks("thread") if p in places)
    names = dict(label.partition(" ")[::2] for label in marks)
    return place_name, names.get(str(thread), str(thread))


def _called(recording: Recording, role: str, name: str) -> str:
    if role != "worker":
        return role
    return f"worker {recording.worker_names.get(name) or name}"


def _by_line(recording: Recording, frame: pd.DataFrame) -> pd.DataFrame:
    """Functions and lines in place of labels; those that py-spy did not see, from the looks."""
    rows: list[dict[str, Any]] = []
    shares = _shares(recording)
    strings = recording.store.strings
    for found in frame.to_dict("records"):
        row = {str(name): value for name, value in found.items()}
        if row["label"] >= 0:
            rows.append(row | _where(*place(strings[row["label"]]), SPY))
            continue
        for share, where in shares.get(row["prefix"], [(1.0, _where("", 0, "", ""))]):
            part = {name: row[name] * share for name in ("hold_s", "wait_s", "caused_s")}
            rows.append(row | part | where)
    return pd.DataFrame(rows, columns=COLUMNS)


def _where(file: str, line: int, function: str, source: str) -> dict[str, Any]:
    return {"file": file, "line": line, "function": function, "source": source}


def _shares(recording: Recording) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Prefix -> shares of its bytecode by line, as the looks saw it."""
    found: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    looks = [look for look in Looks(recording).python() if look.seconds > 0]
    total: dict[str, float] = {}
    for look in looks:
        total[look.prefix] = total.get(look.prefix, 0.0) + look.seconds
    for look in looks:
        where = _where(look.file, look.line, look.function, LOOKS)
        found.setdefault(look.prefix, []).append((look.seconds / total[look.prefix], where))
    return found
