"""Task time that goes into parsing text files, which say anew each time what Parquet keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.groups import Row
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
from stageprof_collectors.profiles.inside import inside
from stageprof_collectors.profiles.looks import Looks, Share
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What parses each kind: of a function on the stack "path:name", by what is in it. The `json` of
#: Python and of pandas write as well, and take apart what has been parsed.
_PARSERS: Final = {
    "csv": ("/pandas/io/parsers/",),
    "json": (
        "/pandas/io/json/_json.py:read_json", "/pandas/io/json/_json.py:JsonReader.",
        "/pandas/io/json/_json.py:FrameParser.", "/pandas/io/json/_json.py:SeriesParser.",
        "/pandas/io/json/_json.py:Parser.", "/json/decoder.py:", "/json/__init__.py:load",
    ),
}  # fmt: skip
#: Tasks that make frames of JSON, and those of Dask's own that read each file, or piece, once.
_FRAMED: Final = re.compile(r"read[-_]?json")
_DASKS: Final = re.compile(r"read[-_]?(json|csv|text|table|fwf)|bag|loads")
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
#: For functions of the user's: how often each file was read is not recorded.
_SAME: Final = (
    " If several tasks read the same file, let each process read it once: in a function of its own "
    "with `functools.cache`, which returns what was read and which no task changes."
)
_CODE: Final = """\
import dask.dataframe as dd

def convert(source, target, **options):  # once; options: those that you read with now
    dd.read_{kind}(source, **options).to_parquet(target)

# from then on: dd.read_parquet(target)"""

_RECORDS: Final = """\
import dask.dataframe as dd

def convert(records, target, meta):  # once; records: a bag of dicts, meta: {{"column": "type"}}
    records.to_dataframe(meta=meta).to_parquet(target)  # of nested ones the fields that you need

# from then on: dd.read_parquet(target)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each kind of file."""
    if not recording.store.rows("flame"):
        return
    looks = Looks(recording)
    for kind, shares in inside(recording, _PARSERS, max(1, int(limits["looks"]))).items():
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
        fix=Fix(_TEXT + ("" if _DASKS.match(main) else _SAME), _code(kind, main)),
        where=Where(row.file, row.line, "", row.layer, main),
        cause=f"parsing:{kind}",
    )


def _code(kind: str, prefix: str) -> str:
    """Dask makes texts of what is no column of a frame, as what `json.loads` gives may be."""
    framed = kind != "json" or _FRAMED.match(prefix)
    return _CODE.format(kind=kind) if framed else _RECORDS.format()


def _severity(saved: tuple[float, float], wall: float) -> Severity:
    """Nothing graver than moderate: who reads these files once gains nothing."""
    found = severity(saved, wall)
    return Severity.MODERATE if at_least(found, Severity.MODERATE) else found


def _row(recording: Recording, prefix: str) -> Row:
    """The layer of a prefix that took longest."""
    groups = recording.groups
    mine = [i for i, row in enumerate(groups.rows) if row.prefix == prefix]
    return groups.rows[max(mine, key=groups.took, default=0)]


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
