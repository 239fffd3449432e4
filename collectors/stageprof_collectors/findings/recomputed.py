"""Work that was done more than once, or in vain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

from stageprof_collectors.account.cut_off import took

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


#: How a run ends without a result that stays.
_IN_VAIN: Final = ("lost", "erred", "released")


def recomputed(recording: Recording) -> pd.DataFrame:
    """See `Recording.recomputed`. One row per key that was run more than once.

    `seconds` is all but the last run that ended well, at most where its worker went and told
    nothing of it; reason is "lost" (its worker went), "retried" (it failed), "taken back" (while it
    ran, as when it is cancelled) or "computed again" (it had been made before).
    """
    tasks = recording.tasks().assign(took=took(recording.timeline))
    # Taken back before it ran, or lost in a worker's queue: nothing was done.
    tasks = tasks[(tasks["took"] > 0) | ((tasks["took"] == 0) & (tasks["status"] != "released"))]
    again = tasks[tasks.duplicated("key", keep=False) | tasks["status"].isin(_IN_VAIN)]
    rows = []
    for key, runs in again.groupby("key", sort=False):
        good = runs[runs["status"] == "memory"]
        kept = good.index[-1:] if len(good) else runs.index[:0]
        wasted = runs.drop(kept)
        if len(wasted):
            reason = _reason(set(wasted["status"]))
            seconds = float(wasted["took"].sum()) / 1e9
            rows.append([key, runs["layer"].iloc[0], len(runs), seconds, reason])
    return pd.DataFrame(rows, columns=["key", "layer", "runs", "seconds", "reason"])


def _reason(statuses: set[str]) -> str:
    if "lost" in statuses:
        return "lost"
    if "erred" in statuses:
        return "retried"
    return "taken back" if "released" in statuses else "computed again"
