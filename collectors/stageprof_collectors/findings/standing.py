"""Times at which a process or its event loop stood still, and the run without them.

The garbage collector stops a whole process; whatever holds the GIL stops a loop. Times are ns on
the region's clock, places are indices into `Store.places`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Columns, Ints
from stageprof_collectors.replay.relief import Common, Covered, Interval, run_windows
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.tables.fact import rows_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: By place, when.
Standing = Mapping[int, Sequence[Interval]]

#: Of what a loop that is held holds up, what answering in time leaves at least: it is answered
#: later than at once, and whoever waited has then something else to wait for.
GONE: Final = 0.6
#: Parts of a run in which its scheduler has a hand too.
_SCHEDULED: Final = ("lead", "lag")


def series(recording: Recording, name: str) -> dict[int, tuple[Ints, Floats]]:
    """Times and values of a sample at each place, in order."""
    samples, rows = recording.timeline.read("sample", "t"), rows_of(recording.store, name)
    rows = rows[np.argsort(samples["t"][rows], kind="stable")]
    of_place = Rows(samples["place"][rows])
    mine = {p: rows[of_place.of(p)] for p in of_place.numbers}
    return {p: (samples["t"][r], samples["value"][r].astype(float)) for p, r in mine.items()}


def stood(recording: Recording, name: str) -> dict[int, list[Interval]]:
    """When each place stood still: samples of seconds that ended at their time, in the region."""
    region, found = recording.timeline.region, {}
    for place, (t, seconds) in series(recording, name).items():
        begin = np.maximum(t - np.rint(seconds * 1e9).astype(np.int64), region.start)
        end = np.minimum(t, region.stop)
        kept = begin < end
        if kept.any():
            found[place] = list(zip(begin[kept].tolist(), end[kept].tolist(), strict=True))
    return found


def shared(recording: Recording, standing: Standing) -> dict[int, list[Interval]]:
    """The same for all places of each process: one tells for all that it is."""
    process = recording.timeline.gil.process
    of_process = Rows(process)
    found: dict[int, list[Interval]] = {}
    for place, spans in standing.items():
        for i in of_process.of(int(process[place])).tolist():
            found.setdefault(i, []).extend(spans)
    return found


def seconds_of(spans: Sequence[Interval]) -> float:
    """Seconds of some times together."""
    return sum(stop - start for start, stop in spans) / 1e9


def without(
    recording: Recording, standing: Standing, *, compute: bool, part: float = 1.0
) -> Change:
    """The change that takes these times away.

    Args:
        recording: of what.
        standing: when which place stood still.
        compute: whether the tasks' own functions stood still as well.
        part: what share of these times would be gone.
    """
    runs = recording.timeline.runs
    left = {
        name: np.ones(len(runs["run"])) for name in ("compute", "lead", "fetch", "begin", "lag")
    }
    windows = run_windows(recording, runs)
    if compute:
        windows["compute"] = runs["start"], runs["stop"]
    scheduling = [
        span
        for p, spans in standing.items()
        if _role(recording, p) == "scheduler"
        for span in spans
    ]
    at, scheduler = recording.timeline.at, Common(scheduling)
    for place in at.numbers:
        mine = at.of(place)
        own = Covered(standing.get(place, ()))
        both = scheduler.beside(standing.get(place, ()))
        for name, (start, stop) in windows.items():
            stood = both if name in _SCHEDULED else [own]
            left[name][mine] = left_of(stood, start[mine], stop[mine], part)
    # What is fetched comes from another worker, which may be the one that stood still.
    everybodys = Covered(span for spans in standing.values() for span in spans)
    left["fetch"] = left_of([everybodys], *windows["fetch"], part)
    covered = {place: Covered(spans) for place, spans in standing.items()}

    def serial(step: Step) -> float:
        own = covered.get(step.what.place)
        if own is None:
            return 1.0
        return 1.0 - part * own.part(step)

    return Change(
        left["compute"], left["lead"], left["fetch"], left["lag"], left["begin"], serial=serial
    )


def released(
    recording: Recording, held: Standing, share: float
) -> tuple[float, tuple[float, float]] | None:
    """What it costs that event loops are held, and what is saved at least and at most without, s.

    None if it costs less than a share of the wall time.
    """
    change = without(recording, held, compute=False)
    cost = toll(recording, change)
    if cost < share * recording.wall:
        return None
    least = without(recording, held, compute=False, part=GONE)
    high = recording.replay.saving(change)[1]
    return cost, (min(recording.replay.saving(least)[0], high), high)


def in_runs(recording: Recording, standing: Standing) -> Floats:
    """Seconds of each run's function during which its process stood still."""
    runs: Columns = recording.timeline.runs
    found = np.zeros(len(runs["run"]))
    for place, spans in standing.items():
        mine = recording.timeline.at.of(place)
        found[mine] = Covered(spans).of(runs["start"][mine], runs["stop"][mine]) / 1e9
    return found


def left_of(times: Sequence[Covered], start: Ints, stop: Ints, part: float) -> Floats:
    """What is left of each [start, stop) without a part of times that do not overlap.

    1 is all of it.
    """
    whole = np.maximum(stop - start, 1).astype(float)
    gone = sum((each.of(start, stop) for each in times), start=np.zeros(len(start)))
    left: Floats = 1.0 - part * np.minimum(gone / whole, 1.0)
    return left


def _role(recording: Recording, place: int) -> str:
    return recording.store.places[place].role
