"""No rule found anything that matters: where the time went, and what could be saved at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.hotspot import hotspots, own, sentence
from stageprof_collectors.findings.innocence import (
    AROUND,
    at_most,
    ended_early,
    nothing_ran,
    unexplained,
)
from stageprof_collectors.findings.other_threads import by_other_threads
from stageprof_collectors.findings.own_imports import imported_s, whole
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.rule import Limits, Rule
from stageprof_collectors.findings.stuck import Stuck, stuck
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import SIX, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: A bound above this share of the wall time is no acquittal: something is there, unknown to the
#: rules. Below, even a perfect fix would be "moderate" at most.
_ACQUITTED = 0.1

#: From this share on it is the tasks themselves that the run consists of.
_MOSTLY = 0.5

#: From this share on it is told where tasks, or the program itself, spent their time.
_TASKS = 0.25

#: Of the processors: where tasks compute on fewer, as those that wait do, fewer threads do less.
_ALL = 0.8

#: Steps in which data are on their way, whatever is computed with them.
_MOVES = frozenset(
    {"data.transfer", "data.dump", "data.load", "connect", "compress", "decompress"}
    | {"result.gather", "result.dump", "result.load"}
)

_UNSEEN = "No Dask computation was seen here: no compute, persist or submit in this process"
_LOOK_ELSEWHERE = (
    "Put what computes into what is profiled: .compute(), .persist(), dask.compute, client.submit "
    "or client.map. Dask in a process that this one starts is not seen: profile that process "
    "itself. If it uses a cluster that runs by itself, `stageprof attach ADDRESS` watches that."
)
_MOVED = "No Dask computation was seen here: Dask only moved data, for {seconds}"
_PUT_IN = (
    "What is profiled sends or fetches data (`scatter`, `gather`, results of before) and computes "
    "nothing. If its computation is slow, put .compute(), client.submit or client.map into what is "
    "profiled, too; if moving the data is what takes long, let tasks make or read them where they "
    "are needed. The table of steps says where the time went: steps()."
)
_NOT_MEANWHILE = "No Dask computation was seen here: none ran on this cluster meanwhile"
_LATER = (
    "Begin to watch before the program computes, and check that the address is that of the "
    "scheduler which the program uses."
)

_OTHERS = "Not in this account: {graphs} of other threads; record those"
_LOOK_THERE = (
    "The account is that of the thread in which the recording began. Begin it in what the others "
    "run, `with stageprof.profile():` around the compute there, or have one of them done in this "
    "thread. What ran meanwhile is in computations() and tasks()."
)

_NOT_TAKEN = "After {seconds} the scheduler had made no tasks of the graph{at}"
#: Dask asks for lengths within a `functools.cached_property`, which has one lock for all objects.
_STUCK = (
    "The graph was handed over and no task of it came to be: the scheduler was still making them, "
    "or never got there. On a `LocalCluster`, whose scheduler is in the program's own process, the "
    "two may wait for each other for ever: before Python 3.12 they do where Dask computes lengths "
    "to make the graph, as for `repartition(partition_size=...)`. Say how many pieces there are to "
    "be (the code below), or have the scheduler in a process of its own. Else make smaller graphs, "
    "with fewer and larger pieces."
)
_NOT_BEGUN = "{tasks} in the graph{at} took {seconds} until the first could begin; {begun} had"
_TOO_MANY = (
    "Each task of a graph takes time before the first of them runs: it is sent, optimized, ordered "
    "and made known to the scheduler. The recording ends too early to say what tasks cost then. "
    "Make them fewer: larger chunks where the data are read or made, so that one task does what "
    "many do now. `stageprof check` says of a script, without running it, which collections have "
    "pieces that are too small, and of what size they should be."
)
_COUNTED = "ddf = ddf.repartition(npartitions=20)  # in place of partition_size=..."

_NOT_BY_THEN = "It ended early: no Dask computation had been seen by then"
_TO_THE_END = (
    "The recording ends before the run did: its program was killed, or the file is cut off. What "
    "came after is not known, and may be where most of the time went; record a run to its end "
    "before you conclude that there is nothing to fix."
)

_OWN = (
    "{work} of the time is the execution of your tasks and your own code. What makes this faster "
    "is faster code inside the tasks, less data, or more {room}; Dask's settings are not it."
)
_AROUND_IT = (
    "{work} of the time is the execution of your tasks and your own code; the largest stage around "
    "them is {stage}, for no cause that is known. The table of steps says where it goes: steps()."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:  # noqa: ARG001 (it has none)
    """The one finding; it is asked for only if there is no other above a note."""
    shares = {str(s): float(part) for s, part in recording.stages()["share"].items()}
    others = by_other_threads(recording)
    held = stuck(recording)
    if held is not None:
        yield _stuck(shares, held)
    elif nothing_ran(recording):
        yield _unseen(recording, shares)
    elif moved := 0.0 if ended_early(recording) else _moved(recording):
        yield _only_moved(moved, shares)
    elif others:
        headline = _OTHERS.format(graphs=count(others, "computation"))
        yield _no_verdict(headline, _LOOK_THERE, shares)
    else:
        yield _bound(recording, shares)


def _unseen(recording: Recording, shares: dict[str, float]) -> Finding:
    attached, early = recording.timeline.region.attached, ended_early(recording)
    headline = _NOT_BY_THEN if early else _NOT_MEANWHILE if attached else _UNSEEN
    advice = _TO_THE_END if early else _LATER if attached else _LOOK_ELSEWHERE
    return _no_verdict(headline, advice, shares, tasks=0)


def _moved(recording: Recording) -> float:
    """Seconds of the wall time that Dask moved data for, if it did nothing else."""
    if len(recording.timeline.runs["run"]) or recording.timeline.graphs:
        return 0.0
    steps = recording.steps().query("wall_s > 0")
    around = steps[steps["stage"].isin([str(stage) for stage in AROUND])]
    return float(around["wall_s"].sum()) if around["step"].isin(_MOVES).all() else 0.0


def _only_moved(moved: float, shares: dict[str, float]) -> Finding:
    found = _no_verdict(_MOVED.format(seconds=seconds(moved)), _PUT_IN, shares, tasks=0)
    return replace(found, cost_s=moved)


def _stuck(shares: dict[str, float], held: Stuck) -> Finding:
    at, took = made_at(held.file, held.line, " of "), seconds(held.seconds)
    if held.tasks:
        headline = _NOT_BEGUN.format(
            tasks=count(held.tasks, "task"), at=at, seconds=took, begun=f"{held.begun:,}"
        )
        found = _no_verdict(headline, _TOO_MANY, shares, tasks=held.tasks, begun=held.begun)
    else:
        found = _no_verdict(_NOT_TAKEN.format(seconds=took, at=at), _STUCK, shares)
        found = replace(found, fix=Fix(_STUCK, _COUNTED))
    saved, where = (0.0, held.seconds), Where(held.file, held.line)
    return replace(found, cost_s=held.seconds, saving_s=saved, where=where)


def _no_verdict(headline: str, advice: str, shares: dict[str, float], **known: int) -> Finding:
    """What the account says nothing of, and what to do about that."""
    return Finding(
        rule=RULE.id,
        severity=Severity.NOTE,
        headline=headline,
        stage=None,
        evidence={**known, **{f"{s}_share": shares[s] for s in SIX}},
        cost_s=0.0,
        saving_s=(0.0, 0.0),
        fix=Fix(advice),
    )


def _bound(recording: Recording, shares: dict[str, float]) -> Finding:
    bounds = {stage: _at_most(recording, stage) for stage in AROUND}
    stage = max(bounds, key=lambda stage: bounds[stage])
    most = min(bounds[stage] + unexplained(recording), recording.wall)
    work, early = shares[Stage.EXECUTION] + shares[Stage.OUTSIDE], ended_early(recording)
    text, room = _OWN if work >= _MOSTLY else _AROUND_IT, _room(recording)
    advice = text.format(work=share(work), stage=stage, room=room)
    if shares[Stage.EXECUTION] >= _TASKS:
        advice += sentence(hotspots(recording))
    if shares[Stage.OUTSIDE] >= _TASKS:
        advice += own(recording)
    return Finding(
        rule=RULE.id,
        severity=Severity.NOTE,
        headline=(_headline_by_then if early else _headline)(most, stage, recording.wall),
        stage=None,
        evidence=_evidence(shares, stage, most),
        cost_s=most,
        saving_s=(0.0, most),
        fix=Fix(f"{_TO_THE_END} {advice}" if early else advice),
    )


def _at_most(recording: Recording, stage: Stage) -> float:
    """Seconds that could be saved in a stage: not those in which a whole program imports."""
    own = imported_s(recording, stage) if whole(recording) else 0.0
    return max(0.0, at_most(recording, stage) - own)


def _room(recording: Recording) -> str:
    """What there would have to be more of."""
    crew = Crew(recording)
    if not 0 < crew.useful < crew.threads or _computed(recording, crew) < _ALL * crew.useful:
        return "workers"
    shared = f"{count(crew.threads, 'thread')} share {count(crew.useful, 'processor')} already"
    return f"processors ({shared}, so that fewer would do as much)"


def _computed(recording: Recording, crew: Crew) -> float:
    """Processors that the crew's threads take while all of them have tasks."""
    runs = recording.timeline.runs
    took = float((runs["stop"] - runs["start"])[crew.rows].sum())
    return crew.threads * float(runs["cpu"][crew.rows].sum()) / took if took > 0 else 0.0


def _headline(most: float, stage: Stage, wall: float) -> str:
    part = most / wall if wall > 0 else 0.0
    if part > _ACQUITTED:
        amount = seconds(most)
        return f"No known cause; without {stage} the run would be at most {amount} shorter"
    costs = f"{seconds(most)} ({share(part)})"
    return f"Nothing to fix: no stage around the tasks costs more than {costs}"


def _headline_by_then(most: float, stage: Stage, wall: float) -> str:
    """No verdict: what a recording says that ended before the run did."""
    part = most / wall if wall > 0 else 0.0
    if part > _ACQUITTED:
        return f"It ended early: no known cause by then; {stage} cost at most {seconds(most)}"
    costs = f"{seconds(most)} ({share(part)})"
    return f"It ended early: no stage around the tasks cost more than {costs} by then"


def _evidence(shares: dict[str, float], stage: Stage, most: float) -> dict[str, float | int | str]:
    return {**{f"{s}_share": shares[s] for s in SIX}, "at_most_s": most, "most_in": str(stage)}


RULE = Rule(
    id="nothing-to-fix",
    stage=None,
    summary="No other rule found anything above a note.",
    find=find,
)
