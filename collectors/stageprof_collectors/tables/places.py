"""The tables of places: what each did, samples over time, and workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.account import INCLUDED, role_of
from stageprof_collectors.account.attempts import worked
from stageprof_collectors.account.timeline import Timeline, present
from stageprof_collectors.tables.fact import usable
from stageprof_collectors.tables.path import place_name
from stageprof_collectors.text import number
from stageprof_runtime.event import STATUS
from stageprof_runtime.stage import SIX, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_RELEASED = STATUS.index("released")
_SECONDS: Final = ["wall_s", "busy_s", *(f"{stage}_s" for stage in SIX), "waited_s"]
_SUMS: Final = [*_SECONDS, *(f"{stage}_s" for stage in Stage if stage not in SIX)]


def places(recording: Recording) -> pd.DataFrame:
    """See `Recording.places`."""
    known, rows = recording.store.places, dict[int, dict[str, int]]()
    for (step, place), entry in recording.entries.items():
        row = rows.setdefault(place, dict.fromkeys(_SUMS, 0))
        row["wall_s"] += entry.wall
        row["waited_s"] += entry.waited
        if step != INCLUDED:
            row["busy_s"] += entry.busy
            row[f"{stage_of(step)}_s"] += entry.busy
    roles = [place.role for place in known]
    told = [
        {
            "place": place_name(recording.store, i),
            "role": role_of(i, roles),
            "host": known[i].host if i >= 0 else "",
            "pid": known[i].pid if i >= 0 else 0,
            **{column: row[column] / 1e9 for column in _SECONDS},
        }
        for i, row in rows.items()
        if any(row.values())
    ]
    frame = pd.DataFrame(told, columns=["place", "role", "host", "pid", *_SECONDS])
    return frame.sort_values(["wall_s", "busy_s"], ascending=False, ignore_index=True)


def samples(recording: Recording) -> pd.DataFrame:
    """See `Recording.samples`."""
    table = recording.timeline.read("sample", "t")
    store, origin = recording.store, recording.timeline.region.start
    words = np.array(store.strings, dtype=object)
    roles = np.array([place.role for place in store.places] or [""], dtype=object)
    names = np.array([place.name for place in store.places] or [""], dtype=object)
    frame = pd.DataFrame(
        {
            "t_s": (table["t"] - origin) / 1e9,
            "role": roles[table["place"]],
            "place": names[table["place"]],
            "name": words[table["name"]],
            "value": table["value"],
        }
    )
    facts = frame["name"].str.startswith("worker.")
    return frame[~facts].sort_values("t_s", ignore_index=True)


def workers(recording: Recording) -> pd.DataFrame:
    """See `Recording.workers`."""
    store, timeline = recording.store, recording.timeline
    known = _seen(timeline)
    instrumented = {p.name: i for i, p in enumerate(store.places) if p.role == "worker"}
    for name in instrumented:
        known.setdefault(name, {"threads": 0, "memory_limit": 0, "name": ""})
    reasons = dict(label.partition(" ")[::2] for _, _, label in timeline.marks("not instrumented"))
    left = _left(timeline)
    rows, work, cpus = [], _work(recording), usable(store)
    for address, facts in known.items():
        reason = reasons.get(address) or ("" if address in instrumented else "sent nothing")
        row = {"worker": address, **facts, "instrumented": not reason, "reason": reason}
        row["left"] = address in left
        row["tasks"], row["busy_s"] = work.get(address, (0, 0.0))
        rows.append(row | _place_facts(timeline, instrumented.get(address, -1), cpus))
    return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    "worker", "name", "host", "pid", "threads", "cpus", "memory_limit", "instrumented", "reason",
    "left", "tasks", "busy_s", "batches_lost", "offset_s", "offset_error_s",
]  # fmt: skip


_UNTOLD: Final = {
    "host": "", "pid": 0, "cpus": 0, "batches_lost": 0,
    "offset_s": float("nan"), "offset_error_s": float("nan"),
}  # fmt: skip


def _seen(timeline: Timeline) -> dict[str, dict[str, Any]]:
    """Workers as the scheduler knew them: address -> threads, memory limit, name."""
    found: dict[str, dict[str, Any]] = {}
    for _, _, label in timeline.marks("worker seen"):
        address, threads, limit, name = [*label.split(" ", 3), "", "", ""][:4]
        facts = {"threads": number(threads), "memory_limit": number(limit)}
        if min(facts.values()) >= 0:
            found[address] = {**facts, "name": name}
    return found


def _left(timeline: Timeline) -> set[str]:
    """Workers that went and did not come back, to the same address."""
    changes = [(t, label, True) for t, _, label in timeline.marks("worker left")]
    seen = timeline.marks("worker seen")
    changes += [(t, label.partition(" ")[0], False) for t, _, label in seen]
    last = {label: gone for _, label, gone in sorted(changes)}
    return {label for label, gone in last.items() if gone}


def _work(recording: Recording) -> dict[str, tuple[int, float]]:
    """How many tasks ran at each worker that was given some, and their seconds."""
    runs, words = recording.timeline.runs, recording.store.strings
    # What was taken back from a worker that has not told of it never ran there.
    ran = (runs["seen"] > 0) | (runs["status"] != _RELEASED)
    tasks = np.bincount(runs["worker"][ran], minlength=len(words))
    took = np.where(worked(runs), runs["stop"] - runs["start"], 0)
    busy = np.bincount(runs["worker"], took, len(words)) / 1e9
    given = present(runs["worker"])
    return {words[i]: (int(tasks[i]), float(busy[i])) for i in given}


def _place_facts(timeline: Timeline, index: int, cpus: dict[int, float]) -> dict[str, Any]:
    """What is known of a worker that told of itself; of another nothing."""
    if index < 0:
        return dict(_UNTOLD)
    store = timeline.store
    place, clock = store.places[index], timeline.clocks[index]
    return {
        "host": place.host,
        "pid": place.pid,
        "cpus": int(cpus.get(index, 0)),
        "batches_lost": store.origins[index].lost,
        "offset_s": clock.offset / 1e9,
        "offset_error_s": clock.error / 1e9 if clock.error >= 0 else float("nan"),
    }
