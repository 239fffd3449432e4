"""The critical path as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from stageprof_collectors.storage.store import Store
from stageprof_runtime.stage import stage_of, step_name

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def path(recording: Recording) -> pd.DataFrame:
    """See `Recording.critical_path`."""
    origin = recording.timeline.region.start
    store, runs = recording.store, recording.timeline.runs
    with_run = sorted({s.run for s in recording.path_steps if s.run >= 0})
    keys = dict(zip(with_run, store.keys(runs["key"][with_run]), strict=True)) if with_run else {}
    rows = [
        {
            "start_s": (s.start - origin) / 1e9,
            "stop_s": (s.stop - origin) / 1e9,
            "seconds": (s.stop - s.start) / 1e9,
            "stage": str(stage_of(s.what.step)),
            "step": step_name(s.what.step),
            "place": place_name(store, s.what.place),
            "key": keys.get(s.run, ""),
        }
        for s in recording.path_steps
    ]
    columns = ["start_s", "stop_s", "seconds", "stage", "step", "place", "key"]
    return pd.DataFrame(rows, columns=columns)


def place_name(store: Store, index: int) -> str:
    """`client`, `scheduler`, or the address of a worker; "" for a place that is not known."""
    if not 0 <= index < len(store.places):
        return ""
    place = store.places[index]
    return place.name if place.role == "worker" else place.role
