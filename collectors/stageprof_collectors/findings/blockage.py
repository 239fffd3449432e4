"""Event loops that could not run because something else held their process, not their own work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.intervals import clip, innermost, length
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.presence import Presence
from stageprof_collectors.findings.standing import (
    Floats,
    Standing,
    seconds_of,
    series,
    shared,
    stood,
)
from stageprof_collectors.others import beside
from stageprof_collectors.replay.relief import Interval
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Shorter stalls, s, are the turns that threads take in a healthy process, ten of 5 ms at most.
STALL_S: Final = 0.05
#: Stalled seconds of one loop by wall seconds: less delays nobody much.
SHARE: Final = 0.05
#: Of the time that the GIL was taken, or the collector ran: below, the processor was short.
HELD: Final = 0.5
#: A stall of which more than this part is the loop's own work was not a stall by others.
OWN: Final = 0.5
#: What a thread of the scheduler's does with a graph, while the loop waits for the GIL: that has
#: steps of its own.
_TAKING_IN: Final = tuple(STEP[s] for s in ("graph.load", "materialize", "lowlevel", "order"))
#: A loop that is only short of a processor gets one sooner than this, ns.
LONG_NS: Final = 100_000_000
#: How much of such a stall a task is there, and the part of its time that it had a processor.
COVERED: Final = 0.8
BUSY: Final = 0.3
#: A task that was there for less of a stall has nothing to do with it.
SOME: Final = 0.01
#: The GIL is told of every half second: what is told so long after a stall, ns, is told of it.
TOLD_NS: Final = 1_000_000_000


def collections(recording: Recording) -> Standing:
    """When the garbage collector stopped each place."""
    return shared(recording, stood(recording, "gc.pause_s"))


def blocked(
    recording: Recording, *, stall_s: float = STALL_S, share: float = SHARE, held: float = HELD
) -> dict[int, list[Interval]]:
    """When each place's loop was held up by others; see the constants for the arguments."""
    told = stood(recording, "loop.stall_s")
    long = {p: [(a, b) for a, b in s if b - a >= stall_s * 1e9] for p, s in told.items()}
    stalls = {p: s for p, s in long.items() if seconds_of(s) >= share * recording.wall}
    if not stalls:
        return {}
    pauses = collections(recording)
    contention, loops = series(recording, "gil.contention"), recording.timeline.gil.loops
    found = {}
    for p, spans in stalls.items():
        waits = _waiting(loops[p]) if p in loops else _taken(recording, p, contention.get(p))
        kept = _by_others(recording, p, spans, pauses.get(p, ()), waits, held)
        if kept:
            found[p] = kept
    return found


def computed(
    recording: Recording, held: Standing, *, stall_s: float = STALL_S, share: float = SHARE
) -> Standing:
    """Of `blocked` what is no want of a processor, on machines of which others leave none idle.

    A thread that has the GIL may wait for a processor with it: there each stall is only as long as
    tasks computed in it, or the collector ran.
    """
    full = {p for places, found in beside(recording) if found.full for p in places}
    pauses, found = collections(recording), {}
    for place, spans in held.items():
        if place not in full:
            found[place] = spans
            continue
        busy = _busy(recording, place, pauses.get(place, ()))
        kept = [(a, a + took) for a, b in spans if (took := busy(a, b)) >= stall_s * 1e9]
        if seconds_of(kept) >= share * recording.wall:
            found[place] = kept
    return found


def _busy(
    recording: Recording, place: int, pauses: Sequence[Interval]
) -> Callable[[int, int], int]:
    """Of a stall: for how long tasks of the process computed, or the collector ran, ns."""
    runs = recording.timeline.runs
    there = Presence(recording.timeline, _of_process(recording, place))
    collected = innermost((a, b, None) for a, b in pauses)

    def took(start: int, stop: int) -> int:
        rows = there.during(start, stop, SOME)
        inside = np.minimum(runs["stop"][rows], stop) - np.maximum(runs["start"][rows], start)
        tasks = int(np.minimum(runs["cpu"][rows], inside).clip(0).sum())
        return min(stop - start, max(tasks, length(clip(collected, start, stop))))

    return took


def _by_others(
    recording: Recording,
    place: int,
    spans: list[Interval],
    pauses: Sequence[Interval],
    for_gil: Callable[[int, int], float],
    held: float,
) -> list[Interval]:
    own, graphs = recording.lanes.loop(place), recording.lanes.step([place], *_TAKING_IN)
    here = _of_process(recording, place)
    there = Presence(recording.timeline, here)
    pickled = innermost(s for p in here for s in recording.lanes.bytes_work(p))
    collected = innermost((a, b, None) for a, b in pauses)
    kept = []
    for start, stop in spans:
        if max(length(clip(lane, start, stop)) for lane in (own, graphs)) > OWN * (stop - start):
            continue
        # What another thread pickles has steps of its own, unless a task made it wait too.
        pickling = length(clip(pickled, start, stop)) > OWN * (stop - start)
        if pickling and not len(there.during(start, stop, OWN)):
            continue
        gc = length(clip(collected, start, stop)) / (stop - start)
        if max(gc, for_gil(start, stop)) >= held:
            kept.append((start, stop))
    return kept


def _of_process(recording: Recording, place: int) -> list[int]:
    """All places of a place's process."""
    process = recording.timeline.gil.process
    found: list[int] = np.flatnonzero(process == process[place]).tolist()
    return found


def _waiting(loop: Iterable[Interval]) -> Callable[[int, int], float]:
    """Of a stall: the part in which the loop was seen to wait for the GIL."""
    waits = innermost((a, b, None) for a, b in loop)
    return lambda start, stop: length(clip(waits, start, stop)) / (stop - start)


def _taken(
    recording: Recording, place: int, told: tuple[Ints, Floats] | None
) -> Callable[[int, int], float]:
    """Of a stall where nobody watched: the part in which the GIL was taken then."""
    t, contention = told or (np.zeros(0, np.int64), np.zeros(0))
    there = Presence(recording.timeline, [place])

    def part(start: int, stop: int) -> float:
        soon = (t >= start) & (t <= stop + TOLD_NS)
        taken = float(contention[soon].max(initial=0.0))
        return 1.0 if _by_a_task(recording, there, start, stop) else taken

    return part


def _by_a_task(recording: Recording, there: Presence, start: int, stop: int) -> bool:
    """Whether a task had the processor in a long stall, as a loop that may run would have had.

    A thread that has slept goes before one that computes: what kept it waiting so long was the GIL.
    """
    if stop - start < LONG_NS:
        return False
    runs = recording.timeline.runs
    mine = there.during(start, stop, COVERED)
    took = np.maximum(runs["stop"][mine] - runs["start"][mine], 1)
    return bool((runs["cpu"][mine] >= BUSY * took).any())
