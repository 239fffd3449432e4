"""Who waited for the GIL, when, and what tasks did with their time on a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns.series import Samples, Series, highest

#: Samples: the part of the time in which the GIL was taken, and how many waited for it on average.
CONTENTION: Final = "gil.contention"
WAITING: Final = "gil.waiting"
#: Prefixes that are drawn as bars.
BARS: Final = 20
#: Roles in the order in which they are offered.
ROLES: Final = ("client", "scheduler", "worker")


@dataclass(frozen=True)
class Threads:
    """What tasks did with their time, one row per prefix, most seconds first.

    Attributes:
        frame: prefix, tasks, run_s, cpu_s, gil_s (0 if unknown), other_s.
        unseen: tasks on workers that were not instrumented, of which none of this is known.
        measured: whether anything is known of waiting for the GIL.
        exact: whether all of it was seen, none of it estimated.
    """

    frame: pd.DataFrame
    unseen: int
    measured: bool
    exact: bool = False


def contention(samples: Samples) -> list[Series]:
    """Contention for the GIL, one series for each process."""
    return samples.of(CONTENTION)


def waiting(samples: Samples, shown: list[Series]) -> list[Series]:
    """How many threads waited, of the processes of some series, in their order."""
    found = {one.place: one for one in samples.of(WAITING) if one.moves}
    return [found[one.place] for one in shown if one.place in found]


def called(samples: Samples, place: int, series: list[Series]) -> str:
    """A process by the parts that it has, but for those with a series of their own."""
    others, pid = {one.place for one in series} - {place}, samples.processes[place].pid
    parts = [p for i, p in enumerate(samples.processes) if p.pid == pid and i not in others]
    return " and ".join(process.label for process in parts)


def drawn(series: list[Series]) -> list[Series]:
    """Those that are drawn: where the most contention was, of those seen more than once."""
    return highest(one for one in series if one.moves)


def by_process(samples: Samples, series: list[Series]) -> pd.DataFrame:
    """One row per process.

    Samples; least, median and most of its contention in percent; threads that waited on average
    (NaN where they were not counted).
    """
    queue = {one.place: float(one.value.mean()) for one in samples.of(WAITING)}
    rows = [
        (
            called(samples, one.place, series),
            samples.role(one.place),
            len(one.value),
            *(round(100 * float(np.quantile(one.value, q)), 1) for q in (0.0, 0.5, 1.0)),
            round(queue.get(one.place, float("nan")), 2),
        )
        for one in series
    ]
    names = ["process", "role", "samples", "least", "median", "most", "queue"]
    frame = pd.DataFrame(rows, columns=names)
    return frame.sort_values("most", ascending=False, ignore_index=True)


def threads(recording: Recording) -> Threads:
    """Seconds that tasks ran, used a processor, and waited for the GIL, as far as it is known."""
    runs, groups = recording.timeline.runs, recording.groups
    gil = None if without_gil(recording) else recording.timeline.gil.shares
    seen = np.flatnonzero(runs["seen"] == 1)
    codes, prefixes = pd.factorize(np.array([row.prefix for row in groups.rows], dtype=object))
    of = codes[groups.of_run[seen]]
    run = (runs["stop"] - runs["start"])[seen] / 1e9
    cpu = np.minimum(runs["cpu"][seen] / 1e9, run)
    wait = np.zeros(len(run)) if gil is None else np.minimum(gil[seen] * run, run - cpu)
    parts = {"tasks": np.ones(len(run)), "run_s": run, "cpu_s": cpu, "gil_s": wait}
    n = len(prefixes)
    sums = {name: np.bincount(of, weights=part, minlength=n) for name, part in parts.items()}
    frame = pd.DataFrame({"prefix": [_named(prefix) for prefix in prefixes], **sums})
    frame = frame[frame["tasks"] > 0].astype({"tasks": np.int64})
    frame["other_s"] = (frame["run_s"] - frame["cpu_s"] - frame["gil_s"]).clip(lower=0)
    frame = frame.sort_values("run_s", ascending=False, ignore_index=True)
    exact = bool(recording.timeline.gil.watched(runs["wplace"][seen]).all())
    unseen = (runs["seen"] == 0) & (runs["stop"] > runs["start"])  # else it was taken back before
    return Threads(frame, int(unseen.sum()), gil is not None, exact)


def _named(prefix: str) -> str:
    return safe(prefix) if prefix else "(no name)"


# -- sentences ------------------------------------------------------------------------------------


def of_contention(samples: Samples, series: list[Series]) -> str:
    """What the picture of the contention shows, in a sentence."""
    worst = max(series, key=lambda one: one.peak)
    who = called(samples, worst.place, series)
    who = who if samples.role(worst.place) == "worker" else f"the {who}"
    middle = float(np.median(worst.value))
    shown = len(drawn(series))
    left = len(series) - shown if shown else 0
    more = f" Of {count(left, 'more line')} the table has the numbers." if left else ""
    return (
        f"It was taken most in {who}: {share(worst.peak)} at its highest, "
        f"{share(middle)} in the median.{more}{_shared(samples, series)}"
    )


def _shared(samples: Samples, series: list[Series]) -> str:
    """That the scheduler has no GIL of its own, where it has none."""
    pids = {samples.role(one.place): samples.processes[one.place].pid for one in series}
    if "client" not in pids or pids["client"] != pids.get("scheduler"):
        return ""
    return " Client and scheduler are threads of one process here, and share its GIL."


def of_threads(found: Threads) -> str:
    """What the bars show, in a sentence."""
    run, cpu, gil = (float(found.frame[name].sum()) for name in ("run_s", "cpu_s", "gil_s"))
    parts = [f"Tasks ran for {seconds(run)} on their threads; {seconds(cpu)} of it on a processor"]
    if found.measured:
        parts.append(f"; they waited {'' if found.exact else 'about '}{seconds(gil)} for the GIL")
    else:
        parts.append("; waiting for the GIL was not measured")
    left = len(found.frame) - BARS
    parts.append(f". Drawn are {BARS} of {len(found.frame):,} prefixes" if left > 0 else "")
    unseen = found.unseen
    parts.append(f". Of {count(unseen, 'more task')} no worker told" if unseen else "")
    return "".join(parts) + "."
