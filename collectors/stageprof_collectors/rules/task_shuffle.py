"""A shuffle or rechunk by tasks, of which there are far more than the P2P method needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.exchange import (
    TIMES,
    Exchange,
    Exchanges,
    Method,
    p2p_tasks,
)
from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.advice import exchanged
from stageprof_collectors.findings.crowd import Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = frozenset({STEP["compute"]})

_TEXT: Final = (
    "Use the P2P {what}: the workers exchange the {rows} among themselves, with about {p2p:,} "
    "tasks instead of {now:,}, whose number grows with the square of the {pieces} no more. Set it "
    "before the collection is made, and take away where your code or configuration asks for "
    '"tasks". It needs the distributed scheduler, and writes to the workers\' disks on its way'
    "{types}."
)
_TYPES: Final = (
    ", in Arrow's types: a frame with columns for which Arrow has none (complex numbers, sparse "
    'ones, some objects) stays with "tasks"'
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for frames and one for arrays."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    exchanges = Exchanges(recording)
    for arrays in (False, True):
        exchange = exchanges.of(Method.TASKS, arrays=arrays)
        if exchange is None or len(exchange.rows) < limits["tasks"]:
            continue
        p2p = p2p_tasks(recording, exchange)
        if len(exchange.rows) >= limits["times"] * p2p:
            yield _finding(recording, exchange, p2p)


def _finding(recording: Recording, exchange: Exchange, p2p: int) -> Finding:
    line, rows = exchange.line, exchange.rows
    row = Row(exchange.layer, "", line.file, line.line)
    label = f"{line.file}:{line.line}"
    crowd = Crowd(Kind.CHUNKS, rows, row, frozenset({label} if line.file else ()))
    overhead = Overhead(recording, crowd)
    saved = recording.replay.saving(_change(recording, exchange, overhead, len(rows) / p2p))
    cost = overhead.seconds + cost_of(recording, steps=_COMPUTE, runs=exchange.cuts.tolist())
    what = "rechunk" if exchange.arrays else "shuffle"
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"A {what} by tasks{made_at(line.file, line.line)} makes {len(rows):,} tasks where P2P "
            f"would make about {p2p:,}: what they cost beside the rows' way is "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "tasks": len(rows),
            "p2p_tasks": p2p,
            "overhead_each_s": overhead.each_s,
            "overhead": seconds(cost),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(exchange, p2p, what),
        where=Where(line.file, line.line, "", exchange.layer, ""),
        cause=crowd.cause,
    )


def _change(recording: Recording, exchange: Exchange, overhead: Overhead, times: float) -> Change:
    """So many times fewer tasks; those that only cut do no work that remains."""
    compute = np.ones(len(recording.timeline.runs["run"]))
    compute[exchange.cuts] = 0.0
    return replace(overhead.merged(times), compute=compute)


def _fix(exchange: Exchange, p2p: int, what: str) -> Fix:
    arrays = exchange.arrays
    text = _TEXT.format(
        types="" if arrays else _TYPES,
        what=what,
        rows="pieces" if arrays else "rows",
        pieces="chunks" if arrays else "partitions",
        p2p=p2p,
        now=len(exchange.rows),
    )
    return Fix(text, exchanged("p2p", arrays=arrays))


RULE = Rule(
    id="task-shuffle",
    stage=Stage.COMMUNICATION,
    summary="A shuffle or rechunk by tasks makes many more tasks than P2P would.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "tasks": Limit(500, "a task costs about a millisecond: fewer never cost a second"),
        "times": Limit(TIMES, "more tasks than P2P: it has costs of its own, such as the disk"),
    },
)
