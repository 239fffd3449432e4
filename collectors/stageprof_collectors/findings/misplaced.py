"""Tasks that stood in line on some workers while others were idle: what put them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.exchange import Exchanges, Method
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.turns import turns
from stageprof_collectors.findings.advice import exchanged
from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.phrase import word
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording
    from stageprof_collectors.tables.crew import Crew

#: Of the time that tasks stood in line: whose part is more is what the line is of.
HALF: Final = 0.5

_BY_DATA: Final = (
    "Tasks stood in line on some workers while others had nothing to do. Tasks follow their data: "
    "spread the data over all workers (the code below), do not restrict tasks to workers "
    "(`workers=`, `resources=`) if you need not, and leave work stealing on "
    "(`distributed.scheduler.work-stealing`)."
)
#: What no recorded run made may have been scattered, or persisted before: nothing tells of that.
_HELD: Final = (
    "Tasks of `{prefix}` stood in line on some workers while others had nothing to do. They need "
    "nothing that other tasks made here, so any worker could have had them: remove what restricts "
    "them (`workers=` or `resources=`, in the call or in `dask.annotate`) or name more workers "
    "there, and leave work stealing on (`distributed.scheduler.work-stealing`). If they work on "
    "data that was scattered, or persisted before, spread it over all workers (the code below)."
)
#: What computes in a coroutine has no use for a thread, wherever it is.
_ON_LOOPS: Final = (
    "Tasks of `{prefix}` are coroutines (`async def`): a worker runs them on its event loop, one "
    "at a time unless they `await`, and its threads do nothing. Make what computes a plain "
    "function, which threads run (the code below does so without a change of it). If it is Python "
    "that holds the GIL, start workers with one thread each: threads of one process take turns."
)
IN_THREAD: Final = """\
import asyncio

def {name}_in_thread(*args, **kwargs):  # hand this over in its place
    return asyncio.run({name}(*args, **kwargs))"""
#: Dask's P2P places what comes out of it so; see distributed#8873.
_PASSED_ON: Final = (
    "P2P gives the pieces that come out of a {what} to any worker first, and those that are "
    "another's go there when their turn comes: here {number}, while workers that were to have "
    "them stood idle. By tasks (the code below) pieces are placed like all others, but more is "
    "held and moved, so measure both."
)
_SPREAD: Final = """\
from itertools import cycle
from distributed import Client

client = Client.current()
workers = cycle(sorted(client.scheduler_info(n_workers=-1)["workers"]))
# pieces: the futures (or persisted pieces) that the tasks work on; Dask's own client.rebalance()
# moves nothing until a worker uses 30 % of its memory
pieces = [
    client.submit(lambda piece: piece, each, workers=[next(workers)], pure=False) for each in pieces
]"""


class Line(NamedTuple):
    """What stood in line.

    `row`: the layer of which most was. `free`: whether most needed nothing that another task of the
    recording made. `loops`: whether most were coroutines that kept their worker's event loop.
    """

    row: Row
    free: bool
    loops: bool

    @property
    def place(self) -> str:
        """Where it was."""
        return "for the event loops of workers" if self.loops else "on other workers"


def line(recording: Recording, crew: Crew) -> Line:
    """What stood in line for the threads of workers, by the time that it did."""
    runs, groups = recording.timeline.runs, recording.groups
    stood = np.zeros(len(runs["run"]))
    stood[crew.rows] = (runs["start"] - runs["ready"])[crew.rows].clip(0)
    sums = np.bincount(groups.of_run, weights=stood, minlength=len(groups.rows))
    free = stood[np.diff(recording.timeline.depends.first) == 0].sum()
    loops = stood[np.unique(turns(recording.timeline).rows)].sum()
    most = HALF * stood.sum()
    return Line(groups.rows[int(np.argmax(sums))], bool(free > most), bool(loops > most))


def passed_on(recording: Recording, crew: Crew) -> dict[str, int]:
    """How many pieces P2P gave to a worker that had to pass them on, by what it was for.

    Which layer they are of does not say so: what comes out may be one task with what follows.
    """
    of = Exchanges(recording).of
    exchanges = {"rechunk": of(Method.P2P, arrays=True), "shuffle": of(Method.P2P, arrays=False)}
    sizes = {name: len(found.rows) for name, found in exchanges.items() if found is not None}
    runs = {name: column[crew.rows] for name, column in recording.timeline.runs.items()}
    number = int(((runs["seen"] == 1) & (runs["status"] == STATUS.index("released"))).sum())
    if not sizes or not number:
        return {}
    return {f"{max(sizes, key=sizes.__getitem__)}_pieces_passed_on": number}


def fix(stood: Line, passed: dict[str, int]) -> Fix:
    """What to do for workers that stood idle beside the lines of others."""
    prefix = stood.row.prefix
    if passed:
        return _by_tasks(*passed.items())
    if stood.loops:
        name = word(prefix, "the_coroutine")
        return Fix(_ON_LOOPS.format(prefix=prefix), IN_THREAD.format(name=name))
    return Fix(_HELD.format(prefix=prefix) if stood.free else _BY_DATA, _SPREAD)


def _by_tasks(passed: tuple[str, int]) -> Fix:
    name, number = passed
    what = name.partition("_")[0]
    text = _PASSED_ON.format(what=what, number=f"{number:,}")
    return Fix(text, exchanged("tasks", arrays=what == "rechunk"))
