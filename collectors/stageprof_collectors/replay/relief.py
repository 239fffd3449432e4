"""The run without some times of trouble: what a worker could not do then, it would have done.

Trouble is when a worker's loop was busy with something that should not be (moving results to disk
and back) or held its tasks up (paused). Of each part of a run, what lies in its worker's trouble is
taken away; the task's own function goes on meanwhile on its thread, more slowly perhaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import given_back
from stageprof_collectors.account.intervals import clip, gaps, innermost
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Columns, Ints
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.storage.rows import Rows

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of each kind so many runs are compared, each with each.
ALIKE: Final = 100
#: Two runs tell something if what they met of trouble differs by this part of their time.
APART: Final = 0.3
#: So many pairs of runs have to tell.
PAIRS: Final = 20
#: Shorter runs say more of the clock than of trouble.
LONG_NS: Final = 5_000_000

Interval = tuple[int, int]
Floats = NDArray[np.float64]


class Covered:
    """How much of any interval some others cover, ns."""

    def __init__(self, spans: Iterable[Interval]) -> None:
        merged = innermost((a, b, None) for a, b in spans)
        ends = np.array([(a, b) for a, b, _ in merged], np.int64).reshape(-1, 2)
        lengths = ends[:, 1] - ends[:, 0]
        before = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(ends) else lengths
        self._at = ends.reshape(-1)
        self._sum = np.stack([before, before + lengths], axis=1).reshape(-1)

    def of(self, start: Ints, stop: Ints) -> Floats:
        """The length of what is covered of each [start, stop)."""
        if not len(self._at):
            return np.zeros(len(start))
        until = [
            np.interp(t.astype(float), self._at.astype(float), self._sum) for t in (start, stop)
        ]
        found: Floats = np.maximum(until[1] - until[0], 0.0)
        return found

    def part(self, step: Step) -> float:
        """What part of a piece of the critical path is covered, 0 to 1."""
        covered = self.of(np.array([step.start]), np.array([step.stop]))[0]
        return float(covered) / max(step.stop - step.start, 1)


class Common:
    """Times that many have in common, beside which each has some of its own.

    Were they put with each one's own there would be as many as the product of both numbers.
    """

    def __init__(self, spans: Iterable[Interval]) -> None:
        self._merged = innermost((a, b, None) for a, b in spans)
        self._covered = Covered((a, b) for a, b, _ in self._merged)

    def beside(self, own: Iterable[Interval]) -> list[Covered]:
        """Both, so that they do not overlap: these times, and what of one's own is in none."""
        merged = innermost((a, b, None) for a, b in own)
        rest = (gap for a, b, _ in merged for gap in gaps(clip(self._merged, a, b), a, b))
        return [self._covered, Covered(rest)]


def relief(
    recording: Recording,
    trouble: Mapping[int, Sequence[Interval]],
    *,
    common: Sequence[Interval] = (),
    steps: frozenset[int] = frozenset(),
    gone: Ints | None = None,
    slowed: bool = False,
) -> Change:
    """The change that takes trouble away.

    Args:
        recording: of what.
        trouble: by a worker's place, when it was in trouble (ns).
        common: when all workers were.
        steps: step codes that are trouble where they belong to no run.
        gone: rows of runs that would not have happened at all.
        slowed: whether runs during trouble would have taken no longer than others of their kind.
    """
    runs = recording.timeline.runs
    parts = {name: np.ones(len(runs["run"])) for name in ("lead", "fetch", "begin", "lag")}
    ends, all_ = run_windows(recording, runs), Common(common)
    for place, spans in trouble.items():
        mine = recording.timeline.at.of(place)
        worker = recording.store.places[place].role == "worker"
        covered = all_.beside(spans) if worker else [Covered(spans)]
        for name, (start, stop) in ends.items():
            parts[name][mine] = _left(covered, start[mine], stop[mine])
    # What is fetched comes from a worker whose loop may be the one in trouble.
    everybodys = all_.beside(span for spans in trouble.values() for span in spans)
    parts["fetch"] = _left(everybodys, *ends["fetch"])
    # So does what a worker waited for that had to give the task back.
    back = given_back(runs)
    parts["lag"][back] = _left(everybodys, *(t[back] for t in ends["lag"]))
    compute = _unslowed(recording, trouble) if slowed else np.ones(len(runs["run"]))
    if gone is not None:
        for factor in (compute, *parts.values()):
            factor[gone] = 0.0
    return Change(
        compute=compute,
        lead=parts["lead"],
        fetch=parts["fetch"],
        begin=parts["begin"],
        lag=parts["lag"],
        serial=_serial(steps),
    )


def _unslowed(recording: Recording, trouble: Mapping[int, Sequence[Interval]]) -> Floats:
    """What is left of each run's time without what trouble on its host added to it.

    Runs of one kind that met more of it are compared with those that met less; by how much that
    made them longer is the same for all kinds, or too few runs would tell.
    """
    runs, met = recording.timeline.runs, _met(recording, trouble)
    took = np.log(np.maximum(runs["stop"] - runs["start"], 1).astype(float))
    slopes: list[Floats] = []
    kinds = recording.prefixes
    told = (runs["seen"] == 1) & (runs["stop"] - runs["start"] >= LONG_NS)
    codes = pd.factorize(kinds)[0]
    alike = Rows(np.where(told, codes, -1))
    for kind in np.unique(codes[told & (met > 0)]).tolist():
        mine = alike.of(kind)[:ALIKE]
        i, j = np.triu_indices(len(mine), k=1)
        more = met[mine[j]] - met[mine[i]]
        far = np.abs(more) >= APART
        slopes.append((took[mine[j]] - took[mine[i]])[far] / more[far])
    every = np.concatenate(slopes) if slopes else np.zeros(0)
    rate = max(0.0, float(np.median(every))) if len(every) >= PAIRS else 0.0
    left: Floats = np.exp(-rate * met)
    return left


def _met(recording: Recording, trouble: Mapping[int, Sequence[Interval]]) -> Floats:
    """The part of each run during which a worker on its host was in trouble."""
    runs, places = recording.timeline.runs, recording.store.places
    met = np.zeros(len(runs["run"]))
    on_host: defaultdict[str, list[Interval]] = defaultdict(list)
    for place, spans in trouble.items():
        on_host[places[place].host] += spans
    for host, rows in by_host(recording).items():
        if host in on_host:
            start, stop = runs["start"][rows], runs["stop"][rows]
            met[rows] = 1.0 - _left([Covered(on_host[host])], start, stop)
    return met


def by_host(recording: Recording) -> dict[str, Ints]:
    """Rows of the runs of each host's workers, in order."""
    numbers: dict[str, int] = {}
    hosts = (place.host for place in recording.store.places)
    of_place = [numbers.setdefault(host, len(numbers)) for host in hosts]
    wplace = recording.timeline.runs["wplace"]
    rows = Rows(np.where(wplace >= 0, np.array([*of_place, -1])[wplace], -1))
    found = ((host, rows.of(number)) for host, number in numbers.items())
    return {host: mine for host, mine in found if len(mine)}


def _left(times: Iterable[Covered], start: Ints, stop: Ints) -> Floats:
    """The fraction of each interval that is left without times that do not overlap."""
    left = np.maximum(stop - start, 1).astype(float)
    whole = left.copy()
    for each in times:
        left -= each.of(start, stop)
    found: Floats = np.clip(left / whole, 0.0, 1.0)
    return found


def run_windows(recording: Recording, runs: Columns) -> dict[str, tuple[Ints, Ints]]:
    """From when to when each part of each run was, as the replay means them."""
    cause = recording.timeline.depends.cause
    led = np.where(cause >= 0, runs["finished"][np.maximum(cause, 0)], runs["assigned"])
    known = np.where(runs["finished"] > 0, runs["finished"], runs["stop"])
    free = np.maximum(runs["ready"], thread_free(runs))
    back = given_back(runs)
    begun, stopped = (np.where(back, runs["assigned"], runs[name]) for name in ("start", "stop"))
    return {
        "lead": (np.minimum(led, runs["received"]), runs["received"]),
        "fetch": (runs["received"], runs["ready"]),
        "begin": (np.minimum(free, begun), begun),
        "lag": (stopped, np.maximum(known, stopped)),
    }


def thread_free(runs: Columns) -> Ints:
    """When the run before on the same thread had stopped, ns; 0 where there is none."""
    found = np.zeros(len(runs["run"]), np.int64)
    places = Rows(runs["wplace"])
    for place in places.numbers:  # few enough at a time to be near
        rows = places.of(place)
        rows = rows[np.lexsort((runs["start"][rows], runs["thread"][rows]))]
        thread, start, stop = (runs[name][rows] for name in ("thread", "start", "stop"))
        after = (thread[:-1] == thread[1:]) & (stop[:-1] <= start[1:])
        found[rows[1:][after]] = stop[:-1][after]
    return found


def _serial(steps: frozenset[int]) -> Callable[[Step], float] | None:
    if not steps:
        return None
    return lambda step: 0.0 if step.what.step in steps else 1.0
