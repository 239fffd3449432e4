"""The table of tasks: one row per run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from dask.utils import key_split
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import Ints
from stageprof_collectors.storage.layered import layer_of as layer_of
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def tasks(recording: Recording) -> pd.DataFrame:
    """See `Recording.tasks`."""
    store, timeline = recording.store, recording.timeline
    runs, origin = timeline.runs, timeline.region.start
    keys = store.keys(runs["key"])
    layer, prefix = names(keys)
    gil = timeline.gil
    share, had, seen = gil.shares, gil.runs, gil.seen
    words = np.array(store.strings, dtype=object)
    frame = {
        "key": keys,
        "prefix": prefix,
        "layer": layer,
        "worker": words[runs["worker"]] if len(keys) else [],
        "thread": runs["thread"],
        "assigned_s": (runs["assigned"] - origin) / 1e9,
        "start_s": (runs["start"] - origin) / 1e9,
        "stop_s": (runs["stop"] - origin) / 1e9,
        "duration_s": (runs["stop"] - runs["start"]) / 1e9,
        "nbytes": runs["nbytes"],
        "cpu_s": runs["cpu"] / 1e9,
        "gil_share": np.full(len(keys), np.nan) if share is None else share,
        "gil_hold_s": np.where(seen, had.held / 1e9, np.nan),
        "gil_wait_s": np.where(seen, had.waited / 1e9, np.nan),
        "status": _statuses(runs["status"]),
        "run": runs["run"],
    }
    return pd.DataFrame(frame)


def _statuses(codes: Ints) -> NDArray[np.object_]:
    """How runs ended, in words; -1 is one that has not."""
    known = np.where((codes >= -1) & (codes < len(STATUS)), codes, STATUS.index("other"))
    return np.array([*STATUS, "running"], dtype=object)[known]


def names(keys: list[str]) -> tuple[list[str], list[str]]:
    """Layer and prefix of each key, in Dask's sense: ("x-1a2b", 0, 1) is of layer x-1a2b."""
    layer = [layer_of(key) for key in keys]
    prefixes = {name: key_split(name) for name in set(layer)}
    return layer, [prefixes[name] for name in layer]
