"""Whether a test kept its limits: by the median over its recordings, as facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from stageprof.testing.limits import Limits, Most
from stageprof.testing.seen import Seen, Spot
from stageprof_collectors.findings.finding import Finding
from stageprof_runtime.stage import Stage


class TooLong(NamedTuple):
    """The run (stage None) or one of its stages took longer than its limit."""

    stage: Stage | None
    #: medians: of what took too long, and of the wall time
    seconds: float
    wall_s: float
    limit: Most
    #: where most of it went, in the recording next to the median; None if nowhere in Dask
    spot: Spot | None

    @property
    def value(self) -> float:
        """What is compared with the limit: seconds, or the share of the wall time."""
        return self.seconds / self.wall_s if self.limit.is_share and self.wall_s else self.seconds


class Found(NamedTuple):
    """A finding graver than the limit, in more than half of the recordings."""

    finding: Finding
    times: int


def exceeded(limits: Limits, runs: Sequence[Seen]) -> list[TooLong | Found]:
    """What was beyond the limits; nothing if nothing was recorded."""
    if not runs:
        return []
    wall = [] if limits.max_wall_s is None else [_wall(runs, limits.max_wall_s)]
    stages = [_stage(runs, stage, limit) for stage, limit in limits.max_stage]
    slow = [late for late in (*wall, *stages) if late.value > late.limit.value]
    return [*slow, *_found(runs)]


def _wall(runs: Sequence[Seen], limit: float) -> TooLong:
    middle = _middle(runs, [run.wall_s for run in runs])
    spot = max(middle.spots.values(), key=lambda spot: spot.seconds, default=None)
    wall = median(run.wall_s for run in runs)
    return TooLong(None, wall, wall, Most(limit, is_share=False), spot)


def _stage(runs: Sequence[Seen], stage: Stage, limit: Most) -> TooLong:
    """The median of shares is that of seconds in the run that the median belongs to."""
    values = [_value(run, stage, limit) for run in runs]
    middle = _middle(runs, values)
    wall = median(run.wall_s for run in runs)
    seconds = median(values) * (wall if limit.is_share else 1)
    return TooLong(stage, seconds, wall, limit, middle.spots.get(stage))


def _value(run: Seen, stage: Stage, limit: Most) -> float:
    seconds = run.stages.get(stage, 0.0)
    if not limit.is_share:
        return seconds
    return seconds / run.wall_s if run.wall_s > 0 else 0.0


def _middle(runs: Sequence[Seen], values: Sequence[float]) -> Seen:
    """The run of the median value; of two, the greater."""
    order = sorted(range(len(runs)), key=lambda i: values[i])
    return runs[order[len(order) // 2]]


def _found(runs: Sequence[Seen]) -> list[Found]:
    """Findings in more than half of the runs, as they were in the last of them."""
    known = {_cause(found): found for run in runs for found in run.findings}
    times = Counter(cause for run in runs for cause in {_cause(f) for f in run.findings})
    often = [cause for cause in known if times[cause] * 2 > len(runs)]
    return [Found(known[cause], times[cause]) for cause in often]


def _cause(found: Finding) -> tuple[str, str, int, str]:
    """What makes it the same finding in another run; names of layers may differ."""
    return found.rule, found.where.file, found.where.line, found.where.variable
