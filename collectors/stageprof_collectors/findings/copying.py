"""What the processes scheduler takes beside its tasks: it starts processes, and copies data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Seconds between two tasks of a process however little they are given, at most.
TURN_S: Final = 0.002
#: What is done for a task's data on their way, by the scheduler's own thread and by the processes.
HERE: Final = tuple(STEP[step] for step in ("task.dump", "result.load"))
THERE: Final = tuple(STEP[step] for step in ("task.load", "result.dump"))


def _workers(recording: Recording) -> Ints:
    """Of each run the process that it was in, as a number of a text; -1: not told."""
    table, runs = recording.store.table("run"), recording.timeline.runs
    rows = recording.timeline.runs_of(table["run"], table["place"])
    worker = np.full(len(runs["run"]), -1, np.int64)
    worker[rows[rows >= 0]] = table["worker"][rows >= 0]
    return worker


def _looping(recording: Recording) -> list[Step]:
    """What of the critical path the scheduler's loop did for runs."""
    loop = STEP["local.loop"]
    return [s for s in recording.path_steps if s.run >= 0 and s.what.step == loop]


def starting_s(recording: Recording) -> float:
    """Seconds of the critical path before the first task of the process that was waited for."""
    worker, start = _workers(recording), recording.timeline.runs["start"]
    first = {w: int(start[worker == w].min()) for w in np.unique(worker).tolist()}
    steps = _looping(recording)
    found = (s.stop - s.start for s in steps if s.stop <= first[int(worker[s.run])])
    return sum(found) / 1e9


def pipes_s(recording: Recording, starting_s: float) -> float:
    """Seconds of the critical path in which tasks and results went through pipes, about.

    What a loop does not do itself before a task begins, but for what each takes however little it
    is. It is more than nothing where many bytes go: each is copied four times, by three threads.
    """
    between = sum(s.stop - s.start for s in _looping(recording)) / 1e9 - starting_s
    tasks = int((recording.timeline.runs["run"] >= LOCAL).sum())
    return max(0.0, between - TURN_S * tasks)


def one_at_a_time_s(recording: Recording) -> float:
    """Seconds that the tasks would take longer if no two of them computed at a time."""
    cpu = recording.timeline.runs["cpu"]
    compute = STEP["compute"]
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == compute]
    return max(0.0, float(cpu.sum()) - sum(s.stop - s.start for s in steps)) / 1e9


def copied_bytes(recording: Recording) -> int:
    """Bytes of tasks and results that went between the processes, both ways."""
    entries, shares = recording.account.entries, recording.store.table("share")
    told = int(shares["nbytes"][np.isin(shares["step"], HERE)].sum())
    return max(told, sum(entries[step, "client"].nbytes for step in HERE))
