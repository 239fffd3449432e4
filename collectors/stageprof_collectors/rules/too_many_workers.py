"""Workers that could go: the run would take the same time without them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Severity
from stageprof_collectors.findings.idleness import Idleness
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Ask for {fewer} instead of {now}: by the replay of this run it takes the same time, and the "
    "others are free for somebody else (or not paid for). Data that fill the memory of more "
    "workers, and runs with more data, need more; an adaptive cluster finds out by itself."
)
_CODE: Final = """\
from distributed import Client

cluster = Client.current().cluster  # or what you made, if the client has only an address
cluster.scale({fewer})  # or at most so many as needed: cluster.adapt(minimum=1, maximum={now})"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One, with the least number of workers that takes about the same time."""
    idleness = Idleness(recording)
    workers = len(idleness.crew.fullest)
    if workers < limits["workers"] or not idleness or idleness.share < limits["idle"]:
        return
    most = recording.wall * (1 + limits["slower"])
    fewer = _fewest(recording, workers, most, _by_memory(recording, workers))
    if fewer <= (1 - limits["spare"]) * workers:
        yield _finding(recording, idleness, fewer)


def _fewest(recording: Recording, workers: int, most: float, least: int) -> int:
    """The least number of workers with which the run takes no longer than `most` seconds."""
    low, high = max(1, least), workers
    while low < high:
        middle = (low + high) // 2
        if recording.replay.wall(Change(workers=middle))[1] <= most:
            high = middle
        else:
            low = middle + 1
    return high


def _by_memory(recording: Recording, workers: int) -> int:
    """As many as hold what all together held, each below Dask's own threshold for spilling."""
    memory = recording.memory
    limits = [limit.limit * (limit.target or 0.6) for limit in memory.limits.values()]
    table = recording.samples()
    held = table[(table["name"] == "memory.managed") & (table["role"] == "worker")]
    together = float(held.groupby("place")["value"].max().sum())
    if not limits or min(limits) <= 0:
        return 1
    return min(workers, max(1, math.ceil(together / min(limits))))


def _finding(recording: Recording, idleness: Idleness, fewer: int) -> Finding:
    change = Change(workers=fewer)
    workers, wall = len(idleness.crew.fullest), recording.replay.wall(change)
    return Finding(
        rule=RULE.id,
        severity=Severity.NOTE,  # it saves workers, no time
        headline=(
            f"{count(fewer, 'worker')} would have been enough instead of {workers:,}: threads "
            f"were idle for {share(idleness.share)} of the time, and the run would take "
            f"{seconds(wall[1])} instead of {seconds(recording.wall)} at most"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "workers": workers,
            "workers_enough": fewer,
            "idle_share": idleness.share,
            "wall_then_s": wall[1],
        },
        cost_s=0.0,
        saving_s=recording.replay.saving(change),
        fix=Fix(
            _TEXT.format(fewer=count(fewer, "worker"), now=workers),
            _CODE.format(fewer=fewer, now=workers),
        ),
        cause="too many workers",
    )


RULE = Rule(
    id="too-many-workers",
    stage=Stage.EXECUTION,
    summary="The run would take the same time with far fewer workers.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "workers": Limit(3, "of one or two there is hardly one to spare"),
        "idle": Limit(0.4, "of the threads' time: with less, the work fills them well"),
        "slower": Limit(0.05, "that the run may take longer: a run varies by as much"),
        "spare": Limit(0.5, "of the workers that could go: fewer are a reserve"),
    },
)
