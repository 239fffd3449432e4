"""Event loops of workers or of the scheduler that could do nothing, because something held the GIL.

A loop's own long steps (a transition, a dump) are told where they belong; here is what kept the
loop from running at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.exchange import kind
from stageprof_collectors.account.intervals import Segment, clip, innermost, length
from stageprof_collectors.findings.blockage import (
    HELD,
    SHARE,
    STALL_S,
    blocked,
    collections,
    computed,
)
from stageprof_collectors.findings.collecting import rarely
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standing import Standing, released, seconds_of
from stageprof_collectors.profiles.looks import Look, Looks
from stageprof_collectors.replay.apart import Processes, processes
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_THREADS: Final = (
    "While `{name}`{at} holds the GIL, the event loop of its process cannot answer other workers, "
    "take new tasks or report results. Start the cluster with {layout} "
    "(the code below, in place of your own cluster), so that fewer threads keep the GIL from it."
)
_THREADS_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads}, processes=True)
client = Client(cluster)"""
_PIECES: Final = (
    "While `{name}`{at} is in one long call that holds the GIL, the event loop of its process "
    "cannot answer other workers, take new tasks or report results. Do the work in pieces of some "
    "milliseconds (the code below, if the work is on a sequence): between two calls Python gives "
    "the GIL away. Or use a library that gives it up while it works."
)
_PIECES_CODE: Final = """\
def {name}_in_pieces(items, size=100):
    starts = range(0, len(items), size)
    return [{name}(items[start : start + size]) for start in starts]  # others have turns between"""
_NOBODY: Final = (
    "No task held the GIL meanwhile. Of a `LocalCluster` the scheduler is in the process of your "
    "program, whose own threads may: do what takes them long before or after the computation, or "
    "start the scheduler by itself (`dask scheduler`)."
)
_GC: Final = (
    "The garbage collector stops the whole process, its event loop included. Have it do so less "
    "often, or make fewer objects; see `gc-pressure`."
)


class Held(NamedTuple):
    """What held the loops most."""

    #: "gc" or "gil"
    by: str
    prefix: str
    look: Look | None


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all loops: what holds one holds the others."""
    least = {name: limits[name] for name in ("stall_s", "share")}
    held = computed(recording, blocked(recording, held=limits["held"], **least), **least)
    if not held:
        return
    pauses = collections(recording)
    found = released(recording, held, limits["path"])
    if found is None:
        return
    by = _held(recording, held, pauses)
    if kind(by.prefix) is None:  # what Dask's own exchanges hold is nobody's to change
        yield _finding(recording, held, by, *found)


def _finding(
    recording: Recording,
    held: Standing,
    by: Held,
    cost: float,
    saved: tuple[float, float],
) -> Finding:
    look = by.look
    name = look.function if look else by.prefix
    where = made_at(look.file, look.line) if look else ""
    spans = [span for mine in held.values() for span in mine]
    longest = max(stop - start for start, stop in spans) / 1e9
    what = "the garbage collector" if by.by == "gc" else f"`{name}`{where}" if name else "a thread"
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_whose(recording, held)} could do nothing for {seconds(seconds_of(spans))} (up to "
            f"{seconds(longest)} at a time) while {what} held the process: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "stalled_s": seconds_of(spans),
            "longest_s": longest,
            "stalls": len(spans),
            "held_by": by.by,
            **({"holder": name} if name else {}),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, held, by, name, where),
        where=Where(look.file if look else "", look.line if look else 0, "", "", by.prefix),
        cause="gc" if by.by == "gc" else f"line:{look.file}:{look.line}" if look else "gil",
    )


def _whose(recording: Recording, held: Standing) -> str:
    roles = [recording.store.places[p].role for p in held]
    workers = roles.count("worker")
    if not workers:
        return "The scheduler's event loop"
    if workers == 1:
        return "The event loop of a worker"
    return f"The event loops of {count(workers, 'worker')}"


def _held(recording: Recording, held: Standing, pauses: Standing) -> Held:
    """The collector, if it had more than half of the time; else the task that ran most in it."""
    whole = collected = 0
    during: dict[str, int] = {}
    runs, prefixes = recording.timeline.runs, recording.prefixes
    for place, spans in held.items():
        mine = innermost((a, b, None) for a, b in spans)
        whole += length(mine)
        gc = innermost((a, b, None) for a, b in pauses.get(place, ()))
        collected += sum(length(clip(gc, a, b)) for a, b, _ in mine)
        for row in recording.timeline.at.of(place).tolist():
            met = clip(mine, int(runs["start"][row]), int(runs["stop"][row]))
            had = _holding(recording, row, met)
            if had > 0:
                during[prefixes[row]] = during.get(prefixes[row], 0) + had
    if collected > whole / 2:
        return Held("gc", "", None)
    prefix = max(during, key=lambda p: during[p], default="")
    looks = [look for look in Looks(recording).all if look.prefix == prefix and look.file]
    return Held("gil", prefix, max(looks, key=lambda look: look.seconds, default=None))


def _holding(recording: Recording, row: int, spans: Sequence[Segment[None]]) -> int:
    """How long a run held the GIL in some times, ns; where nobody watched, how long it ran."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    place = runs["wplace"][[row]]
    if not spans or not gil.watched(place)[0]:
        return length(spans)
    start, stop = (np.array([span[i] for span in spans]) for i in (0, 1))
    n = len(spans)
    thread = np.repeat(runs["thread"][row], n)
    return int(gil.of(np.repeat(place, n), thread, start, stop).held.sum())


def _fix(recording: Recording, held: Standing, by: Held, name: str, where: str) -> Fix:
    if by.by == "gc":
        return Fix(_GC, rarely(recording, max(held, key=lambda p: seconds_of(held[p]))))
    if not name:
        return Fix(_NOBODY)
    layout = _apart(recording)
    if layout is not None and layout.gone > 0:
        code = _THREADS_CODE.format(workers=layout.number, threads=layout.threads)
        return Fix(_THREADS.format(name=name, at=where, layout=layout), code)
    code = _PIECES_CODE.format(name=word(by.look.entry if by.look else name, "work"))
    return Fix(_PIECES.format(name=name, at=where), code)


def _apart(recording: Recording) -> Processes | None:
    """What the workers could be instead; None if they have one thread each."""
    threads = recording.workers()["threads"]
    if not len(threads) or int(threads.max()) < 2:
        return None
    shares = recording.timeline.gil.shares
    return processes(recording, np.zeros(len(recording.tasks())) if shares is None else shares)


RULE = Rule(
    id="event-loop-blocked",
    stage=Stage.COMMUNICATION,
    summary="The event loop of a worker or of the scheduler could not run.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "stall_s": Limit(
            STALL_S, "shorter stalls are the turns that threads take in a healthy process"
        ),
        "share": Limit(
            SHARE, "stalled seconds of one loop by wall seconds: less delays nobody much"
        ),
        "held": Limit(HELD, "of the time that the GIL was taken: below, the processor was short"),
        "path": Limit(0.02, "of the wall time on the critical path: less is not worth a change"),
    },
)
