"""Tasks may run on no worker that there is: they need a resource, or are to be somewhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.intervals import clip, length
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.tables.fact import rows_of
from stageprof_runtime.stage import STEP, Stage
from stageprof_runtime.unrunnable import MANY, WHY

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Steps in which the caller waits for a scheduler that waits.
_WAITS: Final = frozenset(STEP[s] for s in ("place", "result.gather", "idle"))
_NEEDS: Final = (
    "Have workers with that much of it: say so where they are started (the code below, or `dask "
    'worker ... --resources "{one}"`). Or leave `resources=` out where it is not needed. Dask '
    "waits for such a worker for ever."
)
_NEEDS_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(resources={{{resources}}})  # in place of your own; what each worker has
client = Client(cluster)"""
_WANTS: Final = (
    "Name workers that are there, by address or name (`client.scheduler_info()` has them), leave "
    "`workers=` out, or let others do it as well, with `allow_other_workers=True`. Dask waits for "
    "these workers for ever."
)


class Why(NamedTuple):
    """What tasks of a prefix need: resources ("GPU=1"), or workers and hosts."""

    prefix: str
    resources: str
    workers: str

    def said(self, many: int) -> str:
        """In a few words, of so many tasks."""
        if self.resources:
            return f"need{'s' * (many == 1)} {self.resources}, which no worker has"
        return f"{'is' if many == 1 else 'are'} to be on {self.workers}, which is not there"

    @property
    def fix(self) -> Fix:
        """What to do about it."""
        if not self.resources:
            return Fix(_WANTS)
        pairs = [one.rpartition("=")[::2] for one in self.resources.split(", ")]
        code = ", ".join(f"{name!r}: {amount}" for name, amount in pairs if _is_number(amount))
        text = _NEEDS.format(one=self.resources.replace(", ", " "))
        return Fix(text, _NEEDS_CODE.format(resources=code))


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One, for what was told first."""
    said = [label.split("\t") for _, _, label in recording.timeline.marks(WHY)]
    why = next((Why(*parts) for parts in said if len(parts) == 3), None)
    if why is None:
        return
    spans, most = _unrunnable(recording)
    steps = [s for s in recording.path_steps if s.what.step in _WAITS]
    cost = sum(length(clip(spans, s.start, s.stop)) for s in steps) / 1e9
    if cost >= limits["share"] * recording.wall:
        yield _finding(recording, why, most, cost)


def _unrunnable(recording: Recording) -> tuple[list[tuple[int, int, None]], int]:
    """When there were such tasks, by looks twice a second, and how many at most."""
    table, mine = recording.timeline.read("sample", "t"), rows_of(recording.store, MANY)
    order = np.argsort(table["t"][mine], kind="stable")
    t, many = table["t"][mine][order], table["value"][mine][order]
    until = np.append(t[1:], recording.timeline.region.stop)
    spans = [(int(a), int(b), None) for a, b, n in zip(t, until, many, strict=True) if n > 0]
    return [span for span in spans if span[0] < span[1]], int(many.max(initial=0))


def _finding(recording: Recording, why: Why, most: int, cost: float) -> Finding:
    where = _where(recording, why.prefix)
    return Finding(
        rule=RULE.id,
        severity=severity((cost, cost), recording.wall),
        headline=(
            f"{count(most, 'task')} (`{why.prefix}`{made_at(where.file, where.line)}) "
            f"{why.said(most)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.SCHEDULING,
        evidence={
            "tasks": most,
            "resources": why.resources,
            "workers": why.workers,
            "waited_s": cost,
        },
        cost_s=cost,
        saving_s=(cost, cost),
        fix=why.fix,
        where=where,
        cause="no worker",
    )


def _where(recording: Recording, prefix: str) -> Where:
    """The layer, if a task of it ran; else the line that handed over the last graph."""
    row = next((row for row in recording.groups.rows if row.prefix == prefix), None)
    if row is not None and row.line:
        return Where(row.file, row.line, "", row.layer, prefix)
    submits = [graph.submit for graph in recording.timeline.graphs if graph.submit]
    last = submits[-1] if submits else None
    return Where(recording.store.strings[last.file], last.line) if last else Where()


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


RULE = Rule(
    id="no-worker-fits",
    stage=Stage.SCHEDULING,
    summary="Tasks need a resource, or are to be on a worker, that is not there.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.05, "of the wall time in waiting: a worker may be on its way"),
    },
    # That there was no worker says less than which.
    instead_of=frozenset({"late-workers"}),
)
