"""Workers' memory grows from computation to computation and is not given back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.embedded import Embedded
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.leak import WARM, Leak, Leaver, carried, leaks, leaver
from stageprof_collectors.findings.quantity import count, seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.trend import LEAST
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_BOUND: Final = """\
from collections import deque

kept = deque(maxlen=100)  # in place of a list or dict that only grows: the oldest go"""

_UNMANAGED: Final = (
    "{who} Look for a dict, list or cache that outlives the task (at the top of a module, on the "
    "worker, on a class, a `functools.lru_cache` without `maxsize`), that tasks add to and nobody "
    "bounds, and bound it as the code does, or write to storage what you have to keep. Where a "
    "library keeps it, restart the workers between computations, `client.restart()`: that frees "
    "about {freed} on {workers}, but takes some seconds each time, which are not taken off what "
    "is saved, and loses all results on them ({lost}), which have to be made or loaded again."
)
_LEFT: Final = (
    "{named} leaves about {each} on its worker in each of its {runs} runs, beside its result."
)
_NOBODY: Final = "Which tasks leave it cannot be told: look at those that run in all computations."
_KEPT: Final = (
    "A worker keeps what a task was sent with for as long as anybody holds its result: that is "
    "`{name}`, an object of {size} in {tasks:,} tasks. Send it once, apart from the tasks, or let "
    "go of the results."
)
_MANAGED: Final = (
    "Let go of results that you need no more: your program holds futures or persisted collections "
    "of every computation. `del` the variables that hold them, or keep what you need of them as "
    "plain values; Dask frees the rest at once, about {freed} on {workers}. Restarting the workers "
    "would lose all of them ({lost})."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding of each kind for all workers: they run the same code."""
    if len(recording.timeline.graphs) < LEAST + WARM:
        return
    grown = leaks(recording, limits["chance"], limits["grown_bytes"])
    for kind in ("unmanaged", "managed"):
        if mine := [leak for leak in grown if leak.kind == kind]:
            yield _finding(recording, limits, kind, mine)


def _finding(recording: Recording, limits: Limits, kind: str, mine: list[Leak]) -> Finding:
    # To hold results is what Dask is there for: of those it is a note, and spilling says the rest.
    leaked = kind == "unmanaged"
    trouble, wall = shortage.both(recording) if leaked else {}, recording.wall
    saving = shortage.saving(recording, trouble, spill=True) if trouble else (0.0, 0.0)
    cost = shortage.spill_cost(recording) + shortage.pause_cost(recording) if leaked else 0.0
    left, who = _left_s(recording, mine), leaver(recording, mine) if leaked else None
    where = shortage.of_prefix(recording, who.prefix) if who else Where()
    thing = carried(recording, mine, who) if leaked and not trouble else None
    # Whoever restarts the workers already has what we would tell them.
    soon = limits["soon_s"] if leaked and not _restarted(recording) else 0.0
    return Finding(
        rule=RULE.id,
        severity=_severity(severity(saving, wall), left, soon),
        headline=_headline(mine, _whose(kind, where, thing), left, cost, wall),
        stage=Stage.EXECUTION,
        evidence=_evidence(mine, kind, left, who),
        cost_s=cost,
        saving_s=saving,
        fix=_kept(thing) if thing else _fix(recording, mine, kind, _left(who, where)),
        where=where,
        cause=shortage.CAUSE if trouble else thing.cause if thing else f"growth:{kind}",
    )


def _restarted(recording: Recording) -> bool:
    """Whether workers were replaced by the program's own will."""
    killed = {kill.worker for kill in recording.incidents.kills}
    return any(
        loss.worker not in killed and not loss.results + loss.running
        for loss in recording.incidents.losses
    )


def _severity(by_saving: Severity, left_s: float, soon_s: float) -> Severity:
    """What the run lost already, or what it is about to lose."""
    if by_saving == Severity.NOTE and left_s < soon_s:
        return Severity.MODERATE
    return by_saving


def _left_s(recording: Recording, grown: list[Leak]) -> float:
    """Seconds until the first worker is where Dask pauses it; infinite if that is unknown."""
    found = [float("inf")]
    for leak in grown:
        limits = recording.memory.limits.get(leak.place)
        if limits is not None:
            room = (limits.pause or 1.0) * limits.limit - recording.memory.of(leak.place).peak
            found.append(max(0.0, room) / leak.trend.slope * recording.wall / leak.times)
    return min(found)


def _whose(kind: str, where: Where, thing: Embedded | None) -> str:
    """What the workers grew by."""
    if thing:
        return f"`{thing.variable or thing.type}`, which its tasks carry"
    if kind == "managed":
        return "results that your program holds"
    named = shortage.named(where) if where.prefix else ""
    return f"what {named} leaves behind" if named else "nothing that Dask holds"


def _kept(thing: Embedded) -> Fix:
    """What to do about an object that tasks carried to the workers."""
    name = thing.variable or thing.type
    return Fix(_KEPT.format(name=name, size=size(thing.nbytes // thing.many), tasks=thing.tasks))


def _left(who: Leaver | None, where: Where) -> str:
    """What is known of the tasks that leave it."""
    if who is None:
        return _NOBODY
    runs = f"{who.runs:,}"
    return _LEFT.format(named=shortage.named(where), each=size(who.each), runs=runs)


def _headline(grown: list[Leak], whose: str, left_s: float, cost: float, wall: float) -> str:
    times = max(leak.times for leak in grown)
    each, total = sum(leak.trend.slope for leak in grown), sum(leak.grown for leak in grown)
    soon = f"; workers are paused in {seconds(left_s)} if it goes on" if 0 < left_s < 1e6 else ""
    return (
        f"{count(len(grown), 'worker')} grew by {size(each)} with each computation, {size(total)} "
        f"over {times}, by {whose}{soon}: {seconds(cost)} of {seconds(wall)}"
    )


def _evidence(
    grown: list[Leak], kind: str, left_s: float, who: Leaver | None
) -> dict[str, float | int | str]:
    known: dict[str, float | int | str] = {"until_paused_s": left_s} if left_s < 1e6 else {}
    if who is not None:
        known |= {"left_by": who.prefix, "left_each_run_bytes": who.each, "left_runs": who.runs}
    return {
        "kind": kind,
        "workers": len(grown),
        "computations": max(leak.times for leak in grown),
        "each_time_bytes": sum(leak.trend.slope for leak in grown),
        "each_time_late_bytes": sum(leak.trend.late for leak in grown),
        "grown_bytes": sum(leak.grown for leak in grown),
        "chance": max(leak.trend.chance for leak in grown),
        **known,
    }


def _fix(recording: Recording, grown: list[Leak], kind: str, who: str) -> Fix:
    held = sum(int(t.managed[-1]) for t in recording.memory.taken.values() if len(t.t))
    text = (_MANAGED if kind == "managed" else _UNMANAGED).format(
        who=who,
        freed=size(sum(leak.grown for leak in grown)),
        workers=count(len(grown), "worker"),
        lost=f"{size(held)} at the end of this run",
    )
    return Fix(text, _BOUND if kind == "unmanaged" else "")


RULE = Rule(
    id="memory-growth",
    stage=Stage.EXECUTION,
    summary="Workers' memory grows with each computation and is not given back.",
    find=find,
    ground=Ground.CROWDED,
    # They say what it leads to.
    instead_of=frozenset({"spilling", "memory-near-limit", "worker-paused", "worker-restarted"}),
    limits={
        "chance": Limit(0.01, "how probable growth by chance may be: one in a hundred runs"),
        "grown_bytes": Limit(
            20e6, "over all computations: allocators keep and return this much at will"
        ),
        "soon_s": Limit(3600, "until workers are paused: more than most runs last is no alarm"),
    },
)
