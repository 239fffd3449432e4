"""xarray reduced the groups of a chunked array one by one, for there was no flox."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.crowd import Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.grouped import Reduction, Reductions
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

_MISSING: Final = (
    "Install flox where this program runs and on the workers (`pip install flox`, or "
    "`conda install -c conda-forge flox`); xarray uses it without any change of the program. It "
    "reduces all groups of a chunk in one task: about {after:,} tasks instead of {now:,}."
)
_OFF: Final = (
    "Let xarray use flox, which is installed but was switched off (`use_flox`, in a "
    "`set_options` of the program or of something that it imports). It reduces all groups of a "
    "chunk in one task: about {after:,} tasks instead of {now:,}."
)
_CODE: Final = """\
import xarray as xr

xr.set_options(use_flox=True)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all such reductions of a run."""
    reductions = Reductions(recording)
    if not reductions.all:
        return
    rows, after = reductions.rows(), reductions.tasks_of_flox
    if len(rows) >= limits["tasks"] and len(rows) >= limits["times"] * after:
        yield _finding(recording, reductions, rows)


def _finding(recording: Recording, reductions: Reductions, rows: Ints) -> Finding:
    most, after = reductions.most, reductions.tasks_of_flox
    crowd = _crowd(recording, reductions, rows)
    overhead = Overhead(recording, crowd)
    saved = _saving(recording, overhead, rows, len(rows) / after)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"xarray reduces {most.groups:,} groups one by one{made_at(most.file, most.line)}"
            f"{_others(reductions)}: {len(rows):,} tasks, which cost "
            f"{of_wall(overhead.seconds, recording)} beside their work"
        ),
        stage=None,
        evidence={
            "groups": most.groups,
            "reductions": len(reductions.all),
            "chunks": most.pieces,
            "tasks": len(rows),
            "tasks_with_flox": after,
            "overhead_each_s": overhead.each_s,
        },
        cost_s=overhead.seconds,
        saving_s=saved,
        fix=_fix(most, after, len(rows)),
        where=Where(most.file, most.line, "", crowd.main.layer, crowd.main.prefix),
        cause=crowd.cause,
    )


def _saving(recording: Recording, overhead: Overhead, rows: Ints, k: float) -> tuple[float, float]:
    """Flox goes over the data as well, but cuts nothing out: that is some of the work, or most."""
    merged, compute = overhead.merged(k), np.ones(len(recording.timeline.runs["run"]))
    compute[rows] = 1.0 / k
    without = replace(merged, compute=compute)
    return overhead.saving(k)[0], recording.replay.saving(without)[1]


def _crowd(recording: Recording, reductions: Reductions, rows: Ints) -> Crowd:
    """The runs; most of those at the line of most groups belong to its main layer."""
    groups, most = recording.groups, reductions.most
    tasks = np.bincount(groups.of_run[rows], minlength=len(groups.rows))
    there = [row.file == most.file and row.line == most.line for row in groups.rows]
    main = groups.rows[int(np.argmax(tasks * there))]
    return Crowd(Kind.CHUNKS, rows, main, frozenset(each.at for each in reductions.all))


def _others(reductions: Reductions) -> str:
    """How many reductions there are beside the one that is named."""
    others = len(reductions.all) - 1
    if not others:
        return ""
    return f" (and {others} more such {'reduction' if others == 1 else 'reductions'})"


def _fix(most: Reduction, after: int, now: int) -> Fix:
    if most.off:
        return Fix(_OFF.format(after=after, now=now), _CODE)
    return Fix(_MISSING.format(after=after, now=now))


RULE = Rule(
    id="groups-one-by-one",
    stage=None,
    summary="xarray reduced groups of a chunked array one by one, without flox.",
    find=find,
    ground=Ground.CROWDED,
    instead_of=frozenset({"large-graph"}),
    limits={
        "tasks": Limit(500, "a task costs about a millisecond: fewer never cost a second"),
        "times": Limit(3.0, "more tasks than with flox: fewer are no reason for a package"),
    },
)
