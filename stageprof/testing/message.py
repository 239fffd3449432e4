"""What a test that exceeds its limits fails with: few lines, the first of which says most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stageprof.testing.judgement import Found, TooLong
from stageprof.testing.limits import Most
from stageprof.testing.seen import Spot
from stageprof_collectors.findings.phrase import at, worth
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.text import safe


class Verdict(NamedTuple):
    """What is to be told of a test, or of a block of it."""

    block: str
    exceeded: Sequence[TooLong | Found]
    #: wall seconds of each recording
    walls: Sequence[float]
    #: one of the recordings; "" if none was kept
    file: str


def text(verdicts: Sequence[Verdict]) -> str:
    """The message of a failure."""
    return "\n".join(line for verdict in verdicts for line in _lines(verdict))


def unjudged(reason: str) -> str:
    """The message where limits could not be judged."""
    return f"stageprof: the limits cannot be judged ({safe(reason, limit=500)})"


def _lines(verdict: Verdict) -> Iterator[str]:
    block = f"block {safe(verdict.block)}: " if verdict.block else ""
    wall = sum(verdict.walls) / len(verdict.walls)
    for what in verdict.exceeded:
        said = _late(what) if isinstance(what, TooLong) else _found(what, len(verdict.walls), wall)
        yield f"stageprof: {block}{said[0]}"
        yield from (f"  {line}" for line in said[1:])
    yield f"  {_judged(verdict.walls)}"
    if verdict.file:
        yield f"  stageprof show --findings {safe(shlex.quote(verdict.file), limit=500)}"
    else:
        yield "  pytest --stageprof keeps the recordings, for: stageprof show --findings FILE"


def _judged(walls: Sequence[float]) -> str:
    if len(walls) == 1:
        return f"judged by one recording of {seconds(walls[0])}"
    least, most = seconds(min(walls)), seconds(max(walls))
    return f"judged by the median of {count(len(walls), 'recording')} ({least} to {most})"


def _late(late: TooLong) -> list[str]:
    what = "the test" if late.stage is None else str(late.stage)
    part = f" of {seconds(late.wall_s)} wall time" if late.stage is not None else ""
    took, limit = _amounts(late.value, late.limit)
    head = f"{what} took {took}{part}, the limit is {limit}"
    return [f"{head}: {_spot(late.spot)}" if late.spot else head]


def _amounts(value: float, limit: Most) -> tuple[str, str]:
    """What was seen and the limit, in as many digits as it takes to see which is more."""
    form = _percent if limit.is_share else seconds
    took, most = form(value), form(limit.value)
    if took != most:
        return took, most
    factor, unit = (100, "%") if limit.is_share else (1, "s")
    return f"{value * factor:.9g} {unit}", f"{limit.value * factor:.9g} {unit}"


def _percent(value: float) -> str:
    return f"{value * 100:.3g} %"


def _spot(spot: Spot) -> str:
    row = spot.row
    where = at(row.file, row.line)
    layer = f"layer {safe(row.prefix or row.layer)}" if row.layer else "no single layer"
    made = f", made at {safe(where)}" if where else ""
    return f"{seconds(spot.seconds)} in {spot.stage} {spot.step} of {layer}{made}"


def _found(found: Found, of: int, wall_s: float) -> list[str]:
    finding = found.finding
    where = at(finding.where.file, finding.where.line)
    place = f" at {safe(where)}" if where else ""
    often = f" in {found.times} of {of} recordings" if of > 1 else ""
    head = f"{finding.severity} finding {safe(finding.rule)}{place}{often}"
    before, saving, _ = worth(finding, wall_s).sentence
    return [
        f"{head}: {safe(finding.headline, limit=200)}",
        f"{before}{saving}: {safe(finding.fix.text, limit=300)}",
    ]
