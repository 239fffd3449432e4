"""Everything before the first task: by graph, by line, by step with its bytes, by object."""

from __future__ import annotations

import ntpath
from typing import Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEP, Stage
from stageprof_ui.columns.treemap import squarified

#: The stages that a graph goes through before its tasks run.
BEFORE: Final = (
    Stage.CONSTRUCTION,
    Stage.OPTIMIZATION,
    Stage.SERIALIZATION,
    Stage.COMMUNICATION,
    Stage.SCHEDULING,
)
#: Steps of the way of a graph, in the order in which it takes them, and what happens there.
STEPS: Final = {
    "build": "your calls make collections and expressions",
    "tokenize": "inputs are hashed, to name the tasks",
    "meta": "functions are tried on empty data, for the type of their result",
    "import": "modules are imported for the first time",
    "expr": "expressions are simplified, lowered and fused",
    "graph.dump": "the graph becomes bytes, and all data in it",
    "compress": "the bytes are compressed",
    "graph.send": "the bytes are on their way to the scheduler",
    "decompress": "the bytes are decompressed",
    "graph.load": "the bytes become a graph again",
    "materialize": "layers become tasks",
    "lowlevel": "tasks are fused, and those that nobody needs dropped",
    "order": "every task gets its priority",
    "state": "the scheduler makes a record of every task",
}
#: Steps that happen elsewhere too, for other data: whose are the graph's.
_OF_GRAPHS: Final = {"compress": "client", "decompress": "scheduler"}
#: Steps that all bytes of the graphs go through.
_WHOLE: Final = ("graph.dump", "graph.send", "graph.load")
#: Stages of whose imports a graph's way consists; results are loaded after it.
_IMPORTS: Final = (Stage.CONSTRUCTION, Stage.OPTIMIZATION, Stage.SCHEDULING)

#: Rows of a table at most: a browser sorts and filters so many at once.
ROWS: Final = 10_000
#: Lines and objects that are drawn at most.
LINES: Final = 12
OBJECTS: Final = 60
#: A treemap is drawn so much wider than high.
_WIDE: Final = 3.0


def graphs(recording: Recording) -> pd.DataFrame:
    """One row per graph: when, its line, tasks, bytes, seconds to its first task."""
    frame = recording.handed_over
    return pd.DataFrame(
        {
            "line": _lines(frame["file"], frame["line"]),
            "start_s": frame["start_s"],
            "first_task_s": frame["first_task_s"],
            "tasks": frame["tasks"],
            "graph_tasks": frame["graph_tasks"],
            "graph_bytes": frame["graph_bytes"],
        }
    )


def steps(recording: Recording) -> pd.DataFrame:
    """One row per step of the hand-over: where it ran, seconds waited for it and busy, bytes."""
    frame = recording.steps()
    mine = frame["step"].isin(list(STEPS)) & frame["stage"].isin([str(stage) for stage in BEFORE])
    mine &= frame["role"].isin(["client", "scheduler"])
    for step, role in _OF_GRAPHS.items():
        mine &= (frame["step"] != step) | (frame["role"] == role)
    # Of imports what nobody waited for was not for a graph: a cluster being started, for example.
    waited = frame["stage"].isin([str(stage) for stage in _IMPORTS]) & (frame["wall_s"] > 0)
    mine &= (frame["step"] != "import") | waited
    found = frame[mine].copy()
    found["busy_s"] = found["busy_s"].where(found["step"] != "import", found["wall_s"])
    # The message around a graph is dumped and loaded too, and holds the same bytes again.
    whole = int(recording.handed_over["graph_bytes"].sum())
    found["bytes"] = found["bytes"].where(~found["step"].isin(_WHOLE) | (whole == 0), whole)
    names = list(STEPS)
    found["order"] = [names.index(step) for step in found["step"]]
    found = found.sort_values(["order", "role"], ignore_index=True)
    return found[["stage", "step", "role", "wall_s", "busy_s", "events", "bytes"]]


def way(recording: Recording) -> dict[str, Any]:
    """Facts for `templates/handover.html`: the steps one after the other, and their sum.

    A step is as long as it was waited for, or worked at where that is more: some of it happens
    while the caller waits for something else, or does not wait at all.
    """
    frame = steps(recording)
    length = frame[["wall_s", "busy_s"]].to_numpy(np.float64).max(axis=1, initial=0)
    whole = max(float(length.sum()), 1e-12)
    begin = np.cumsum(length) - length
    rows = [
        {
            "stage": row["stage"],
            "step": row["step"],
            "role": row["role"],
            "left": round(100 * begin[i] / whole, 3),
            "waited_width": round(100 * row["wall_s"] / whole, 3),
            "width": round(100 * length[i] / whole, 3),
            "waited": seconds(row["wall_s"]),
            "busy": seconds(row["busy_s"]),
            "bytes": size(row["bytes"]) if row["bytes"] else "",
            "what": STEPS[row["step"]],
        }
        for i, row in enumerate(frame.to_dict("records"))
    ]
    return {"steps": rows, **_sums(recording, float(frame["wall_s"].sum()))}


def _sums(recording: Recording, waited: float) -> dict[str, Any]:
    made = graphs(recording)
    part = share(waited / recording.wall) if recording.wall > 0 else ""
    return {
        "waited": seconds(waited),
        "part": part,
        "graphs": count(len(made), "graph"),
        "tasks": count(int(made["graph_tasks"].sum()), "task"),
        "bytes": size(int(made["graph_bytes"].sum())) if made["graph_bytes"].any() else "",
        "attached": recording.timeline.region.attached,
    }


def lines(recording: Recording) -> pd.DataFrame:
    """One row per user line: layers and tasks that it made, and what they took before any ran."""
    frame = recording.lines()
    took = frame["construction_s"] + frame["optimization_s"] + frame["before_first_task_s"]
    frame = frame[(frame["file"] != "") & (took > 0)]
    found = pd.DataFrame(
        {
            "made at": _lines(frame["file"], frame["line"]),
            "layers": frame["layers"],
            "tasks": frame["tasks"],
            "construction_s": frame["construction_s"],
            "optimization_s": frame["optimization_s"],
            "before_first_task_s": frame["before_first_task_s"],
        }
    )
    return found.sort_values("before_first_task_s", ascending=False, ignore_index=True)


def bars(table: pd.DataFrame, *, most: int = LINES) -> dict[str, Any]:
    """Facts for `templates/handover_lines.html`: the lines whose graphs took longest to make."""
    total = table["construction_s"] + table["optimization_s"]
    order = total.sort_values(ascending=False, kind="stable").index
    worth = [i for i in order if total[i] > 0]
    longest = max(float(total.max()), 1e-12) if len(total) else 1.0
    rows = [
        {
            "line": table["made at"][i],
            "construction": round(100 * table["construction_s"][i] / longest, 2),
            "optimization": round(100 * table["optimization_s"][i] / longest, 2),
            "seconds": seconds(float(total[i])),
        }
        for i in worth[:most]
    ]
    return {"rows": rows, "left_out": len(worth) - len(rows)}


def optimizations(recording: Recording) -> pd.DataFrame:
    """One row per pass and what it went through: how often, where, and seconds; longest first."""
    spans, store = recording.timeline.spans, recording.store
    mine = np.isin(spans["step"], [STEP["expr"], STEP["lowlevel"]])
    frame = pd.DataFrame({name: spans[name][mine] for name in ("step", "label", "place")})
    frame["seconds"] = (spans["stop"][mine] - spans["start"][mine]) / 1e9
    found = frame.groupby(["step", "label", "place"])["seconds"].agg(["count", "sum"]).reset_index()
    found = found.sort_values("sum", ascending=False, ignore_index=True)
    names = {STEP["expr"]: "expr", STEP["lowlevel"]: "lowlevel"}
    return pd.DataFrame(
        {
            "pass": [names[step] for step in found["step"]],
            # A line of the user's has its whole path, which is as long as it is private.
            "of": [
                _text(ntpath.basename(store.strings[label])) or "(not named)"
                for label in found["label"]
            ],
            "where": [store.places[place].role for place in found["place"]],
            "times": found["count"],
            "seconds": found["sum"],
        }
    )


def optimization(recording: Recording, *, most: int = LINES) -> dict[str, Any]:
    """Facts for `templates/handover_optimization.html`."""
    frame = optimizations(recording)
    rows = [
        {**row, "seconds": seconds(row["seconds"]), "times": f"{row['times']:,}"}
        for row in frame.head(most).to_dict("records")
    ]
    return {"rows": rows, "left_out": len(frame) - len(rows), "passes": _operations(recording)}


def _operations(recording: Recording) -> list[dict[str, str]]:
    """What each pass made of the graph that had most operations."""
    labels = [label.split() for _, _, label in recording.timeline.marks("optimized")]
    labels = [p for p in labels if len(p) == 3 and all(n.isdecimal() and len(n) < 16 for n in p)]
    found = []
    for name, what in (("expr", "expressions"), ("lowlevel", "layers of the graph")):
        numbers = [(int(p[1]), int(p[2])) for p in labels if p[0] == str(STEP[name])]
        if numbers:
            before, after = max(numbers)
            facts = {"pass": name, "what": what, "before": f"{before:,}", "after": f"{after:,}"}
            found.append(facts)
    return found


def objects(recording: Recording) -> pd.DataFrame:
    """One row per embedded object, costliest first."""
    frame = recording.objects()
    return pd.DataFrame(
        {
            "variable": [_text(v) or "(no name)" for v in frame["variable"]],
            "type": [_text(v) for v in frame["type"]],
            "bytes": frame["nbytes"],
            "copies": frame["copies"],
            "tasks": frame["tasks"],
            "made at": _lines(frame["file"], frame["line"]),
            "layer": [_text(v) for v in frame["layer"]],
            "how": [_text(v) for v in frame["how"]],
            "dump_s": frame["dump_s"],
            "load_s": frame["load_s"],
            "task_dump_s": frame["task_dump_s"],
            "task_load_s": frame["task_load_s"],
            "total_s": frame["total_s"],
            "moved_bytes": frame["graph_bytes"] + frame["sent_bytes"],
        }
    )


def treemap(table: pd.DataFrame, by: str, *, most: int = OBJECTS) -> pd.DataFrame:
    """A rectangle for each of the objects with most of a column, in a square of side 1.

    Columns: left, right, bottom, top, variable, type, and texts of bytes, seconds and line.
    """
    chosen = table[table[by] > 0].sort_values(by, ascending=False, kind="stable").head(most)
    weights = [float(weight) for weight in chosen[by]]
    rectangles = squarified(weights, _WIDE, 1.0)
    return pd.DataFrame(
        {
            "left": [r.x / _WIDE for r in rectangles],
            "right": [(r.x + r.width) / _WIDE for r in rectangles],
            # the largest is at the top
            "bottom": [1 - r.y - r.height for r in rectangles],
            "top": [1 - r.y for r in rectangles],
            "variable": list(chosen["variable"]),
            "type": list(chosen["type"]),
            "made_at": list(chosen["made at"]),
            "moved": [size(n) for n in chosen["moved_bytes"]],
            "took": [seconds(s) for s in chosen["total_s"]],
            "held": [size(n) for n in chosen["bytes"]],
            "copies": [f"{copies:,}" for copies in chosen["copies"]],
        }
    )


def _lines(files: pd.Series, numbers: pd.Series) -> list[str]:
    return [_text(at(file, number)) for file, number in zip(files, numbers, strict=True)]


def _text(value: object) -> str:
    return safe(value, limit=200) if value else ""
