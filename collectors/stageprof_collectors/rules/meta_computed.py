"""Tasks that Dask runs before a computation, only to learn what a function returns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.calls import META, Calls
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.metas import Asking
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of_graphs
from stageprof_collectors.replay.gone import without
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Say what it returns (`meta=`, an empty frame with its columns and types): then nothing is run "
    "to find out. While Dask waits for this one task no other has anything to do; of what "
    "`from_map` makes it asks again for each choice of columns or partitions."
)
_CODE: Final = """\
import pandas as pd

types = {{"id": "int64", "value": "float64"}}  # your columns and their types
meta = pd.DataFrame({{name: pd.Series(dtype=type_) for name, type_ in types.items()}})
# dd.from_map({function}, inputs, meta=meta), or dd.from_delayed(parts, meta=meta)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each function that was run so."""
    for row, graphs in _asked(recording).items():
        cost = cost_of_graphs(recording, graphs)
        if cost >= limits["share"] * recording.wall:
            yield _finding(recording, row, graphs, cost)


def _asked(recording: Recording) -> dict[int, list[int]]:
    """By the row of the table of layers whose result was looked at: the graphs that did."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    metas = Calls(recording).metas
    if not metas:
        return found
    runs, of_run = recording.timeline.runs, recording.groups.of_run
    looks = list(recording.groups.named(META))
    for graph in metas:
        rows = np.flatnonzero((recording.replay.owner == graph) & ~np.isin(of_run, looks))
        if len(rows):
            longest = int(rows[np.argmax((runs["stop"] - runs["start"])[rows])])
            found[int(of_run[longest])].append(graph)
    return found


def _finding(recording: Recording, row: int, graphs: list[int], cost: float) -> Finding:
    saved = recording.replay.saving(_without(recording, graphs))
    what = recording.groups.rows[row]
    times = "once" if len(graphs) == 1 else f"{len(graphs):,} times"
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"Dask ran `{what.prefix}`{made_at(what.file, what.line)} {times} only to learn what "
            f"it returns: {of_wall(cost, recording)}"
        ),
        stage=Stage.CONSTRUCTION,
        evidence={
            "computes": len(graphs),
            "tasks": int(np.isin(recording.replay.owner, graphs).sum()),
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix(what.prefix),
        where=Where(what.file, what.line, "", what.layer, what.prefix),
        cause=f"meta:{what.layer}",
    )


def fix(function: str) -> Fix:
    """What to do where Dask runs a function to learn what it returns."""
    return Fix(_TEXT, _CODE.format(function=word(function, "function")))


def _without(recording: Recording, graphs: list[int]) -> Change:
    """Nothing is handed over, run or waited for to learn it."""
    asking = Asking(recording, graphs)
    change = without(recording, np.flatnonzero(np.isin(recording.replay.owner, graphs)))
    return replace(change, serial=lambda step: 1.0 - asking.part(step))


RULE = Rule(
    id="meta-computed",
    stage=Stage.CONSTRUCTION,
    summary="Dask runs tasks before the computation, only to learn what a function returns.",
    find=find,
    ground=Ground.RECORDED,
    limits={"share": Limit(0.03, "of the wall time: less is not worth writing down the columns")},
)
