"""Who waited for the GIL, when, and what tasks did with their time on a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from stageprof_collectors.quantity import count, seconds, share
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns.series import Samples, Series, highest

#: The sample: which part of the time somebody who asked for the GIL had to wait.
CONTENTION: Final = "gil.contention"
#: Prefixes that are drawn as bars.
BARS: Final = 20
#: Roles in the order in which they are offered.
ROLES: Final = ("client", "scheduler", "worker")


@dataclass(frozen=True)
class Threads:
    """What tasks did with their time, one row per prefix, most seconds first.

    Attributes:
        frame: prefix, tasks, run_s, cpu_s, gil_s (estimated; 0 if unknown), other_s.
        unseen: tasks on workers that were not instrumented, of which none of this is known.
        measured: whether contention for the GIL was.
    """

    frame: pd.DataFrame
    unseen: int
    measured: bool


def contention(samples: Samples) -> list[Series]:
    """Contention for the GIL, one series for each process."""
    return samples.of(CONTENTION)


def drawn(series: list[Series]) -> list[Series]:
    """Those that are drawn: where the most contention was, of those seen more than once."""
    return highest(one for one in series if one.moves)


def by_process(samples: Samples, series: list[Series]) -> pd.DataFrame:
    """One row per process: samples, and least, median and most of its contention in percent."""
    rows = [
        (
            samples.label(one.place),
            samples.role(one.place),
            len(one.value),
            *(100 * float(np.quantile(one.value, q)) for q in (0.0, 0.5, 1.0)),
        )
        for one in series
    ]
    frame = pd.DataFrame(rows, columns=["process", "role", "samples", "least", "median", "most"])
    return frame.sort_values("most", ascending=False, ignore_index=True).round(1)


def threads(recording: Recording) -> Threads:
    """Seconds that tasks ran, used a processor, and are estimated to have waited for the GIL."""
    runs, groups = recording.timeline.runs, recording.groups
    gil = recording.timeline.gil.shares
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
    return Threads(frame, len(runs["seen"]) - len(seen), gil is not None)


def _named(prefix: str) -> str:
    return safe(prefix) if prefix else "(no name)"


# -- sentences ------------------------------------------------------------------------------------


def of_contention(samples: Samples, series: list[Series]) -> str:
    """What the picture of the contention shows, in a sentence."""
    worst = max(series, key=lambda one: one.peak)
    who = samples.label(worst.place)
    who = who if samples.role(worst.place) == "worker" else f"the {who}"
    middle = float(np.median(worst.value))
    left = len(series) - len(drawn(series))
    more = f" Of {count(left, 'more line')} the table has the numbers." if left else ""
    return (
        f"Most of it was seen in {who}: {share(worst.peak)} at its highest, "
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
        parts.append(f"; they waited about {seconds(gil)} for the GIL")
    else:
        parts.append("; waiting for the GIL was not measured")
    left = len(found.frame) - BARS
    parts.append(f". Drawn are {BARS} of {len(found.frame):,} prefixes" if left > 0 else "")
    unseen = found.unseen
    parts.append(f". Of {count(unseen, 'more task')} no worker told" if unseen else "")
    return "".join(parts) + "."
