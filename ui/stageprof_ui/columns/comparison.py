"""Several recordings side by side: wall time by stage, layers, findings.

No statistics: of one run each, nothing can be said about chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import pandas as pd
from dask.utils import key_split

from stageprof_collectors.findings.diagnosis import NOTHING
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import Summary
from stageprof_runtime.stage import Stage
from stageprof_ui.words import text

#: Layers that are shown: those that changed most.
MOST: Final = 300
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: What a finding is matched by.
Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Side:
    """One of the recordings; the first is what the others are compared with."""

    letter: str
    #: texts of the recording, not yet made safe
    name: str
    label: str
    recording: Recording
    summary: Summary


def sides(recorded: Sequence[tuple[Recording, Summary]]) -> list[Side]:
    """The recordings as sides, in the order given."""
    return [
        Side(letter_of(i), PurePath(said.file).name or said.label, said.label, recording, said)
        for i, (recording, said) in enumerate(recorded)
    ]


def letter_of(number: int) -> str:
    """What stands for a side in the head of a narrow column: A, B, ... Z, 27, 28."""
    return _LETTERS[number] if number < len(_LETTERS) else str(number + 1)


# -- stages -----------------------------------------------------------------------------------


def stages(all_sides: Sequence[Side], *, alone: bool = True) -> dict[str, Any]:
    """Facts for the bars, on a common scale, and the table beside them.

    Args:
        all_sides: the recordings.
        alone: whether each stands for itself, and not for the recordings of a side.
    """
    longest = max((side.summary.wall_s for side in all_sides), default=0.0) or 1.0
    return {
        "alone": alone,
        "sides": [_bar(side, longest) for side in all_sides],
        "rows": [_stage_row(all_sides, stage) for stage in Stage],
        "total": [
            {"seconds": seconds(s.summary.wall_s), "change": change(_walls(all_sides), i)}
            for i, s in enumerate(all_sides)
        ],
    }


def _bar(side: Side, longest: float) -> dict[str, Any]:
    return {
        "letter": side.letter,
        "name": text(side.name),
        "label": text(side.label) if side.label != side.name else "",
        "wall": seconds(side.summary.wall_s),
        "trouble": text(side.summary.incomplete) if side.summary.incomplete else "",
        "parts": [
            {
                "stage": str(line.stage),
                "percent": round(100 * max(line.wall_s, 0.0) / longest, 4),
                "what": f"{line.stage}: {seconds(line.wall_s)}, {share(line.share)}",
            }
            for line in side.summary.stages
            if line.wall_s > 0
        ],
    }


def _stage_row(all_sides: Sequence[Side], stage: Stage) -> dict[str, Any]:
    lines = [{line.stage: line for line in s.summary.stages}[stage] for s in all_sides]
    took = [line.wall_s for line in lines]
    cells = [
        {"seconds": seconds(line.wall_s), "share": share(line.share), "change": change(took, i)}
        for i, line in enumerate(lines)
    ]
    return {"stage": str(stage), "cells": cells}


def _walls(all_sides: Sequence[Side]) -> list[float]:
    return [side.summary.wall_s for side in all_sides]


def change(values: Sequence[float], i: int) -> str:
    """How many seconds a value is above or below the first: `+1.20 s`, `-153 ms`, `0 s`."""
    return signed(values[i] - values[0]) if i else ""


def signed(difference: float) -> str:
    """A difference of seconds with its sign; one that is shown as next to nothing has none."""
    shown = seconds(abs(difference))
    if shown == "0 s" or shown.startswith("<") or not np.isfinite(difference):
        return shown
    return ("+" if difference > 0 else "\N{MINUS SIGN}") + shown


# -- layers -----------------------------------------------------------------------------------


def layers(all_sides: Sequence[Side]) -> pd.DataFrame:
    """One row per layer of any side, those first that changed most.

    Layers of one prefix made at one line are one: the hashes in their names differ from run to run.

    Columns: prefix, line ("file:line", "" if unknown), wall_0, tasks_0, wall_1, tasks_1, ... (NaN
    where a side has no such layer), change (seconds, of the side that is farthest from the first).
    """
    parts = [_of_side(side.recording, i) for i, side in enumerate(all_sides)]
    frame = pd.concat(parts, axis=1).reset_index(names=["prefix", "line"])
    walls = frame[[f"wall_{i}" for i in range(len(parts))]].fillna(0.0).to_numpy()
    off = walls - walls[:, :1]
    farthest = np.abs(off).argmax(axis=1) if len(off) else np.zeros(0, np.int64)
    frame["change"] = off[np.arange(len(off)), farthest]
    order = frame["change"].abs().sort_values(ascending=False, kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _of_side(recording: Recording, number: int) -> pd.DataFrame:
    """Seconds waited for and tasks of each layer of one side, by prefix and line."""
    frame = recording.layers()
    pairs = zip(frame["file"], frame["line"], strict=True)
    lines = [at(file, line) for file, line in pairs]
    table = pd.DataFrame(
        {
            "prefix": frame["prefix"].astype(object),
            "line": pd.Series(lines, index=frame.index, dtype=object),
            f"wall_{number}": frame["wall_s"].astype(float),
            f"tasks_{number}": frame["tasks"].astype(float),
        }
    )
    return table.groupby(["prefix", "line"], sort=False).sum()


def layer_rows(frame: pd.DataFrame, count: int, most: int = MOST) -> list[dict[str, Any]]:
    """The first rows of the table of layers of `count` sides, as texts."""
    return [_layer_row(row, count) for row in frame.head(most).to_dict("records")]


def _layer_row(row: dict[Any, Any], count: int) -> dict[str, Any]:
    walls = [row[f"wall_{i}"] for i in range(count)]
    tasks = [row[f"tasks_{i}"] for i in range(count)]
    known = [0.0 if np.isnan(wall) else wall for wall in walls]
    return {
        "name": text(row["prefix"]) if row["prefix"] else "(no layer)",
        "line": text(row["line"]) if row["line"] else "",
        "cells": [
            {
                "seconds": "" if np.isnan(walls[i]) else seconds(walls[i]),
                "tasks": "" if np.isnan(tasks[i]) else f"{int(tasks[i]):,}",
                "change": change(known, i),
                "worse": known[i] > known[0],
            }
            for i in range(count)
        ],
    }


# -- findings ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Met:
    """A finding over all sides; `found` has None where a side does not have it."""

    found: tuple[Finding | None, ...]

    @property
    def how(self) -> str:
        """Whether it "came", "went" or "stays": the last side against the first."""
        if self.found[-1] is None:
            return "went"
        return "stays" if self.found[0] is not None else "came"

    @property
    def latest(self) -> Finding:
        """As the last side has it that has it."""
        return next(f for f in reversed(self.found) if f is not None)


def findings(all_sides: Sequence[Side]) -> list[Met]:
    """What came, what went, what stays; in each the costliest first.

    Matched by rule and place. What is a mere note on every side is left out.
    """
    found = [_keyed(side.summary.findings) for side in all_sides]
    keys = dict.fromkeys(key for mine in found for key in mine)
    met = [Met(tuple(mine.get(key) for mine in found)) for key in keys]
    worth = [m for m in met if any(f and f.severity != Severity.NOTE for f in m.found)]
    order = ("came", "went", "stays")
    return sorted(worth, key=lambda m: (order.index(m.how), -m.latest.cost_s))


def _keyed(found: Sequence[Finding]) -> dict[Key, Finding]:
    """By what they are matched by; of several alike the first, which is the best."""
    keyed: dict[Key, Finding] = {}
    for finding in found:
        if finding.rule != NOTHING:
            keyed.setdefault(key_of(finding), finding)
    return keyed


def key_of(finding: Finding) -> Key:
    """Rule and place, without what differs from run to run or from machine to machine."""
    where = finding.where
    layer = where.prefix or (key_split(where.layer) if where.layer else "")
    return finding.rule, at(where.file, where.line), where.variable, layer


def finding_rows(met: Sequence[Met]) -> list[dict[str, Any]]:
    """Facts for the table of findings."""
    return [
        {
            "how": m.how,
            "severity": str(m.latest.severity),
            "headline": text(m.latest.headline),
            "costs": [seconds(f.cost_s) if f else "" for f in m.found],
        }
        for m in met
    ]
