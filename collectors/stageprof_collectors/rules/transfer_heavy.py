"""Results that travel between workers, and tasks that wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings.blockage import blocked
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.relief import Covered
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.tables.traffic import Lane, Stream, Traffic
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Results that are used more often than this on other workers would be made several times.
ONCE: Final = 1.5

_FUSED: Final = (
    "Make the data in the task that uses them (the code below; call it in place of both, with the "
    "arguments of the first, and leave out what ties either to certain workers: `workers=`, "
    "resources). Then only the small result travels. {again}"
)
_AGAIN: Final = (
    "Each result is used about {uses:.0f} times; making it anew each time takes {each}, which is "
    "less than waiting for it."
)
_PLACED: Final = (
    "Have what belongs together in one place: bring the data into the pieces that the next steps "
    "need once (`rechunk`, `repartition`, `shuffle`), and keep them so with `persist`; where one "
    "side is small, hand it whole to each task (`broadcast=True` in a merge) instead of moving the "
    "large one; leave out `workers=` and resources that tie tasks to workers without need."
)
_CODE: Final = """\
def {used}_of_{made}(*args, **kwargs):  # the plain functions, not delayed ones
    return {used}({made}(*args, **kwargs))"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding, for the layers between which most of the time goes."""
    wall = recording.wall
    if _waited_s(recording) < limits["share"] * wall:
        return
    traffic = Traffic(recording)
    gone = Change(fetch=_stalled(recording))
    cost = toll(recording, gone) if traffic else 0.0
    if cost < limits["share"] * wall:
        return
    runs = recording.timeline.runs
    stream = traffic.main
    if stream is not None:
        yield _finding(recording, traffic, stream, cost, (runs["stop"] - runs["start"]) / 1e9)


def _waited_s(recording: Recording) -> float:
    """Seconds that tasks waited, before they ran, for what others had made, in sum."""
    runs = recording.timeline.runs
    known = (runs["run"] < LOCAL) & (runs["seen"] == 1)
    return float((runs["ready"] - runs["received"])[known].sum()) / 1e9


def _stalled(recording: Recording) -> Floats:
    """What stays of each run's fetching: loops that could not answer are told of elsewhere."""
    runs = recording.timeline.runs
    held = Covered(span for spans in blocked(recording).values() for span in spans)
    whole = np.maximum(runs["ready"] - runs["received"], 1)
    found: Floats = np.clip(held.of(runs["received"], runs["ready"]) / whole, 0.0, 1.0)
    return found


def _finding(
    recording: Recording, traffic: Traffic, stream: Stream, cost: float, length: Floats
) -> Finding:
    fused = _fused(recording, stream, length)
    saved = _saved(recording, stream, fused)
    if not saved[1]:
        gone = Change(fetch=_stalled(recording))
        fused, saved = None, (0.0, recording.replay.saving(gone)[1])
    made, used = stream.made, stream.used
    near = sum(lane.nbytes for lane in traffic.lanes if lane.same_host)
    total = sum(lane.nbytes for lane in traffic.lanes)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(stream.results, 'result')} of {_named(made)} ({size(stream.nbytes)}) "
            f"{'travels' if stream.results == 1 else 'travel'} to other workers for "
            f"{_named(used)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "results": stream.results,
            "stream_bytes": stream.nbytes,
            "all_bytes": total,
            "same_host_bytes": near,
            "other_host_bytes": total - near,
            "waited_s": _waited_s(recording),
            **_matrix(traffic.lanes),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(stream, length, together=fused is not None),
        where=Where(used.file, used.line, "", used.layer, used.prefix),
        cause=stream.cause,
    )


def _named(row: Row) -> str:
    return f"`{row.prefix}`{made_at(row.file, row.line, ' (')}" + (")" if row.file else "")


def _matrix(lanes: list[Lane]) -> dict[str, float | int | str]:
    """Who sent how many bytes to whom, of the heaviest."""
    return {f"{lane.sender} to {lane.receiver}_bytes": lane.nbytes for lane in lanes[:6]}


def _fused(recording: Recording, stream: Stream, length: Floats) -> Change | None:
    """Each user makes what it needs itself; None where others need it as well."""
    needs, n = recording.timeline.depends, len(length)
    made, used = (np.zeros(n, np.bool_) for _ in range(2))
    made[_alike(recording, stream.makers)] = True
    used[_alike(recording, stream.users)] = True
    user = needs.user
    mine = made[needs.on]
    if _uses(stream) > ONCE and np.diff(needs.first)[made].any():
        return None  # what they are made of would travel to each user as well
    if not used[user[mine]].all() or np.median(np.bincount(user[mine])[user[mine]]) > 1:
        return None  # others need them, too, or one task needs many: making those there is no gain
    more = np.bincount(user[mine], weights=length[needs.on[mine]], minlength=n)
    gone = np.where(made, 0.0, 1.0)
    compute = gone * (length + more) / np.maximum(length, 1e-9)
    fetch = np.where(more > 0, _stalled(recording), 1.0)
    return Change(compute=compute, lead=gone, lag=gone, begin=gone, fetch=fetch)


def _saved(recording: Recording, stream: Stream, fused: Change | None) -> tuple[float, float]:
    """Seconds that making data where they are used saves.

    Data that are used once are made as often as before: without their travelling, tasks may stay
    where they were (at least), or go where there is room.
    """
    if fused is None:
        return 0.0, 0.0
    low, high = recording.replay.saving(fused)
    if _uses(stream) > ONCE or not high:
        return low, high
    stays = recording.replay.saving(Change(fetch=fused.fetch))
    return stays[0], max(stays[1], high)


def _uses(stream: Stream) -> float:
    return len(stream.users) / max(len(stream.makers), 1)


def _alike(recording: Recording, rows: Ints) -> Ints:
    """All runs of the prefixes of some, whether their results travelled or not."""
    _, kind = recording.layered.kinds()
    found: Ints = np.flatnonzero(np.isin(kind, kind[rows]))
    return found


def _fix(stream: Stream, length: Floats, *, together: bool) -> Fix:
    if not together:
        return Fix(_PLACED)
    uses = _uses(stream)
    each = seconds(float(np.median(length[stream.makers])))
    again = _AGAIN.format(uses=uses, each=each) if uses > ONCE else ""
    made, used = word(stream.made.prefix, "make"), word(stream.used.prefix, "use")
    return Fix(_FUSED.format(again=again).strip(), _CODE.format(made=made, used=used))


RULE = Rule(
    id="transfer-heavy",
    stage=Stage.COMMUNICATION,
    summary="Tasks wait for results that travel between workers.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.10, "of the wall time on the critical path: some travelling is needed"),
    },
)
