"""A few tasks that take many times as long as others of their kind, while threads wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.idleness import Idleness
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.skew import Skew, Skews
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = frozenset({STEP["compute"]})

#: More parts of each partition cost more than they level.
_PARTS: Final = 20
#: What Dask takes for a task, seconds, and how much of what is saved all parts may take: every
#: partition is cut, and each part goes through all that follows.
_TASK_S: Final = 0.001
_OF_SAVED: Final = 0.5
#: So many of the longest runs do not come to the share that matters: they are all short.
_MANY: Final = 20

_SKEW: Final = (
    "Split the work of the longest tasks: cut what they are made of into parts of about the same "
    "size, one task for each part. For a data frame, cut the partitions that take so long further "
    "before the call, or what they are read from; for an array, cut its chunks so that each has as "
    "much to do; for a groupby or a merge, split the few keys that have most rows (or treat them "
    "apart). If the work cannot be split, hand over the longest tasks first."
)
_WORKER: Final = (
    "Look at this worker before you change your program: another program on its host, fewer or "
    "slower CPUs, a full disk, swapping. Retire it (the code below) or use a host like the others."
)
#: Not by `partition_size`: Dask would make all partitions once more to know their sizes, and waits
#: for itself for ever on a `LocalCluster` before Python 3.12.
_FRAME: Final = """\
# before what takes so long; each partition is cut into {parts}; of known divisions one stays whole
# whose index is one value
ddf = ddf.repartition(npartitions={parts} * ddf.npartitions)"""
_CALLS: Final = """\
import dask

def parts_of(items, size={size}):
    return [items[i : i + size] for i in range(0, len(items), size)]

# {name}: the plain function; items: what one task worked on
tasks = [dask.delayed({name})(part) for items in groups for part in parts_of(items)]
results = dask.compute(*tasks)"""
_RETIRE: Final = """\
from distributed import Client

client = Client.current()
client.retire_workers(workers=["{worker}"])"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each kind of task with stragglers that were waited for, one for a slow worker."""
    runs = recording.timeline.runs
    if len(runs["run"]) < limits["tasks"]:
        return
    longest = int((runs["stop"] - runs["start"]).max()) / 1e9
    least = limits["share"] * recording.wall
    if longest * _MANY < least:
        return
    skews = Skews(recording, limits["times"], limits["tasks"], limits["worker_times"])
    told: set[str] = set()
    idleness = Idleness(recording)
    for skew in sorted(skews.all, key=lambda s: -s.longest_s):
        alone = _alone(recording, idleness, skew)
        if alone < least or skew.cause in told:  # many kinds are: the account is not gone through
            continue
        cost = min(alone, cost_of(recording, steps=_COMPUTE, runs=skew.slow.tolist()))
        if cost >= least:
            told.add(skew.cause)
            low, high = recording.replay.saving(_levelled(recording, skews, skew))
            saved = min(low, cost), min(high, cost)
            if saved[1] >= least:
                yield _finding(recording, skew, cost, saved)


def _finding(recording: Recording, skew: Skew, cost: float, saved: tuple[float, float]) -> Finding:
    row = skew.row
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=_headline(recording, skew, cost),
        stage=Stage.EXECUTION,
        evidence={
            "tasks": len(skew.runs),
            "stragglers": len(skew.slow),
            "longest_s": skew.longest_s,
            "median_s": skew.median_s,
            "times": skew.longest_s / skew.median_s,
            "why": "slow worker" if skew.worker else "more work",
            "worker": skew.worker,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, skew, saved[1]),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=skew.cause,
    )


def _headline(recording: Recording, skew: Skew, cost: float) -> str:
    row, of = skew.row, of_wall(cost, recording)
    if skew.worker:
        return (
            f"Worker {skew.worker} is {skew.slower:.1f} times slower than the others at "
            f"`{row.prefix}`{made_at(row.file, row.line)}; its tasks are waited for {of}"
        )
    number = count(len(skew.slow), "task")
    take = "takes" if len(skew.slow) == 1 else "take"
    return (
        f"{number} of {len(skew.runs):,} of `{row.prefix}`{made_at(row.file, row.line)} {take} up "
        f"to {seconds(skew.longest_s)}, the usual one {seconds(skew.median_s)}: {of}"
    )


def _alone(recording: Recording, idleness: Idleness, skew: Skew) -> float:
    """Seconds that the stragglers worked while threads lacked tasks; of a worker, all of them."""
    if skew.worker:
        return recording.wall
    return float(idleness.alone_ns[skew.slow].sum()) / 1e9


def _levelled(recording: Recording, skews: Skews, skew: Skew) -> Change:
    """The same work in tasks of the same length; on a slow worker, at the others' speed."""
    left = np.ones(len(recording.timeline.runs["run"]))
    if skew.worker:
        names = recording.store.strings
        worker = recording.timeline.runs["worker"]
        mine = [w for w in np.unique(worker).tolist() if names[w] == skew.worker]
        left[np.isin(worker, mine)] = 1 / skew.slower
        return Change(compute=left)
    took = np.maximum(skews.took[skew.runs], 1e-9)
    left[skew.runs] = float(took.mean()) / took
    return Change(compute=left, workers=max(1, len(Crew(recording).fullest)))


def _fix(recording: Recording, skew: Skew, saved_s: float) -> Fix:
    if skew.worker:
        safe = skew.worker if _address(skew.worker) else "tcp://..."
        return Fix(_WORKER, _RETIRE.format(worker=safe))
    times = skew.longest_s / skew.median_s
    if not recording.layered.chunked[skew.slow[0]]:
        return Fix(_SKEW, _CALLS.format(name=word(skew.row.prefix, "work"), size=_size(times)))
    kind = recording.store.strings[int(recording.timeline.runs["type"][skew.slow[0]])].lower()
    parts = min(_PARTS, round(times))
    few = parts * len(skew.runs) * _TASK_S <= _OF_SAVED * saved_s
    framed = "dataframe" in kind or "series" in kind
    return Fix(_SKEW, _FRAME.format(parts=parts) if framed and few else "")


def _size(times: float) -> int:
    """A round number of items a part; how many there are is not known."""
    return 10 if times < 10 else 100


def _address(text: str) -> bool:
    """Whether a text can stand in printed code as an address."""
    return text.isascii() and all(c.isalnum() or c in ":/.-_[]" for c in text)


RULE = Rule(
    id="stragglers",
    stage=Stage.EXECUTION,
    summary="Few tasks take many times as long as others of their kind, and are waited for.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "times": Limit(3, "times the median of their kind: up to twice is usual"),
        "tasks": Limit(4, "of a kind: of fewer, a median says nothing"),
        "worker_times": Limit(2, "slower than others: less comes from neighbours on the host"),
        "share": Limit(0.02, "of the wall time, in cost and saving: less is not worth a change"),
    },
)
