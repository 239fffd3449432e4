"""Popular suspects that are innocent: what they cost at most, where that is little.

A bound, not an estimate: seconds of the blocking account, for without a thing the rest of the
critical path would still have to be walked; and with it all that no step accounts for, which might
be anything. Of what was not watched nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.quantity import seconds, share
from stageprof_collectors.settings import DEFAULTS, Settings
from stageprof_runtime.stage import STEP, UNEXPLAINED, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Above this many runs the account's bound has to do: a replay for each stage would take longer
#: than people wait for a summary.
REPLAYED: Final = 100_000

_SPILL: Final = (STEP["spill.write"], STEP["spill.read"])
_TRANSFER: Final = (STEP["data.transfer"], STEP["data.dump"], STEP["data.load"])
_COMPUTE: Final = STEP["compute"]

#: Who is suspected, and seconds that it costs at most.
_Suspect = tuple[str, float]


def innocents(recording: Recording, settings: Settings = DEFAULTS) -> list[str]:
    """A sentence for each suspect that costs less than what begins a moderate finding."""
    wall = recording.wall
    bounds = [(who, cost + unexplained(recording)) for who, cost in _suspects(recording)]
    small = [(who, cost) for who, cost in bounds if wall > 0 and cost < settings.moderate * wall]
    return [f"{who} costs at most {_amount(cost, wall)} of this run" for who, cost in small]


def _amount(cost: float, wall: float) -> str:
    return f"{seconds(cost)} ({share(cost / wall)})"


def at_most(recording: Recording, stage: Stage) -> float:
    """Seconds that the run would be shorter without a stage, at most; kept once it is known."""
    if stage not in recording.bounds:
        bound = min(max(_bound(recording, stage), 0.0), recording.wall)
        recording.bounds[stage] = bound
    return recording.bounds[stage]


def _bound(recording: Recording, stage: Stage) -> float:
    if len(recording.timeline.runs["run"]) <= REPLAYED:
        try:
            return recording.replay.at_most(stage)
        except Exception:  # noqa: S110 (what cannot be replayed has the account's bound)
            pass
    return _account(recording, lambda step: stage_of(step) == stage)


def unexplained(recording: Recording) -> float:
    """Seconds of the wall time that no step accounts for."""
    return _account(recording, lambda step: step == UNEXPLAINED)


def _suspects(recording: Recording) -> Iterator[_Suspect]:
    gil = _gil(recording)
    if gil is not None:
        yield "Waiting for the GIL in tasks", gil
    if not recording.timeline.region.attached:  # or the client was not watched
        yield "Optimizing graphs", at_most(recording, Stage.OPTIMIZATION)
    yield "Scheduling", at_most(recording, Stage.SCHEDULING)
    workers = recording.workers()
    if len(workers) and workers["instrumented"].all():
        yield "Moving data between workers", _account(recording, _TRANSFER.__contains__)
        yield "Spilling to disk", _account(recording, _SPILL.__contains__)


def _account(recording: Recording, which: Callable[[int], bool]) -> float:
    """Seconds of the blocking account in the steps of which `which` is true."""
    entries = recording.account.entries.items()
    return sum(entry.wall for (step, _), entry in entries if which(step)) / 1e9


def _gil(recording: Recording) -> float | None:
    """Seconds that tasks on the critical path may have waited for the GIL; None if not watched."""
    waited = recording.timeline.gil.shares
    if waited is None:
        return None
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == _COMPUTE]
    return sum((s.stop - s.start) * float(waited[s.run]) for s in steps) / 1e9
