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
from stageprof_collectors.account.timeline import Columns, Ints, present
from stageprof_collectors.replay.relief import Covered, Interval, run_windows
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.fact import rows_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: By place, when.
Standing = Mapping[int, Sequence[Interval]]

#: Parts of a run in which its scheduler has a hand too.
_SCHEDULED: Final = ("lead", "lag")


def series(recording: Recording, name: str) -> dict[int, tuple[Ints, Floats]]:
    """Times and values of a sample at each place, in order."""
    samples, rows = recording.timeline.read("sample", "t"), rows_of(recording.store, name)
    rows = rows[np.argsort(samples["t"][rows], kind="stable")]
    places = samples["place"][rows]
    return {
        p: (samples["t"][rows[places == p]], samples["value"][rows[places == p]].astype(float))
        for p in present(places)
    }


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
    places = recording.store.places
    found: dict[int, list[Interval]] = {}
    for place, spans in standing.items():
        mine = places[place].host, places[place].pid
        for i, other in enumerate(places):
            if (other.host, other.pid) == mine:
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
    at = recording.timeline.at
    for place in at.numbers:
        mine = at.of(place)
        own = standing.get(place, ())
        for name, (start, stop) in windows.items():
            spans = [*own, *(scheduling if name in _SCHEDULED else ())]
            left[name][mine] = left_of(spans, start[mine], stop[mine], part)
    # What is fetched comes from another worker, which may be the one that stood still.
    everybodys = [span for spans in standing.values() for span in spans]
    left["fetch"] = left_of(everybodys, *windows["fetch"], part)
    covered = {place: Covered(spans) for place, spans in standing.items()}

    def serial(step: Step) -> float:
        own = covered.get(step.what.place)
        if own is None:
            return 1.0
        return 1.0 - part * own.part(step)

    return Change(
        left["compute"], left["lead"], left["fetch"], left["lag"], left["begin"], serial=serial
    )


def in_runs(recording: Recording, standing: Standing) -> Floats:
    """Seconds of each run's function during which its process stood still."""
    runs: Columns = recording.timeline.runs
    found = np.zeros(len(runs["run"]))
    for place, spans in standing.items():
        mine = recording.timeline.at.of(place)
        found[mine] = Covered(spans).of(runs["start"][mine], runs["stop"][mine]) / 1e9
    return found


def left_of(spans: Sequence[Interval], start: Ints, stop: Ints, part: float) -> Floats:
    """What is left of each [start, stop) without a part of these times: 1 is all of it."""
    if not spans:
        return np.ones(len(start))
    whole = np.maximum(stop - start, 1).astype(float)
    gone = np.minimum(Covered(spans).of(start, stop) / whole, 1.0)
    left: Floats = 1.0 - part * gone
    return left


def _role(recording: Recording, place: int) -> str:
    return recording.store.places[place].role
