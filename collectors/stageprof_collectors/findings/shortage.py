"""A shortage of memory: what the rules about it share.

Spilling, pauses and restarts are signs of one and the same cause, and a run often has several of
them: their findings have one cause, so that the one whose removal saves most is shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.intervals import clip, innermost, length
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.finding import Where
from stageprof_collectors.findings.sizing import Sizing
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.relief import relief
from stageprof_collectors.tables.incidents import SPILL, Interval
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: The cause of all findings about too little memory.
CAUSE: Final = "memory"

#: Steps in which a task, or the caller, waits for a worker that takes none.
_WAITS: Final = frozenset(
    STEP[s] for s in ("wait.thread", "place", "task.send", "data.transfer", "result.gather", "idle")
)

Trouble = Mapping[int, Sequence[Interval]]


def paused(recording: Recording) -> dict[int, list[Interval]]:
    """When each observed worker was paused, by its place."""
    incidents = recording.incidents
    by_place = {incidents.place(w): spans for w, spans in incidents.pauses.items()}
    return {place: spans for place, spans in by_place.items() if place >= 0}


def both(recording: Recording) -> dict[int, list[Interval]]:
    """When each observed worker was spilling or paused."""
    found = {place: list(spans) for place, spans in recording.incidents.spilling.items()}
    for place, spans in paused(recording).items():
        found.setdefault(place, []).extend(spans)
    return found


def spill_cost(recording: Recording) -> float:
    """Seconds of the blocking account that went into spilling."""
    return cost_of(recording, steps=SPILL)


def pause_cost(recording: Recording) -> float:
    """Seconds of the blocking account that were waited while the worker concerned was paused."""
    pauses = recording.incidents.pauses
    anyone = [span for spans in pauses.values() for span in spans]
    return _waited(recording, anyone, paused(recording)) if anyone else 0.0


def gone(recording: Recording) -> str:
    """The cause of findings about workers that went: their memory, or another."""
    return CAUSE if recording.incidents.kills else "workers lost"


def missing_cost(recording: Recording, ended: Iterable[int]) -> float:
    """Seconds of the blocking account that were waited while a worker was not replaced.

    Args:
        recording: of what.
        ended: when the workers ended, ns.
    """
    come = [t for t, _, _ in recording.timeline.marks("worker seen")]
    until = [*come, recording.timeline.region.stop]
    away = [(went, until[bisect_right(come, went)]) for went in ended]
    return _waited(recording, away, {}) if away else 0.0


def _waited(recording: Recording, anyone: list[Interval], of_place: Trouble) -> float:
    """Seconds of waiting, at a worker in its own trouble and elsewhere in anyone's."""
    every = innermost((a, b, None) for a, b in anyone)
    mine = {p: innermost((a, b, None) for a, b in s) for p, s in of_place.items()}
    workers = set(recording.memory.places)
    waited = 0
    for step in recording.path_steps:
        if step.what.step in _WAITS:
            place = step.what.place
            spans = mine.get(place, []) if place in workers else every
            waited += length(clip(spans, step.start, step.stop))
    return waited / 1e9


def saving(
    recording: Recording, trouble: Trouble, *, spill: bool, gone: Ints | None = None
) -> tuple[float, float]:
    """Seconds that the run would be shorter without some trouble.

    Args:
        recording: of what.
        trouble: by place, when (ns).
        spill: whether spilling is part of it.
        gone: rows of runs that would not have happened.

    Returns:
        At least what was waited for, at most also what tasks took longer meanwhile than others.
    """
    steps = SPILL if spill else frozenset()
    least, most = (
        recording.replay.saving(relief(recording, trouble, steps=steps, gone=gone, slowed=slowed))
        for slowed in (False, True)
    )
    return least[0], max(least[1], most[1])


def seconds_of(trouble: Trouble) -> float:
    """Seconds of trouble, over all workers."""
    return sum(b - a for spans in trouble.values() for a, b in spans) / 1e9


def largest(recording: Recording) -> Where:
    """The layer whose results take most, by what Dask takes them for."""
    table = recording.layers()
    if not len(table) or not table["bytes"].max() > 0:
        return Where()
    row = table.iloc[int(table["bytes"].to_numpy().argmax())]
    return Where(str(row["file"]), int(row["line"]), "", str(row["layer"]), str(row["prefix"]))


def of_prefix(recording: Recording, prefix: str) -> Where:
    """A layer whose tasks have a prefix, with its line."""
    table = recording.layers()
    mine = table[table["prefix"] == prefix]
    if not len(mine):
        return Where(prefix=prefix)
    row = mine.iloc[0]
    return Where(str(row["file"]), int(row["line"]), "", str(row["layer"]), prefix)


def named(where: Where) -> str:
    """A layer in a sentence: `` `normal` (etl.py:41) ``."""
    line = f" ({PurePath(where.file).name}:{where.line})" if where.file else ""
    return f"`{where.prefix or where.layer}`{line}"


def sizes(found: Sizing) -> dict[str, float | int | str]:
    """Evidence of every finding about too little memory."""
    limits, taken = found.limits, found.taken
    return {
        "memory_limit_bytes": int(limits.limit),
        "process_peak_bytes": taken.peak,
        "managed_peak_bytes": taken.managed_peak,
        "on_disk_peak_bytes": taken.spilled_peak,
        "target_fraction": limits.target,
        "spill_fraction": limits.spill,
        "pause_fraction": limits.pause,
        "terminate_fraction": limits.terminate,
        "needed_bytes": found.need,
    }
