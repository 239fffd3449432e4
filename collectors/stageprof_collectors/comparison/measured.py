"""What is kept of one recording that is compared: a few small tables, and nothing of its events.

The only place that asks a recording for what a comparison needs; five hundred of them a side are
read one after another, and each is forgotten before the next.
"""

from __future__ import annotations

import ntpath
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.blame import on_path
from stageprof_collectors.account.depend import depends
from stageprof_collectors.account.groups import Row
from stageprof_collectors.comparison.circumstances import circumstances, failed, instant, program
from stageprof_collectors.comparison.counts import counted
from stageprof_collectors.comparison.waits import waits
from stageprof_collectors.findings.diagnosis import NOTHING
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.others import Others, others
from stageprof_collectors.summary import incomplete
from stageprof_runtime.stage import Stage, stage_of, step_name

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_CELL: Final = re.compile(r"In \[[0-9]+\]")
#: Cells, objects and findings that are kept of one recording: those of most seconds.
MOST: Final = 400


class Group(NamedTuple):
    """A layer of the user's: the prefix of its tasks, and the line that made it ("", 0: unknown).

    The token in a layer's name is left out, and of the file its folder, of a notebook's cell its
    number: they differ where the same program runs again.
    """

    prefix: str
    file: str
    line: int


#: What belongs to no layer.
NOBODY: Final = Group("", "", 0)


class Cell(NamedTuple):
    """Where seconds of the blocking account went."""

    stage: Stage
    step: str
    group: Group


class Thing(NamedTuple):
    """An object of the user's that travels inside graphs."""

    variable: str
    type: str
    file: str


class Held(NamedTuple):
    """How it travelled in one recording."""

    line: int
    #: the layer that sent most of it
    layer: str
    nbytes: int
    copies: int
    tasks: int
    seconds: float


class Place(NamedTuple):
    """What a finding is matched by."""

    rule: str
    file: str
    variable: str
    prefix: str


class Found(NamedTuple):
    """What a finding said."""

    severity: Severity
    headline: str
    cost_s: float


@dataclass(frozen=True)
class Measured:
    """One recording."""

    #: the file that it came from, "" if none
    file: str
    #: what was recorded
    program: str
    #: what it was recorded on: "machine", "versions", "cluster" -> in words
    conditions: Mapping[str, str]
    #: what is wrong with it, "" if nothing: it ended too early; events of it are lost
    incomplete: str
    lost: str
    wall_s: float
    #: seconds of the blocking account by stage; they sum to `wall_s`
    stages: Mapping[Stage, float]
    #: the same by step and layer
    cells: Mapping[Cell, float]
    #: of those the seconds in which threads were on no processor, where that is known
    waits: Mapping[Stage, float]
    #: numbers that say how much there was to do, by the names of `counts.COUNTS`
    counts: Mapping[str, float]
    #: tasks that ran, by layer
    tasks: Mapping[Group, int]
    #: bytes of the results of tasks that needed nothing: what the program reads or makes
    read: Mapping[Group, int]
    objects: Mapping[Thing, Held]
    findings: Mapping[Place, Found]
    #: what other programs took of its processors; None: unknown
    others: Others | None = None
    #: how the program ended that failed: what it did until then is not all of its work
    failed: str = ""
    #: when it began, seconds since 1970; 0 if that is not known
    began_s: float = 0.0

    @property
    def useless(self) -> str:
        """Why it says nothing of how long the program takes; "" if it does."""
        return self.incomplete or self.failed


def measure(recording: Recording, settings: Settings = DEFAULTS) -> Measured:
    """What a comparison keeps of a recording.

    Args:
        recording: a whole or broken one.
        settings: of its diagnosis.
    """
    cells, groups = _cells(recording)
    stages = recording.stages()["wall_s"]
    return Measured(
        file=recording.path or "",
        program=program(recording.store.header),
        conditions=circumstances(recording),
        incomplete=incomplete(recording),
        lost=_lost(recording),
        wall_s=recording.wall,
        stages={stage: float(stages[str(stage)]) for stage in Stage},
        cells=_most(cells),
        waits=waits(recording, cells),
        counts=counted(recording),
        tasks=_tasks(recording, groups),
        read=_read(recording, groups),
        objects=_objects(recording),
        findings=_findings(recording, settings),
        others=others(recording),
        failed=failed(recording),
        began_s=instant(recording.store.header.get("started")),
    )


def _lost(recording: Recording) -> str:
    """What of the events is not there; hooks that fail are told of by themselves."""
    covered = recording.coverage()
    batches, dropped = covered["batches_lost"], covered["dropped"].items()
    events = sum(number for why, number in dropped if not why.startswith("hook failed"))
    if batches:
        return f"{batches:,} {'batch' if batches == 1 else 'batches'} of events lost"
    return f"{events:,} {'event' if events == 1 else 'events'} lost" if events else ""


def grouped(row: Row) -> Group:
    """The layer that a row of the table of layers is."""
    prefix = row.prefix or _stem(row.layer)
    known = bool(row.file and row.line)
    return Group(prefix, _file(row.file) if known else "", row.line if known else 0)


def _file(path: str) -> str:
    """A file's name; a cell of a notebook has another number whenever it runs."""
    return _CELL.sub("In [*]", ntpath.basename(path))


def _stem(layer: str) -> str:
    """The name of a layer without its token; none has none."""
    return str(key_split(layer)) if layer else ""


# -- seconds --------------------------------------------------------------------------------------


def _cells(recording: Recording) -> tuple[dict[Cell, float], list[Group]]:
    """Seconds of the critical path by step and layer, and the layer of each row of `groups`."""
    path = on_path(recording)  # which may find layers that no task is of
    groups = [grouped(row) for row in recording.groups.rows]
    cells: defaultdict[Cell, float] = defaultdict(float)
    for step, rows in path.items():
        for row, ns in rows.items():
            cells[Cell(stage_of(step), step_name(step), groups[row])] += ns / 1e9
    return dict(cells), groups


def _most(cells: dict[Cell, float]) -> dict[Cell, float]:
    """The largest; the others of a step are nobody's."""
    ordered = sorted(cells.items(), key=lambda item: -item[1])
    kept: defaultdict[Cell, float] = defaultdict(float, ordered[:MOST])
    for cell, seconds in ordered[MOST:]:
        kept[cell._replace(group=NOBODY)] += seconds
    return dict(kept)


# -- tasks ----------------------------------------------------------------------------------------


def _tasks(recording: Recording, groups: list[Group]) -> dict[Group, int]:
    tasks: Counter[Group] = Counter()
    done = recording.groups.of_run[ran(recording.timeline.runs)]
    for row, number in zip(*np.unique(done, return_counts=True), strict=True):
        tasks[groups[int(row)]] += int(number)
    return dict(tasks.most_common(MOST))


def _read(recording: Recording, groups: list[Group]) -> dict[Group, int]:
    first = depends(recording.timeline).first
    roots = np.flatnonzero(np.diff(first) == 0)
    rows = recording.groups.of_run[roots]
    nbytes = np.bincount(rows, weights=np.maximum(recording.timeline.runs["nbytes"][roots], 0))
    found: Counter[Group] = Counter()
    for row in np.flatnonzero(nbytes):
        found[groups[int(row)]] += int(nbytes[row])
    return dict(found.most_common(MOST))


# -- objects and findings -------------------------------------------------------------------------


def _objects(recording: Recording) -> dict[Thing, Held]:
    """By what the user calls them; several graphs with one object hold it several times."""
    found: dict[Thing, Held] = {}
    for row in recording.objects().head(MOST).to_dict("records"):
        thing = Thing(row["variable"], row["type"], _file(row["file"]))
        layer = _stem(str(row["layer"]))
        held = Held(
            int(row["line"]), layer, int(row["nbytes"]), int(row["copies"]), int(row["tasks"]),
            float(row["total_s"]),
        )  # fmt: skip
        found[thing] = _joined(found[thing], held) if thing in found else held
    return found


def _joined(one: Held, other: Held) -> Held:
    return one._replace(
        nbytes=max(one.nbytes, other.nbytes),
        copies=one.copies + other.copies,
        tasks=one.tasks + other.tasks,
        seconds=one.seconds + other.seconds,
    )


def _findings(recording: Recording, settings: Settings) -> dict[Place, Found]:
    """By rule and place; where there are several alike, the first is the best."""
    found: dict[Place, Found] = {}
    for each in recording.findings(settings)[:MOST]:
        if each.rule == NOTHING:
            continue
        where = each.where
        prefix = where.prefix or _stem(where.layer)
        place = Place(each.rule, _file(where.file), where.variable, prefix)
        found.setdefault(place, Found(each.severity, each.headline, each.cost_s))
    return found
