"""Blocking computes one after another that do not need each other: one at a time has work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.calls import Calls, Streak
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings.calling import calling
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.common import own_parts
from stageprof_collectors.replay.cost import cost_of_graphs
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.storage.layered import TUPLE
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.rounds import CARRIED, ROWS, UNKNOWN

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Collect what is to be computed in a list, without computing it, and compute the list once "
    "after the loop: then all threads have work, and a graph is handed over once. If all results "
    "together do not fit into memory, do so for a hundred at a time. What writes (`to_parquet`, "
    "`to_zarr`, `to_netcdf`) gives what can be collected with `compute=False`."
)
_UNSURE: Final = (
    " Do it only if no round of the loop needs the result of an earlier one: that could not be "
    "read from the program."
)
_ROWS: Final = (
    "Going through the rows of a Dask data frame computes its partitions one after another, and "
    "nothing else runs while the program looks at the rows of one. Say what is done with a row for "
    "whole columns (`(ddf.x * ddf.y).sum()`), or do it on the workers, with a function for "
    "`ddf.map_partitions`. If the rows are needed here, compute the frame once (the code below): "
    "only the rows and columns that you need, for all are in this process's memory then."
)
_ONCE: Final = """\
frame = ddf.compute()
for row in frame.itertuples():
    ...  # what you do with a row"""
_CALLS: Final = """\
import dask

lazy = [dask.delayed({name})(item) for item in items]  # {name}: the plain function
results = dask.compute(*lazy)"""
_COLLECTIONS: Final = """\
import dask

lazy = [{name}(item) for item in items]  # {name}: all that you do before .compute()
results = dask.compute(*lazy)  # dask.persist(*lazy) for what is to stay on the workers"""
_FUTURES: Final = """\
futures = [client.submit({name}, item) for item in items]  # all that you hand over in the loop
results = client.gather(futures)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line whose computes could be one."""
    if len(recording.timeline.graphs) < limits["calls"]:
        return
    calls = Calls(recording)
    streaks = [s for s in calls.streaks if s.verdict != CARRIED]
    of_line: defaultdict[tuple[str, int], list[Streak]] = defaultdict(list)
    for streak in streaks:
        of_line[streak.file, streak.line].append(streak)
    for _, mine in sorted(of_line.items()):
        if sum(len(s.graphs) for s in mine) >= limits["calls"]:
            yield _finding(recording, calls, mine)


def _finding(recording: Recording, calls: Calls, streaks: list[Streak]) -> Finding:
    graphs = tuple(g for s in streaks for g in s.graphs)
    rows = calls.rows(graphs)
    verdict = streaks[0].verdict
    unsure = verdict == UNKNOWN
    saved = recording.replay.saving(_together(recording, streaks, rows))
    saved = (0.0, saved[1]) if unsure else saved
    cost = cost_of_graphs(recording, graphs)
    row, tasks = _main(recording, rows), len(rows)
    file, line = streaks[0].file, streaks[0].line
    # How many a local scheduler may use was not recorded.
    threads = {} if _local(recording, rows) else {"threads": Crew(recording).threads}
    return Finding(
        rule=RULE.id,
        severity=Severity.NOTE if unsure else severity(saved, recording.wall),
        headline=(
            f"{len(graphs):,} computes one after another{made_at(file, line)}, each of "
            f"{tasks / len(graphs):,.0f} tasks (`{row.prefix}`): {of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "computes": len(graphs),
            "tasks_each": tasks / len(graphs),
            **threads,
            "rounds_need_each_other": verdict,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, verdict, row, rows),
        where=Where(file, line, "", row.layer, row.prefix),
        cause=f"loop:{file}:{line}",
        # What Dask builds there, it builds for each partition.
        also=frozenset({f"built:{file}:{line}"}) if verdict == ROWS else frozenset(),
    )


def _together(recording: Recording, streaks: list[Streak], rows: Ints) -> Change:
    groups = tuple(s.graphs for s in streaks)
    workers = None if _local(recording, rows) else max(1, len(Crew(recording).fullest))
    return Change(together=groups, own=own_parts(recording, groups), workers=workers)


def _local(recording: Recording, rows: Ints) -> bool:
    return bool(len(rows)) and bool((recording.timeline.runs["run"][rows] >= LOCAL).all())


def _main(recording: Recording, rows: Ints) -> Row:
    groups, runs = recording.groups, recording.timeline.runs
    took = (runs["stop"] - runs["start"])[rows].astype(float)
    if not len(rows):
        return groups.rows[0]
    return groups.rows[int(np.argmax(np.bincount(groups.of_run[rows], weights=took)))]


def _fix(recording: Recording, verdict: str, row: Row, rows: Ints) -> Fix:
    if verdict == ROWS:
        return Fix(_ROWS, _ONCE)
    text = _TEXT + (_UNSURE if verdict == UNKNOWN else "")
    return Fix(text, _code(recording, row, rows))


def _code(recording: Recording, row: Row, rows: Ints) -> str:
    keys = recording.store.keys(recording.timeline.runs["key"][rows])
    chunked = any(key.startswith(TUPLE) for key in keys)
    calls = _FUTURES if len(rows) and calling(recording, rows).futures else _CALLS
    text = _COLLECTIONS if chunked else calls
    return text.format(name="result_of" if chunked else word(row.prefix, "work"))


RULE = Rule(
    id="compute-in-loop",
    stage=None,
    summary="Blocking computes follow one another that do not depend on each other.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "calls": Limit(3, "computes from a line: two are written out in many a program"),
    },
)
