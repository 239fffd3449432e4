"""Popular suspects that are innocent: what they cost at most, where that is little.

A bound, not an estimate: seconds of the blocking account, for without a thing the rest of the
critical path would still have to be walked; and with it all that no step accounts for, which might
be anything. Of what was not watched nothing is said. The GIL, the most popular of them, has a line
of its own in every summary, innocent or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.finding import Finding, Severity
from stageprof_collectors.gil import Floats
from stageprof_collectors.holders import watched
from stageprof_collectors.looks import ERRORS
from stageprof_collectors.phrase import made_at
from stageprof_collectors.quantity import count, seconds, share
from stageprof_collectors.settings import DEFAULTS, Settings
from stageprof_collectors.standing import seconds_of, series
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


# -- the GIL --------------------------------------------------------------------------------------

#: Seconds that a look at the GIL stands for while few threads wait; see `runtime/.../gil/watch.py`.
LOOK_S: Final = 0.05
#: Seconds of waiting of all tasks together; less is within the measurement.
MEASURED_S: Final = 0.2
#: Of the time of all tasks; where less is unknown, nothing is said of it.
UNKNOWN: Final = 0.1
#: What a process says that is watched, and one whose Python has none.
_WATCH: Final = "watch"
_FREE: Final = "without a GIL"
_NOBODY: Final = "gil=False, or recorded before stageprof could"


class Verdict(NamedTuple):
    """What is said of the GIL."""

    #: None: not known
    guilty: bool | None
    #: in a line, with names as they were recorded
    said: str
    #: seconds that tasks waited for it, in all; NaN: not known
    waited_s: float = float("nan")
    #: that as a share of their time
    waited_share: float = float("nan")
    #: seconds that they waited at most
    at_most_s: float = float("nan")


def gil_verdict(
    recording: Recording, settings: Settings = DEFAULTS, findings: Iterable[Finding] = ()
) -> Verdict | None:
    """Whether tasks waited for the GIL; None if no task ran."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    length = (runs["stop"] - runs["start"]) / 1e9
    if not float(length.sum()) > 0:
        return None
    if without_gil(recording):
        return Verdict(guilty=False, said="none: this Python runs without one")
    known, seen = _known(recording), gil_seen(recording)
    if gil.shares is None or not known.any():
        return Verdict(None, f"not watched: {_why(set(gil.sources.values()))}")
    waited, whole = float((gil.shares * length)[known].sum()), float(seen[known].sum())
    spare = (length - runs["cpu"] / 1e9).clip(0)
    bound = _at_most(waited, float(spare[known].sum()))
    if not _unknown(recording):  # then it is not told: it is in the bound
        bound += float(np.minimum(spare, length - seen).sum())
    one = Verdict(None, "", waited, waited / whole, bound)
    return _judged(recording, one, settings, [f for f in findings if _blames_it(f)])


def _unknown(recording: Recording) -> int:
    """Runs of which it is not known, if they are worth a word: the first begin before the watch."""
    runs, known = recording.timeline.runs, _known(recording)
    length = runs["stop"] - runs["start"]
    return int((~known).sum()) if length[~known].sum() >= UNKNOWN * length.sum() else 0


def without_gil(recording: Recording) -> bool:
    """Whether there was none in any process that told."""
    sources = recording.timeline.gil.sources.values()
    return bool(sources) and all(_FREE in source for source in sources)


def _why(sources: set[str]) -> str:
    """Why nothing is known of processes with these sources."""
    if _WATCH in sources:
        return "it was over before there was anything to see"
    return next((s.partition(": ")[2] for s in sorted(sources)), "") or _NOBODY


def _known(recording: Recording) -> NDArray[np.bool_]:
    """Of which runs it is known, exactly or about, how long they waited: of half of their time."""
    runs, seen = recording.timeline.runs, gil_seen(recording)
    known: NDArray[np.bool_] = (seen > 0) & (2e9 * seen >= runs["stop"] - runs["start"])
    return known


def gil_seen(recording: Recording) -> Floats:
    """Seconds of each run in which it is known, exactly or about, whether it waited."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    length = (runs["stop"] - runs["start"]) / 1e9
    on, within = runs["wplace"], np.zeros(len(length))
    for process, (first, last) in watched(recording).items():
        mine = np.flatnonzero((on >= 0) & (gil.process[np.maximum(on, 0)] == process))
        met = np.minimum(runs["stop"][mine], last) - np.maximum(runs["start"][mine], first)
        within[mine] = met.clip(0) / 1e9
    asked = np.isin(on, list(series(recording, "gil.contention")))
    seen: Floats = np.where(gil.watched(on), within, np.where(asked, length, 0.0))
    return seen


def _judged(
    recording: Recording, one: Verdict, settings: Settings, findings: list[Finding]
) -> Verdict:
    cost, small = _cost(recording), settings.moderate * recording.wall
    guilty = bool(findings) or (one.waited_s >= MEASURED_S and cost >= small)
    said = [_much(recording, one) if guilty else f"innocent: {_little(recording, one, settings)}"]
    culprit = _culprit(recording) if guilty else ""
    said += [f"most for {culprit}"] if culprit else []
    unknown = _unknown(recording)
    said += [f"of {count(unknown, 'task')} it is not known"] if unknown else []
    return one._replace(guilty=guilty, said="; ".join(said))


def _much(recording: Recording, one: Verdict) -> str:
    if one.waited_s < MEASURED_S:
        return f"event loops waited {seconds(_of_loops(recording))}, tasks little"
    waited = f"{_about(recording)}{seconds(one.waited_s)}"
    return f"tasks waited {waited}, {share(one.waited_share)} of task time"


def _little(recording: Recording, one: Verdict, settings: Settings) -> str:
    if one.waited_share < max(settings.serious, settings.moderate):
        return f"tasks waited at most {seconds(one.at_most_s)}"
    cost = _gil(recording) or 0.0
    waited = f"{_about(recording)}{seconds(one.waited_s)}"
    return f"tasks waited {waited}, but the run at most {seconds(cost)}"


def _cost(recording: Recording) -> float:
    """Seconds of the critical path in which its tasks waited, as far as it is known."""
    shares = recording.timeline.gil.shares
    return 0.0 if shares is None else _on_path(recording, shares)


def _about(recording: Recording) -> str:
    """Where nobody watched, it is a guess."""
    places = recording.timeline.runs["wplace"]
    return "" if recording.timeline.gil.watched(places)[_known(recording)].all() else "about "


def _blames_it(found: Finding) -> bool:
    if found.severity == Severity.NOTE:
        return False
    loops = found.rule == "event-loop-blocked" and found.evidence.get("held_by") == "gil"
    return loops or found.rule == "gil-contention"


def _of_loops(recording: Recording) -> float:
    return sum(seconds_of(spans) for spans in recording.timeline.gil.loops.values())


def _culprit(recording: Recording) -> str:
    """The function that others waited for most, as `gil-contention` names it; "" if unknown."""
    frame = recording.gil()
    frame = frame[(frame["prefix"] != "") & (frame["caused_s"] > 0)]
    if not len(frame):
        return ""
    lines = frame.groupby(["function", "file", "line", "prefix"], sort=False)["caused_s"].sum()
    function, file, line, prefix = lines.index[int(lines.to_numpy().argmax())]
    return f"`{function}`{made_at(str(file), int(line))}" if function else f"tasks of `{prefix}`"


def _at_most(waited: float, spare: float) -> float:
    """What it may be if so much was seen, of time in which the threads used no processor."""
    return min(spare, waited + ERRORS * sqrt(LOOK_S * (waited + LOOK_S)))


def _gil(recording: Recording) -> float | None:
    """Seconds that tasks on the critical path may have waited for the GIL; None if not watched."""
    shares, runs = recording.timeline.gil.shares, recording.timeline.runs
    if shares is None:
        return None
    spare = 1 - runs["cpu"] / np.maximum(runs["stop"] - runs["start"], 1)
    waited = _on_path(recording, np.where(_known(recording), shares, 1.0))
    return _at_most(waited, _on_path(recording, spare.clip(0, 1)))


def _on_path(recording: Recording, part: Floats) -> float:
    """Seconds of the critical path that are this part of its tasks' time."""
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == _COMPUTE]
    return sum((s.stop - s.start) * float(part[s.run]) for s in steps) / 1e9
