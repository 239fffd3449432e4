"""The run without some times of trouble: what a worker could not do then, it would have done.

Trouble is when a worker's loop was busy with something that should not be (moving results to disk
and back) or held its tasks up (paused). Of each part of a run, what lies in its worker's trouble is
taken away; the task's own function goes on meanwhile on its thread, more slowly perhaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.intervals import innermost
from stageprof_collectors.path import Step
from stageprof_collectors.replay import Change
from stageprof_collectors.timeline import Columns, Ints

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Runs of a kind that are compared with as many others at least: their median is then one of them.
ALIKE: Final = 3

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


def relief(
    recording: Recording,
    trouble: Mapping[int, Sequence[Interval]],
    *,
    steps: frozenset[int] = frozenset(),
    gone: Ints | None = None,
    slowed: bool = False,
) -> Change:
    """The change that takes trouble away.

    Args:
        recording: of what.
        trouble: by a worker's place, when it was in trouble (ns).
        steps: step codes that are trouble where they belong to no run.
        gone: rows of runs that would not have happened at all.
        slowed: whether runs during trouble would have taken no longer than others of their kind.
    """
    runs = recording.timeline.runs
    parts = {name: np.ones(len(runs["run"])) for name in ("lead", "fetch", "begin", "lag")}
    ends = run_windows(recording, runs)
    for place, spans in trouble.items():
        mine = np.flatnonzero(runs["wplace"] == place)
        covered = Covered(spans)
        for name, (start, stop) in ends.items():
            parts[name][mine] = _left(covered, start[mine], stop[mine])
    # What is fetched comes from a worker whose loop may be the one in trouble.
    everybodys = Covered(span for spans in trouble.values() for span in spans)
    parts["fetch"] = _left(everybodys, *ends["fetch"])
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
    """By how much runs during trouble took longer than those of the same kind at other times."""
    runs = recording.timeline.runs
    factor = np.ones(len(runs["run"]))
    during = np.zeros(len(factor), np.bool_)
    for place, spans in trouble.items():
        mine = np.flatnonzero(runs["wplace"] == place)
        during[mine] = Covered(spans).of(runs["start"][mine], runs["stop"][mine]) > 0
    took = runs["stop"] - runs["start"]
    kinds = recording.tasks()["prefix"].to_numpy(dtype=object)
    for kind in set(kinds[during].tolist()):
        slow, others = during & (kinds == kind), ~during & (kinds == kind) & (runs["seen"] == 1)
        if slow.sum() >= ALIKE and others.sum() >= ALIKE:
            usual = float(np.median(took[others]))
            factor[slow] = min(1.0, usual / max(float(np.median(took[slow])), 1.0))
    return factor


def _left(covered: Covered, start: Ints, stop: Ints) -> Floats:
    """The fraction of each interval that is left."""
    whole = np.maximum(stop - start, 1).astype(float)
    left: Floats = np.clip(1.0 - covered.of(start, stop) / whole, 0.0, 1.0)
    return left


def run_windows(recording: Recording, runs: Columns) -> dict[str, tuple[Ints, Ints]]:
    """From when to when each part of each run was, as the replay means them."""
    cause = recording.timeline.depends.cause
    led = np.where(cause >= 0, runs["finished"][np.maximum(cause, 0)], runs["assigned"])
    known = np.where(runs["finished"] > 0, runs["finished"], runs["stop"])
    free = np.maximum(runs["ready"], thread_free(runs))
    return {
        "lead": (np.minimum(led, runs["received"]), runs["received"]),
        "fetch": (runs["received"], runs["ready"]),
        "begin": (np.minimum(free, runs["start"]), runs["start"]),
        "lag": (runs["stop"], np.maximum(known, runs["stop"])),
    }


def thread_free(runs: Columns) -> Ints:
    """When the run before on the same thread had stopped, ns; 0 where there is none."""
    found = np.zeros(len(runs["run"]), np.int64)
    order = np.lexsort((runs["start"], runs["thread"], runs["wplace"]))
    a, b = order[:-1], order[1:]
    same = (runs["wplace"][a] == runs["wplace"][b]) & (runs["thread"][a] == runs["thread"][b])
    same &= (runs["wplace"][a] >= 0) & (runs["stop"][a] <= runs["start"][b])
    found[b[same]] = runs["stop"][a[same]]
    return found


def _serial(steps: frozenset[int]) -> Callable[[Step], float] | None:
    if not steps:
        return None
    return lambda step: 0.0 if step.what.step in steps else 1.0
