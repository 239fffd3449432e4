"""Everything before the first task: by graph, by line, by step with its bytes, by object."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

import pandas as pd

from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage

#: The stages that a graph goes through before its tasks run.
BEFORE: Final = (
    Stage.CONSTRUCTION,
    Stage.OPTIMIZATION,
    Stage.SERIALIZATION,
    Stage.COMMUNICATION,
    Stage.SCHEDULING,
)
#: Steps of the way of a graph, in the order in which it takes them.
STEPS: Final = (
    "build", "tokenize", "meta", "import", "expr", "graph.dump", "compress", "graph.send",
    "decompress", "graph.load", "materialize", "lowlevel", "order", "state",
)  # fmt: skip


def graphs(recording: Recording) -> pd.DataFrame:
    """One row per graph: when, its line, tasks, bytes, seconds to its first task."""
    frame = recording.computations()
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
    mine = frame["step"].isin(STEPS) & frame["stage"].isin([str(stage) for stage in BEFORE])
    mine &= frame["role"].isin(["client", "scheduler"])
    found = frame[mine].copy()
    found["order"] = [STEPS.index(step) for step in found["step"]]
    found = found.sort_values(["order", "role"], ignore_index=True)
    return found[["stage", "step", "role", "wall_s", "busy_s", "events", "bytes"]]


def lines(recording: Recording) -> pd.DataFrame:
    """One row per user line: layers and tasks that it made, and what they took before any ran."""
    frame = recording.lines()
    frame = frame[
        (frame["file"] != "") & (frame["construction_s"] + frame["before_first_task_s"] > 0)
    ]
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
            "sent_bytes": frame["sent_bytes"],
        }
    )


def _lines(files: pd.Series, numbers: pd.Series) -> list[str]:
    pairs = zip(files, numbers, strict=True)
    return [_text(f"{PurePath(file).name}:{number}") if file else "" for file, number in pairs]


def _text(value: object) -> str:
    return safe(value, limit=200) if value else ""
