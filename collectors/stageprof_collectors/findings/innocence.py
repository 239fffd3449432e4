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

from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.other_threads import by_other_threads
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.findings.standing import seconds_of
from stageprof_collectors.profiles.gil import Floats
from stageprof_collectors.profiles.holders import look_s, told, watched
from stageprof_collectors.profiles.looks import ERRORS
from stageprof_runtime.stage import SIX, STEP, UNEXPLAINED, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What a list of them is called, on every face.
TITLE: Final = "Not your problem"
#: Above this many runs the account's bound has to do: a replay for each stage would take longer
#: than people wait for a summary.
REPLAYED: Final = 100_000

#: What Dask does around the tasks' own work.
AROUND: Final = tuple(stage for stage in SIX if stage != Stage.EXECUTION)

_SPILL: Final = (STEP["spill.write"], STEP["spill.read"])
_TRANSFER: Final = (STEP["data.transfer"], STEP["data.dump"], STEP["data.load"])
_COMPUTE: Final = STEP["compute"]

#: Who is suspected, and seconds that it costs at most.
_Suspect = tuple[str, float]


def innocents(recording: Recording, settings: Settings = DEFAULTS) -> list[str]:
    """A sentence for each suspect that costs less than what begins a moderate finding."""
    wall = recording.wall
    if nothing_ran(recording) or by_other_threads(recording):
        return []
    bounds = [(who, cost + unexplained(recording)) for who, cost in _suspects(recording)]
    small = [(who, cost) for who, cost in bounds if wall > 0 and cost < settings.moderate * wall]
    return [f"{who} costs at most {_amount(cost, wall)} of the wall time" for who, cost in small]


def nothing_ran(recording: Recording) -> bool:
    """Whether no task ran, no graph came, and nobody so much as built one."""
    if len(recording.timeline.runs["run"]) or recording.timeline.graphs:
        return False
    return not any(recording.stages()["wall_s"][stage] for stage in AROUND)


def ended_early(recording: Recording) -> bool:
    """Whether the recording was over before what it is of: nobody knows what came then."""
    return not (recording.complete or recording.timeline.region.ended)


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

#: Seconds of waiting of all tasks together; less is within the measurement.
MEASURED_S: Final = 0.2
#: Of the time of all tasks; where less is unknown, nothing is said of it.
UNKNOWN: Final = 0.1
#: What a process says that is watched, and one whose Python has none.
_WATCH: Final = "watch"
_FREE: Final = "without a GIL"
_NOBODY: Final = "gil=False, or recorded before stageprof could"
#: A flight recorder watches where it was told to.
_RECORDER: Final = "the recorder was begun without --stageprof-gil"
#: Seconds of a run that may be over when the watch begins, and what is said of one.
SHORT_S: Final = 0.5
_SHORT: Final = "it was over before the watch began, or gil=False"


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
    #: seconds that they waited at most, in all
    at_most_s: float = float("nan")
    #: seconds of the run that it cost at most: they wait beside one another
    cost_at_most_s: float = float("nan")


def gil_verdict(
    recording: Recording, settings: Settings = DEFAULTS, findings: Iterable[Finding] = ()
) -> Verdict | None:
    """Whether tasks waited for the GIL; None if no task ran."""
    gil, waits = recording.timeline.gil, _Waits(recording)
    if not float(waits.length.sum()) > 0:
        return None
    if without_gil(recording):
        return Verdict(guilty=False, said="none: this Python runs without one")
    if gil.shares is None or not waits.known.any():
        return Verdict(None, f"not watched: {_why(recording)}")
    blamed = any(_blames_it(found) for found in findings)
    guilty = blamed or (waits.waited >= MEASURED_S and waits.cost >= settings.moderate * waits.wall)
    said = _much(recording, waits) if guilty else f"not to blame: {_little(waits, settings)}"
    culprit = _culprit(recording) if guilty else ""
    said += f"; most for {culprit}" if culprit else ""
    said += f"; of {count(waits.unknown, 'task')} it is not known" if waits.unknown else ""
    return Verdict(guilty, said, waits.waited, waits.share, waits.at_most, waits.cost_at_most)


def without_gil(recording: Recording) -> bool:
    """Whether there was none in any process that told."""
    sources = recording.timeline.gil.sources.values()
    return bool(sources) and all(_FREE in source for source in sources)


def gil_seen(recording: Recording) -> Floats:
    """Seconds of each run in which it is known, exactly or about, whether it waited."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    length = (runs["stop"] - runs["start"]) / 1e9
    ends = np.zeros((2, int(gil.process.max()) + 1), np.int64)
    for number, when in watched(recording).items():
        ends[:, number] = when
    first, last = ends[:, gil.process[np.maximum(runs["wplace"], 0)]]
    met = np.minimum(runs["stop"], last) - np.maximum(runs["start"], first)
    asked = np.isin(runs["wplace"], list(told(recording)))
    seen: Floats = np.where(gil.seen, met.clip(0) / 1e9, np.where(asked, length, 0.0))
    return seen


class _Waits:
    """How long tasks waited, as far as it is known."""

    def __init__(self, recording: Recording) -> None:
        runs, gil = recording.timeline.runs, recording.timeline.gil
        self.wall, self.length = recording.wall, (runs["stop"] - runs["start"]) / 1e9
        self.shares = np.zeros(len(self.length)) if gil.shares is None else gil.shares
        self.seen = gil_seen(recording)
        #: of at least half of its time
        self.known = (self.seen > 0) & (2 * self.seen >= self.length)
        #: who waits uses no processor
        self.spare = (self.length - runs["cpu"] / 1e9).clip(0)
        self.waited = float((self.shares * self.length)[self.known].sum())
        self.exact = bool(gil.seen[self.known].all())
        self.look_s = look_s(recording)
        #: seconds of the critical path in which its tasks waited; and at most
        self.cost = _on_path(recording, self.shares)
        most = _on_path(recording, self.spare / np.maximum(self.length, 1e-9))
        cost = _on_path(recording, np.where(self.known, self.shares, 1.0))
        self.cost_at_most = _at_most(cost, most, self.look_s)

    @property
    def share(self) -> float:
        """Part of the time that was seen."""
        return self.waited / max(float(self.seen[self.known].sum()), 1e-9)

    @property
    def unknown(self) -> int:
        """Runs of which it is not known, if they are worth a word: the first precede the watch."""
        missing = float(self.length[~self.known].sum())
        return int((~self.known).sum()) if missing >= UNKNOWN * self.length.sum() else 0

    @property
    def at_most(self) -> float:
        """Seconds that they waited, and what was not seen of them; but for those that are told."""
        bound = _at_most(self.waited, float(self.spare[self.known].sum()), self.look_s)
        rest = np.minimum(self.spare, self.length - self.seen)
        return bound if self.unknown else bound + float(rest.clip(0).sum())

    @property
    def in_words(self) -> str:
        """How long; where nobody watched, it is a guess."""
        return f"{'' if self.exact else 'about '}{seconds(self.waited)}"


def _why(recording: Recording) -> str:
    """Why nothing is known."""
    sources = set(recording.timeline.gil.sources.values())
    if _WATCH in sources:
        return "it was over before there was anything to see"
    reason = next((s.partition(": ")[2] for s in sorted(sources)), "")
    if reason or not recording.store.header.get("flight"):
        return reason or (_SHORT if recording.wall < SHORT_S else _NOBODY)
    return _RECORDER


def _much(recording: Recording, waits: _Waits) -> str:
    if waits.waited >= MEASURED_S:
        return f"tasks waited {waits.in_words}, {share(waits.share)} of task time"
    loops = sum(seconds_of(spans) for spans in recording.timeline.gil.loops.values())
    return f"event loops waited {seconds(loops)}, tasks little"


def _little(waits: _Waits, settings: Settings) -> str:
    """How little; tasks wait beside one another, so their sum is not what the run waited."""
    few = waits.share < max(settings.serious, settings.moderate)
    if few or waits.cost_at_most >= waits.waited:  # which has what was not seen, too
        return f"tasks waited at most {seconds(max(waits.at_most, waits.cost_at_most))} in sum"
    cost = seconds(waits.cost_at_most)
    return f"tasks waited {waits.in_words} in sum, which cost the run at most {cost}"


def _blames_it(found: Finding) -> bool:
    if found.severity == Severity.NOTE:
        return False
    loops = found.rule == "event-loop-blocked" and found.evidence.get("held_by") == "gil"
    return loops or found.rule == "gil-contention"


def _culprit(recording: Recording) -> str:
    """The function that others waited for most, as `gil-contention` names it; "" if unknown."""
    frame = recording.gil()
    frame = frame[(frame["prefix"] != "") & (frame["caused_s"] > 0)]
    if not len(frame):
        return ""
    lines = frame.groupby(["function", "file", "line", "prefix"], sort=False)["caused_s"].sum()
    function, file, line, prefix = lines.index[int(lines.to_numpy().argmax())]
    return f"`{function}`{made_at(str(file), int(line))}" if function else f"tasks of `{prefix}`"


def _at_most(waited: float, spare: float, each: float) -> float:
    """What it may be if so much was seen, of time in which the threads used no processor.

    Args:
        waited: seconds that were seen.
        spare: seconds without a processor.
        each: seconds that a look stands for.
    """
    return min(spare, waited + ERRORS * sqrt(each * (waited + each)))


def _gil(recording: Recording) -> float | None:
    """Seconds that tasks on the critical path may have waited for the GIL; None if not watched."""
    return None if recording.timeline.gil.shares is None else _Waits(recording).cost_at_most


def _on_path(recording: Recording, part: Floats) -> float:
    """Seconds of the critical path that are this part of its tasks' time."""
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step == _COMPUTE]
    return sum((s.stop - s.start) * float(part[s.run]) for s in steps) / 1e9
