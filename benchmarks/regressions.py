"""How far `stageprof compare` is right: against itself, and against planted delays.

Run ``python benchmarks/regressions.py POOL --more 10`` until there are enough recordings (each
round adds some clean ones and one per stage with a delay planted there, in random order, so that
what the machine does meanwhile is alike for all), then
``python benchmarks/regressions.py POOL --write docs/regressions.md``.

What the statistics are was chosen by other recordings than those that are reported.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))


from benchmarks import suspect
from benchmarks.page import machine
from benchmarks.pool import DISTURBED, PLANTED, Kinds, kinds, more
from stageprof_collectors.comparison.blame import explained
from stageprof_collectors.comparison.comparison import Compared, compared
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.measured import Cell, Group, Measured
from stageprof_runtime.stage import SIX, Stage

# -- the study ------------------------------------------------------------------------------------

#: Recordings a side, comparisons of the program with itself, and trials for each stage.
SIDE, ALIKE, TRIALS = 7, 200, 100
#: What more recordings a side would find.
MORE: Final = (10, 14)


@dataclass
class Alike:
    """Comparisons of the program with itself: how many, and what the false alarms were."""

    number: int = 0
    alarms: list[list[str]] = field(default_factory=list)

    def take(self, found: Compared) -> None:
        """Note one."""
        self.number += 1
        if found.regressions:
            self.alarms.append(worse(found))


def worse(found: Compared) -> list[str]:
    """What is worse, by name."""
    names = [t.name for t in found.times if t.judged == Judged.WORSE]
    names += [c.what.name for c in found.counts if c.judged == Judged.WORSE]
    return names + [f.rule for f in found.findings if f.judged == Judged.WORSE]


def alike(clean: Sequence[Measured], random: Random, number: int = ALIKE) -> Alike:
    """Recordings of the same program against others of it, drawn at random."""
    found = Alike()
    for _ in range(number):
        drawn = random.sample(clean, 2 * SIDE)
        found.take(compared(drawn[:SIDE], drawn[SIDE:]))
    return found


def later(clean: Sequence[Measured]) -> Alike:
    """Recordings against those that were made right after them: what the machine does counts."""
    found = Alike()
    for i in range(len(clean) - 2 * SIDE + 1):
        found.take(compared(clean[i : i + SIDE], clean[i + SIDE : i + 2 * SIDE]))
    return found


@dataclass
class Planted:
    """Trials with a delay planted in one stage: in how many it was found, and blamed right."""

    stage: Stage
    before_s: float
    planted_s: float
    number: int = 0
    found: int = 0
    of_stage: int = 0
    of_layer: int = 0
    of_line: int = 0
    #: trials in which another stage was called slower, too
    others: int = 0

    def take(self, found: Compared) -> None:
        """Note one."""
        self.number += 1
        slower = [t.name for t in found.times[1:] if t.judged == Judged.WORSE]
        self.others += any(name != self.stage for name in slower)
        if self.stage not in slower:
            return
        self.found += 1
        first = found.blames[0]
        layer, line = explained(first.layers), explained(first.lines)
        self.of_stage += first.stage == self.stage
        self.of_layer += layer is not None and layer.name == suspect.LAYERS[self.stage]
        self.of_line += line is not None and line.line == suspect.LINES[self.stage]


def planted(
    found: Kinds, stage: Stage, seconds: float, random: Random, side: int = SIDE
) -> Planted:
    """Clean recordings against as many with a delay planted in a stage."""
    clean = found["clean"]
    trials = Planted(stage, statistics.median(each.stages[stage] for each in clean), seconds)
    for _ in range(TRIALS):
        base, head = (random.sample(found[kind], side) for kind in ("clean", str(stage)))
        trials.take(compared(base, head))
    return trials


#: Shares that are tried to see which is found, and how often it must be.
SHARES: Final = (0.05, 0.10, 0.15, 0.20, 0.30, 0.50, 1.0)
AIM: Final = 0.95


def smallest(clean: Sequence[Measured], stage: Stage, random: Random) -> float:
    """The smallest share that is found often enough, were it added to clean recordings."""
    usual = statistics.median(each.stages[stage] for each in clean)
    for share in SHARES:
        missed = 0
        for _ in range(TRIALS):
            drawn = random.sample(clean, 2 * SIDE)
            head = [longer(each, stage, share * usual) for each in drawn[SIDE:]]
            times = compared(drawn[:SIDE], head).times
            missed += not any(t.name == stage and t.judged == Judged.WORSE for t in times)
            if missed > (1 - AIM) * TRIALS:
                break
        else:
            return share
    return float("inf")


def longer(each: Measured, stage: Stage, seconds: float) -> Measured:
    """A recording as it would be if its stage computed for longer where delays are planted."""
    group = Group(suspect.LAYERS[stage], "suspect.py", suspect.LINES[stage])
    cells, steps = dict(each.cells), suspect.STEPS[stage]
    for step in steps:
        cell = Cell(stage, step, group)
        cells[cell] = cells.get(cell, 0.0) + seconds / len(steps)
    stages = {**each.stages, stage: each.stages[stage] + seconds}
    return replace(each, cells=cells, stages=stages, wall_s=each.wall_s + seconds)


def noise(clean: Sequence[Measured], stage: Stage) -> float:
    """By how much a stage varies from run to run: the usual distance from its median, a share."""
    took = [each.stages[stage] for each in clean]
    middle = statistics.median(took)
    return 1.4826 * statistics.median(abs(each - middle) for each in took) / middle


class Row(NamedTuple):
    """What came out for one stage."""

    trials: Planted
    #: what is found with more recordings a side, as shares of trials; NaN if there are not enough
    more: list[float]
    #: by how much it varies, and the smallest share that is found
    varies: float
    least: float


@dataclass
class Study:
    """What came out."""

    runs: dict[str, int]
    #: rounds that do not count
    disturbed: int
    same: Alike
    later: Alike
    rows: list[Row]


def study(pool: Path) -> Study:
    """All of it; the draws are seeded."""
    delays = json.loads((pool / "plan.json").read_text())
    found, disturbed = kinds(pool)
    random, clean = Random(7), found["clean"]
    rows = []
    same, after = alike(clean, random), later(clean)
    for stage in SIX:
        trials = planted(found, stage, delays[stage], random)
        shares = []
        for side in MORE:
            enough = min(len(found["clean"]) // 2, len(found[str(stage)])) >= side
            other = planted(found, stage, delays[stage], random, side) if enough else None
            shares.append(other.found / other.number if other else math.nan)
        rows.append(Row(trials, shares, noise(clean, stage), smallest(clean, stage, random)))
    runs = {kind: len(each) for kind, each in found.items()}
    return Study(runs, disturbed, same, after, rows)


# -- the page -------------------------------------------------------------------------------------

#: Between these lines of the page is what is written anew.
BEGIN: Final = "<!-- begin: benchmarks/regressions.py -->"
END: Final = "<!-- end -->"


def report(found: Study) -> Iterator[str]:
    """What came out, as lines of markdown."""
    clean = found.runs["clean"]
    yield f"{machine()}"
    yield ""
    yield (
        f"{clean} clean recordings, and {min(found.runs.values())} or more with each delay; left "
        f"out: {found.disturbed} rounds in which others kept more than {DISTURBED:g} CPUs busy."
    )
    yield ""
    alarms = ", ".join(sorted({name for alarm in found.same.alarms for name in alarm}))
    yield (
        f"- The program against itself, {SIDE} recordings a side drawn at random: "
        f"**{len(found.same.alarms)} of {found.same.number}** false alarms"
        f"{f' ({alarms})' if alarms else ''}; aimed at: 2."
    )
    yield (
        f"- {SIDE} recordings against the next {SIDE}: {len(found.later.alarms)} of "
        f"{found.later.number} (these overlap)."
    )
    trials = [row.trials for row in found.rows]
    total, hits = sum(t.number for t in trials), sum(t.found for t in trials)
    right = sum(min(t.of_stage, t.of_layer, t.of_line) for t in trials)
    of = f"**{hits / total:.0%}** of {total} trials"
    yield f"- A planted +{PLANTED:.0%} found in {of}; aimed at: {AIM:.0%}."
    yield (
        f"- Of those blamed on the right stage, layer and line: **{right / max(hits, 1):.0%}**; "
        f"aimed at: {AIM:.0%}."
    )
    yield ""
    more = " | ".join(f"found by {side}" for side in MORE)
    yield (
        f"| stage | takes | varies by | planted | found by {SIDE} | right stage | layer | line "
        f"| another stage called slower, too | smallest found by {SIDE} if it computes | {more} |"
    )
    yield "|---" * (10 + len(MORE)) + "|"
    yield from map(_row, found.rows)


def _row(row: Row) -> str:
    t = row.trials
    of = (
        f"{hits / t.found:.0%}" if t.found else "-" for hits in (t.of_stage, t.of_layer, t.of_line)
    )
    cells = (
        str(t.stage),
        f"{t.before_s * 1e3:.0f} ms",
        f"{row.varies:.1%}",
        f"{t.planted_s * 1e3:.0f} ms",
        f"**{t.found / t.number:.0%}**",
        *of,
        f"{t.others / t.number:.0%}",
        f"+{row.least:.0%}",
        *("-" if math.isnan(share) else f"{share:.0%}" for share in row.more),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Record, or compare and report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("pool", type=Path, help="the folder of the recordings")
    options.add_argument("--more", type=int, default=0, metavar="ROUNDS")
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no more then")
    options.add_argument("--write", type=Path, help="the page that holds the table")
    given = options.parse_args()
    if given.more:
        more(given.pool, given.more, time.monotonic() + given.seconds)
        return
    text = "\n".join(report(study(given.pool)))
    print(text)
    if given.write is not None:
        page = given.write.read_text()
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        given.write.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
