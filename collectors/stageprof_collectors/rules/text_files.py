"""Task time that goes into parsing text files, which say anew each time what Parquet keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.finding import (
    Finding,
    Fix,
    Severity,
    Where,
    at_least,
    severity,
)
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Looks, Share, share_of
from stageprof_collectors.profiles.nodes import Frame, Nodes
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Where files of each kind are parsed: what the path of a function on the stack has in it.
_PARSERS: Final = {
    "csv": ("/pandas/io/parsers/",),
    "json": ("/pandas/io/json/", "/json/decoder.py", "/json/__init__.py"),
}
#: Of the time that parsing takes, reading the same as Parquet leaves a quarter where it is numbers
#: (150,000 rows of six: 7 of 32 ms), a third where it is dates, and all where it is texts; what is
#: left of a task that waits for others of its process is less.
GAIN: Final = (0.3, 0.98)

_TEXT: Final = (
    "Write the data as Parquet once, and read that from then on: types are kept and need not be "
    "found out, columns that a question does not need are not read, and a partition is as large as "
    "you write it. Numbers and dates gain most, texts little. To read and to write all of it takes "
    "about three times what reading it takes now: it pays from the fourth run on, and for data "
    "that are read once not at all."
)
_CODE: Final = """\
import dask.dataframe as dd

def convert(source, target, **options):  # once; options: those that you read with now
    dd.read_{kind}(source, **options).to_parquet(target)

# from then on: dd.read_parquet(target)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each kind of file."""
    if not recording.store.rows("flame"):
        return
    looks = Looks(recording)
    for kind, shares in _shares(recording, int(limits["looks"])).items():
        cost = looks.cost(shares)
        if cost >= limits["share"] * recording.wall:
            yield _finding(recording, looks, kind, shares, cost)


def _finding(
    recording: Recording, looks: Looks, kind: str, shares: dict[str, Share], cost: float
) -> Finding:
    saved = looks.saving(shares, GAIN)
    main = max(shares, key=lambda prefix: looks.busy({prefix: shares[prefix]}))
    row = _row(recording, main)
    return Finding(
        rule=RULE.id,
        severity=_severity(saved, recording.wall),
        headline=(
            f"Parsing {kind.upper()} takes {share(shares[main].middle)} of the time of "
            f"`{main}`{made_at(row.file, row.line)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "files": kind.upper(),
            "share_of_tasks": shares[main].middle,
            "task_s": looks.busy(shares),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, _CODE.format(kind=kind)),
        where=Where(row.file, row.line, "", row.layer, main),
        cause=f"parsing:{kind}",
    )


def _severity(saved: tuple[float, float], wall: float) -> Severity:
    """Nothing graver than moderate: who reads these files once gains nothing."""
    found = severity(saved, wall)
    return Severity.MODERATE if at_least(found, Severity.MODERATE) else found


def _row(recording: Recording, prefix: str) -> Row:
    """The layer of a prefix that took longest."""
    groups = recording.groups
    mine = [i for i, row in enumerate(groups.rows) if row.prefix == prefix]
    return groups.rows[max(mine, key=groups.took, default=0)]


def _shares(recording: Recording, least: int) -> dict[str, dict[str, Share]]:
    """By kind of file: the part of the time of tasks, by prefix, in which they were parsed."""
    flame, strings = recording.store.table("flame"), recording.store.strings
    rows = np.flatnonzero(flame["step"] == STEP["compute"])
    at = _parsing(recording.nodes)[recording.nodes.of(flame["place"][rows], flame["node"][rows])]
    found: dict[str, dict[str, Share]] = {}
    for prefix in np.unique(flame["name"][rows[at >= 0]]).tolist():
        mine = flame["name"][rows] == prefix
        count, total = flame["count"][rows[mine]], flame["total"][rows[mine]]
        for number, kind in enumerate(_PARSERS):
            seen = at[mine] == number
            if count[seen].sum() >= least:
                part = total[seen].sum() / max(1, total.sum())
                found.setdefault(kind, {})[strings[prefix]] = share_of(part, int(count.sum()))
    return found


def _parsing(nodes: Nodes) -> Ints:
    """Of each node of the tree of stacks which kind of file is parsed there; -1: none."""
    found = np.full(len(nodes), -1, np.int64)
    for node, (frame, around) in enumerate(zip(nodes.frames, nodes.parent.tolist(), strict=True)):
        found[node] = found[around] if around >= 0 and found[around] >= 0 else _kind(frame)
    return found


def _kind(frame: Frame) -> int:
    file = frame.file.replace("\\", "/")
    kinds = enumerate(_PARSERS.values())
    return next((n for n, parts in kinds if any(part in file for part in parts)), -1)


RULE = Rule(
    id="text-files",
    stage=Stage.EXECUTION,
    summary="Tasks spend their time parsing CSV or JSON, which a later run would parse again.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "looks": Limit(10, "fewer of the looks at tasks may be chance"),
        "share": Limit(0.10, "of the wall time on the critical path: for less nobody converts"),
    },
)
