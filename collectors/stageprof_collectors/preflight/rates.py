"""What a task and a byte will cost: as a recording measured it, or about what is usual.

A cost that nobody has measured on this cluster is an order of magnitude: its interval is wide, and
every sentence with it says "about".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import SHARES, Severity, severity
from stageprof_collectors.findings.overhead import EACH
from stageprof_runtime.handover import CLUSTER, PROCESSES
from stageprof_runtime.stage import STEP, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Interval = tuple[float, float]

#: Seconds of one task beside its work: Dask's documentation of best practices says 200 us to 1 ms
#: for a cluster, and about 200 us for the threaded scheduler; one more process adds its messages.
EACH_S: Final[Mapping[str, Interval]] = {CLUSTER: (200e-6, 1e-3), PROCESSES: (200e-6, 1e-3)}
LOCAL_EACH_S: Final = (20e-6, 200e-6)
#: How the seconds of a task on a cluster are spread over the stages: rounded from a recording of
#: 6,000 short tasks on two workers (samples/findings/tiny_tasks_bad.py).
SPREAD: Final[Mapping[Stage, float]] = {
    Stage.CONSTRUCTION: 0.15,
    Stage.OPTIMIZATION: 0.15,
    Stage.SERIALIZATION: 0.1,
    Stage.COMMUNICATION: 0.35,
    Stage.SCHEDULING: 0.1,
    Stage.EXECUTION: 0.15,
}
#: Bytes of an embedded object that get from one process into another in a second, with pickling,
#: sending and unpickling: memory is copied four to six times on the way, at 1 to 5 GB/s a time.
BYTES_S: Final = (150e6, 1e9)
#: Seconds to pickle and unpickle one small Python object: plain ones, and those of a class that
#: cloudpickle has to ask for each.
OBJECT_S: Final = (1.5e-6, 15e-6)
#: What was measured once may be this factor off next time: another hour, another load.
AGAIN: Final = 1.5
#: Fewer tasks or bytes than these measure nothing.
_TASKS, _BYTES = 100, 1_000_000
#: Seconds from which a predicted saving has a severity, where the time of the whole run is not
#: known: what somebody who waits for it notices, gets bored by, and goes away for.
SECONDS: Final = {Severity.CRITICAL: 60.0, Severity.SERIOUS: 10.0, Severity.MODERATE: 1.0}


@dataclass(frozen=True)
class Rates:
    """Costs to predict with; of each at least and at most."""

    #: seconds of one task beside its work, by stage
    each_s: Mapping[Stage, Interval]
    #: bytes a second, all the way
    bytes_s: Interval = BYTES_S
    #: seconds of one small object, pickled once and unpickled once
    object_s: Interval = OBJECT_S
    #: of the recording that they are from; 0 without one
    wall_s: float = 0.0
    #: where they are from, for people
    source: str = "usual costs (about)"

    @property
    def task_s(self) -> Interval:
        """Seconds of one task, over all stages."""
        low, high = zip(*self.each_s.values(), strict=True)
        return sum(low), sum(high)

    def of_tasks(self, tasks: float) -> Interval:
        """Seconds of so many tasks beside their work."""
        low, high = self.task_s
        return tasks * low, tasks * high

    def of_bytes(self, nbytes: float) -> Interval:
        """Seconds of so many bytes on their way."""
        low, high = self.bytes_s
        return nbytes / high, nbytes / low

    def saving(self, tasks: int, part: float) -> Interval:
        """Seconds that are saved where a part of so many tasks is no longer needed.

        At least nothing: tasks that work for long hide what it takes to hand out the next. But of a
        recording it is what a run like that one has on its blocking account.
        """
        low, high = self.of_tasks(tasks)
        return low * part if self.wall_s else 0.0, high * part

    def severity(self, saving_s: Interval, shares: Mapping[Severity, float] = SHARES) -> Severity:
        """By the share of the recorded run; without one by seconds."""
        if self.wall_s:
            return severity(saving_s, self.wall_s, shares)
        middle = sum(saving_s) / 2
        return next((s for s, least in SECONDS.items() if middle >= least), Severity.NOTE)


def usual(scheduler: str) -> Rates:
    """About what is usual, for who runs the graph."""
    low, high = EACH_S.get(scheduler, LOCAL_EACH_S)
    spread = SPREAD if scheduler == CLUSTER else {Stage.SCHEDULING: 1.0}
    return Rates({stage: (low * part, high * part) for stage, part in spread.items()})


def measured(recording: Recording, scheduler: str) -> Rates:
    """As they were in a recording; what it does not tell is as usual."""
    rates = usual(scheduler)
    name = recording.path or "a recording"
    return Rates(
        _each(recording) or rates.each_s,
        _bytes(recording) or rates.bytes_s,
        rates.object_s,
        recording.wall,
        f"measured in {name}",
    )


def _each(recording: Recording) -> dict[Stage, Interval]:
    runs = len(recording.timeline.runs["run"])
    if runs < _TASKS:
        return {}
    sums: defaultdict[Stage, float] = defaultdict(float)
    for step in recording.path_steps:
        if step.what.step in EACH:
            sums[stage_of(step.what.step)] += (step.stop - step.start) / 1e9 / runs
    return {stage: (each / AGAIN, each * AGAIN) for stage, each in sums.items()}


#: The way of what is in a graph, from the client to the worker's function.
_WAY: Final = frozenset(
    STEP[name]
    for name in ("graph.dump", "graph.send", "graph.load", "task.dump", "task.send", "task.load")
)


def _bytes(recording: Recording) -> Interval | None:
    """Bytes of embedded objects by the seconds of the path that their way took."""
    table = recording.objects()
    sent = float((table["graph_bytes"] + table["sent_bytes"]).sum()) if len(table) else 0.0
    steps = (s for s in recording.path_steps if s.what.step in _WAY)
    took = sum((step.stop - step.start) / 1e9 for step in steps)
    if sent < _BYTES or took <= 0:
        return None
    return sent / took / AGAIN, sent / took * AGAIN
