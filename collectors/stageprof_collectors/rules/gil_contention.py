"""Tasks of one worker that wait for one another's GIL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Looks
from stageprof_collectors.replay.apart import Processes, apart, freed, processes
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.stack import LIBRARY
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Of the waiting in threads, separate processes take away this much at least; where nobody watched,
#: some of what looks like waiting for the GIL is waiting for a processor, a disk or the network.
SEEN: Final = 0.9
LEAST: Final = 0.7
_COMPUTE: Final = frozenset({STEP["compute"]})

_TEXT: Final = (
    "Python runs one thread of a process at a time: while `{holder}`{at} computes, the other "
    "threads of its worker wait. Processes do not wait for one another. Start the cluster with "
    "{layout} (the code below, in place of your own cluster; {cpus} here). "
    "Or change that line, so that a library that gives the GIL up (NumPy, pandas, PyArrow) does "
    "its work."
)
_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads}, processes=True)
client = Client(cluster)
# on other clusters: dask worker {address} --nworkers {workers} --nthreads {threads}"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all workers: their threads are set in one place."""
    timeline = recording.timeline
    shares = timeline.gil.shares
    if shares is None:
        return
    waited = np.where(_beside_others(timeline.runs), shares, 0.0)
    length = (timeline.runs["stop"] - timeline.runs["start"]) / 1e9
    if float((waited * length).sum()) < limits["seconds"]:
        return
    layout = processes(recording, waited)
    most = freed(recording, waited * layout.gone)
    cost = _on_path(recording, waited)
    if layout.gone > 0 and cost >= limits["share"] * recording.wall:
        yield _finding(recording, waited, most, cost, layout)


def _beside_others(runs: dict[str, Ints]) -> NDArray[np.bool_]:
    """Whether other runs were going on in the same worker process for some of a run's time."""
    beside = np.zeros(len(runs["run"]), np.bool_)
    cluster = (runs["run"] < LOCAL) & (runs["seen"] == 1)
    at = Rows(np.where(cluster, runs["wplace"], -1))
    for place in at.numbers:
        mine = at.of(place)
        threads = np.unique(runs["thread"][mine])
        if len(threads) > 1:
            start, stop = runs["start"][mine], runs["stop"][mine]
            begun = np.searchsorted(np.sort(start), stop, side="left")
            beside[mine] = begun - np.searchsorted(np.sort(stop), start, side="right") > 1
    return beside


def _on_path(recording: Recording, waited: Floats) -> float:
    """Seconds of waiting for the GIL that are in the blocking account."""
    steps = [s for s in recording.path_steps if s.run >= 0 and s.what.step in _COMPUTE]
    return sum((s.stop - s.start) * float(waited[s.run]) for s in steps) / 1e9


def _finding(
    recording: Recording, waited: Floats, most: Floats, cost: float, layout: Processes
) -> Finding:
    replay = recording.replay
    seen = recording.timeline.gil.seen
    low = replay.saving(apart(recording, np.where(seen, SEEN, LEAST) * most, LEAST))[0]
    high = replay.saving(apart(recording, most))[1]
    saved = min(low, high), high
    length = (recording.timeline.runs["stop"] - recording.timeline.runs["start"]) / 1e9
    prefix = _waiting(recording, waited * length)
    holder = _holder(recording, prefix)
    workers = recording.workers()
    threads, cpus = int(workers["threads"].max()), int(workers["cpus"].max())
    name = holder.function if holder else prefix
    where = made_at(holder.file, holder.line) if holder else ""
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(threads, 'thread')} of a worker wait for one another's GIL, most in "
            f"`{prefix}`, held by `{name}`{where}: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "waited_s": float((waited * length).sum()),
            "threads": threads,
            "processors": cpus,
            "waiting": prefix,
            "holder": name,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(holder=name, at=where, layout=layout, cpus=count(cpus, "processor")),
            _CODE.format(
                workers=layout.number, threads=layout.threads, address="tcp://scheduler:8786"
            ),
        ),
        where=Where(holder.file if holder else "", holder.line if holder else 0, "", "", prefix),
        cause="gil",  # not its holder's line: a new layout is cheap, whatever becomes of that
    )


class Holder(NamedTuple):
    """The line that others waited for most: where it is, and of which prefix's tasks."""

    function: str
    file: str
    line: int


def _waiting(recording: Recording, waited_s: Floats) -> str:
    """The prefix whose tasks waited most."""
    prefixes = recording.prefixes
    total: dict[str, float] = {}
    for prefix, waiting in zip(prefixes.tolist(), waited_s.tolist(), strict=True):
        total[prefix] = total.get(prefix, 0.0) + waiting
    return max(total, key=lambda p: total[p])


def _holder(recording: Recording, prefix: str) -> Holder | None:
    """What held the GIL while others waited; where nobody watched, what was seen in `prefix`."""
    frame = recording.gil()
    frame = frame[(frame["prefix"] != "") & (frame["file"] != "") & (frame["caused_s"] > 0)]
    if len(frame):
        lines = frame.groupby(["function", "file", "line"], sort=False)["caused_s"].sum()
        function, file, line = lines.index[int(lines.to_numpy().argmax())]
        return Holder(str(function), str(file), int(line))
    looks = [look for look in Looks(recording).all if look.prefix == prefix and look.file]
    holding = [look for look in looks if look.how != LIBRARY] or looks
    most = max(holding, key=lambda look: look.seconds, default=None)
    return Holder(most.function, most.file, most.line) if most else None


RULE = Rule(
    id="gil-contention",
    stage=Stage.EXECUTION,
    summary="Threads of a worker wait for one another's GIL.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "seconds": Limit(0.2, "waiting of all tasks together; less is within the measurement"),
        "share": Limit(0.02, "of the wall time on the critical path: less is not worth a restart"),
    },
)
