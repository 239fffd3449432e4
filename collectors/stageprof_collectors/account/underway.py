"""Tasks that were under way when a cluster began to be recorded from outside.

A scheduler tells of a task when it gives it to a worker. Of one that it had given away before, it
tells only that it ended, and with which key if a client wants it; its worker tells when the
function ran, if that began later. These tasks are taken to be there since the recording began.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import LOCAL, Columns, Ints, attempts, lookup
from stageprof_runtime.event import NO_CAUSE, STATUS

#: How runs end that ran to their end.
ENDED: Final = STATUS.index("memory"), STATUS.index("erred")
_RUNNING: Final = -1
#: The text of a worker that nobody named: the first of all texts is "".
NAMELESS: Final = 0

#: From when to when tasks ran of which not even the key is known (ns), and the place of the worker
#: (-1: unknown).
Keyless = list[tuple[int, ...]]


class _UnderWay(NamedTuple):
    """Ends of tasks of which no assignment is known.

    `rows` are theirs in FINISH and `named` says of which a key is known, that of row `want` in
    WANT; `told` says of which a worker told its function, in row `run` of RUN.
    """

    rows: Ints
    named: NDArray[np.bool_]
    want: Ints
    told: NDArray[np.bool_]
    run: Ints


def with_those_before(
    assign: Columns, finish: Columns, want: Columns, run: Columns, since: int
) -> tuple[Columns, Keyless]:
    """The runs as `attempts` has them, with those under way at `since`; and those without a key."""
    found, told = _under_way(assign, finish, want, run), len(assign["run"])
    runs = attempts(_assigned(found, assign, finish, want, run, since), finish, run)
    for name in ("received", "ready"):  # what its worker saw of it came before
        runs[name][told:] = since
    return runs, _keyless(found, finish, run, since)


def running(runs: Columns, *, local: bool = False) -> int:
    """Of a cluster's (or local schedulers') runs that never ended the last; -1 if all ended."""
    still = np.flatnonzero((runs["status"] == _RUNNING) & ((runs["run"] >= LOCAL) == local))
    return int(still[-1]) if len(still) else -1


def _under_way(assign: Columns, finish: Columns, want: Columns, run: Columns) -> _UnderWay:
    """The tasks that ended and that nobody said were assigned."""
    _, known = lookup(assign["run"], assign["place"], finish["run"], finish["place"])
    ended = np.isin(finish["status"], ENDED) & (finish["run"] < LOCAL)
    rows = np.flatnonzero(~known & ended)
    numbers, places = finish["run"][rows], finish["place"][rows]
    at, named = lookup(want["run"], want["place"], numbers, places)
    # A worker's row is at its own place: the number alone says whose it is.
    row, told = lookup(run["run"], np.zeros_like(run["run"]), numbers, np.zeros_like(numbers))
    return _UnderWay(rows, named, at, told, row)


def _assigned(
    found: _UnderWay, assign: Columns, finish: Columns, want: Columns, run: Columns, since: int
) -> Columns:
    """Rows of ASSIGN, with one for each of those whose key is known: assigned at `since`."""
    mine = found.named
    rows, size = found.rows[mine], int(mine.sum())
    worker = np.full(size, NAMELESS, np.int64)
    told = found.told[mine]
    worker[told] = run["worker"][found.run[mine][told]]
    more = {
        "run": finish["run"][rows],
        "t": np.full(size, since, np.int64),
        "worker": worker,
        "cause": np.full(size, NO_CAUSE, np.int64),
        "key": want["key"][found.want[mine]],
        "place": finish["place"][rows],
    }
    return {name: np.concatenate([column, more[name]]) for name, column in assign.items()}


def _keyless(found: _UnderWay, finish: Columns, run: Columns, since: int) -> Keyless:
    mine = ~found.named
    told, rows = found.told[mine], found.run[mine]
    start = np.full(int(mine.sum()), since, np.int64)
    stop, place = finish["t"][found.rows[mine]], np.full(len(start), -1, np.int64)
    for column, into in (("start", start), ("stop", stop), ("place", place)):
        into[told] = run[column][rows[told]]
    np.maximum(start, since, out=start)
    kept = stop > start
    columns = (c[kept].tolist() for c in (start, stop, place))
    return sorted(zip(*columns, strict=True))
