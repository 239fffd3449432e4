"""Attempts at tasks: what the scheduler and the workers told of each run, as one table.

A run is known by its number and its scheduler's place, or its number and its worker; the rows of
the two sides meet here. Where a worker told nothing, its times are the scheduler's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.abreast import abreast
from stageprof_runtime.event import STATUS, Place

Ints = NDArray[np.int64]
Columns = dict[str, Ints]

#: Runs of local schedulers are numbered from here on.
LOCAL = 2**40
_WORKER_SHIFT = 42
_RELEASED, _OTHER = STATUS.index("released"), STATUS.index("other")


def attempts(assign: Columns, finish: Columns, run: Columns) -> Columns:
    """One row for each row of `assign`; all three tables on one clock.

    Columns: those of `Timeline.runs`; alignment may have left impossible orders, see `ordered`.
    """
    runs = dict(assign)
    runs["assigned"] = runs.pop("t")
    runs |= _finished(runs, finish)
    return runs | _worked(runs, run)


def _finished(runs: Columns, finish: Columns) -> Columns:
    """Columns of FINISH for each run; 0 and status -1 where it never ended."""
    names = ("t", "status", "nbytes", "type")
    if not len(finish["t"]):
        out = {name: _zeros(runs) for name in names}
        out["status"] -= 1
    else:
        at, found = lookup(finish["run"], finish["place"], runs["run"], runs["place"])
        out = abreast(lambda name: finish[name][at], names, len(at))
        if not found.all():
            for name, values in out.items():
                values[~found] = -1 if name == "status" else 0
    return {"finished": out.pop("t")} | out


def _worked(runs: Columns, rows: Columns) -> Columns:
    """Columns of RUN for each run; the scheduler's own times where the worker told nothing."""
    names = ("received", "ready", "start", "stop", "thread", "cpu")
    if not len(rows["run"]):
        found = np.zeros(len(runs["run"]), np.bool_)
        out = {name: _zeros(runs) for name in (*names, "place")}
    else:
        at, found = _of_workers(runs, rows)
        out = abreast(lambda name: rows[name][at], (*names, "place"), len(at))
    out["wplace"] = out.pop("place")
    if not found.all():
        _estimated(out, runs, ~found)
    # How long a task of a worker that tells nothing took its scheduler heard; not what came before.
    guessed = found & (out["wplace"] < 0)
    if guessed.any():
        out["received"] = np.where(guessed, runs["assigned"], out["received"])
    out["seen"] = (found & ~guessed).astype(np.int64)
    return out


def _of_workers(runs: Columns, rows: Columns) -> tuple[Ints, NDArray[np.bool_]]:
    """For each run the row of its worker, and whether there is one."""
    at, found = lookup(rows["run"], rows["worker"], runs["run"], runs["worker"])
    local = runs["run"] >= LOCAL
    if local.any():  # a local task is assigned to no process in particular
        zero = np.zeros(len(rows["run"]), np.int64)
        at2, found2 = lookup(rows["run"], zero, runs["run"], _zeros(runs))
        at, found = np.where(local, at2, at), np.where(local, found2, found)
    return at, found


def _estimated(out: Columns, runs: Columns, untold: NDArray[np.bool_]) -> None:
    """The scheduler's own times of runs that no worker told of."""
    out["wplace"][untold] = -1
    assigned, finished = runs["assigned"][untold], runs["finished"][untold]
    for name in ("received", "ready", "start"):
        out[name][untold] = assigned
    out["stop"][untold] = np.where(finished > 0, finished, assigned)
    # Taken back before it ran (stolen, cancelled): it only waited there.
    waited = untold & (runs["status"] == _RELEASED)
    out["start"][waited] = out["stop"][waited]


def ran(runs: Columns) -> NDArray[np.bool_]:
    """Which runs were: all that were not given back."""
    return ~given_back(runs)


def given_back(runs: Columns) -> NDArray[np.bool_]:
    """Which runs never were: a worker had the task, which was stolen or cancelled before it ran."""
    found: NDArray[np.bool_] = (runs["seen"] == 0) & (runs["status"] == _RELEASED)
    return found


def outlived(runs: Columns) -> NDArray[np.bool_]:
    """Which runs may have gone on after the scheduler was done with them.

    It takes a task back that is cancelled; no worker can end a function that runs.
    """
    found: NDArray[np.bool_] = (runs["seen"] == 1) & (runs["status"] == _RELEASED)
    return found


def worked(runs: Columns) -> NDArray[np.bool_]:
    """Which runs are known to have worked, and for how long.

    Their worker told of it; or, where that tells nothing, its scheduler heard how long they took:
    such a run began after it was assigned.
    """
    heard = (runs["wplace"] < 0) & (runs["start"] > runs["assigned"]) & ~given_back(runs)
    found: NDArray[np.bool_] = (runs["seen"] == 1) | heard
    return found


def own_last(rows: Columns, places: Sequence[Place]) -> Columns:
    """Rows of RUN, those that a scheduler guessed, of place -1, before those of the workers.

    Until a worker's first batch has come its scheduler does not know that it tells of its own.
    """
    schedulers = [i for i, place in enumerate(places) if place.role == "scheduler"]
    guessed = np.isin(rows["place"], schedulers)
    if not guessed.any():
        return rows
    order = np.argsort(~guessed, kind="stable")
    rows = rows | {"place": np.where(guessed, -1, rows["place"])}
    return {name: column[order] for name, column in rows.items()}


def with_ongoing(rows: Columns, told: Columns) -> Columns:
    """Rows of RUN, and of runs that never ended those that were told of them meanwhile."""
    # Each scheduler numbers its own.
    _, ended = lookup(rows["run"], rows["worker"], told["run"], told["worker"])
    never = ~ended
    if not never.any():
        return rows
    return {name: np.concatenate([told[name][never], rows[name]]) for name in rows}


def lookup(keys: Ints, keys2: Ints, wanted: Ints, wanted2: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """For each wanted pair the index of its last row, and whether there is one."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at, found, different = _by_number(keys, wanted)
    same = keys2[at] == wanted2
    if different or (found & same).all():
        return at, found & same
    have = keys + (keys2 << _WORKER_SHIFT)
    want = wanted + (wanted2 << _WORKER_SHIFT)
    order = np.argsort(have, kind="stable")
    at = np.searchsorted(have[order], want, side="right") - 1
    at = order[np.maximum(at, 0)]
    return at, have[at] == want


def _by_number(keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_], bool]:
    """The same by the first number alone, and whether these are all different.

    Runs are numbered densely, so a table will do; where they are not nothing is found.
    """
    low, high = int(keys.min()), int(keys.max())
    if high - low > 8 * len(keys) + 1024:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_), False
    table = np.full(high - low + 1, -1, np.int32)  # 2**31 rows would not fit into memory
    table[keys - low] = np.arange(len(keys), dtype=np.int32)
    entry: Ints = wanted - low
    found: NDArray[np.bool_] = (entry >= 0) & (entry <= high - low)
    entry[~found] = 0
    at: Ints = table[entry].astype(np.int64)
    found &= at >= 0
    different = int(np.count_nonzero(table >= 0)) == len(keys)
    return np.maximum(at, 0, out=at), found, different


def _zeros(runs: Columns) -> Ints:
    return np.zeros(len(runs["run"]), np.int64)


def ordered(runs: Columns) -> Columns:
    """The same in the order of assignment; what is impossible is put right run by run, in place.

    A run that went on after it was taken back is finished when it stopped.
    """
    received, ready, start, stop = (runs[n] for n in ("received", "ready", "start", "stop"))
    finished = runs["finished"]
    np.maximum(received, runs["assigned"], out=received)
    np.maximum(finished, stop, out=finished, where=outlived(runs))
    np.minimum(stop, finished, out=stop, where=finished > 0)
    np.maximum(stop, received, out=stop)
    np.clip(start, received, stop, out=start)
    np.clip(ready, received, start, out=ready)
    assigned = runs["assigned"]
    if (assigned[1:] >= assigned[:-1]).all():
        return runs
    order = np.argsort(assigned, kind="stable")
    return {name: column[order] for name, column in runs.items()}


def lanes(runs: Columns) -> Ints:
    """A number for the thread of each run; threads of different places differ in it."""
    number: Ints = runs["thread"] ^ (runs["wplace"] << 48)
    return number


def ended(runs: Columns, rows: Columns) -> Columns:
    """The same; where its scheduler's word was lost, a run ended when its worker says in RUN."""
    lost = (runs["finished"] <= 0) & (runs["seen"] == 1)
    if not lost.any():
        return runs
    _, told = lookup(rows["run"], rows["worker"], runs["run"], runs["worker"])
    lost &= told  # others go on
    finished = np.where(lost, runs["stop"], runs["finished"])
    return runs | {"finished": finished, "status": np.where(lost, _OTHER, runs["status"])}
