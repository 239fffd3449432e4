"""How far `stageprof compare` is right: against itself, and against planted delays.

Run ``python benchmarks/regressions.py POOL --more 10`` until there are enough recordings (each
round adds some clean ones and one per stage with a delay planted there, in random order, so that
what the machine does meanwhile is alike for all), then
``python benchmarks/regressions.py POOL --write docs/regressions.md``.

What the statistics are was chosen by other recordings than those that are reported.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Self

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

import psutil
from distributed import Client, LocalCluster

import stageprof
from benchmarks import suspect
from benchmarks.overhead import machine
from stageprof_collectors.comparison.blame import explained
from stageprof_collectors.comparison.comparison import Compared, compared
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.measured import Cell, Group, Measured, measure
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import SIX, Stage

#: Clean recordings of a round, beside one for each stage.
CLEAN: Final = 3
#: What is planted: this share of what the stage takes.
PLANTED: Final = 0.10
#: CPUs that others may keep busy during a round; more, and it does not count, whatever it shows.
DISTURBED: Final = 0.25
#: Clean runs by which it is known what a stage takes.
MEASURED: Final = 7


# -- the pool of recordings -----------------------------------------------------------------------


def more(pool: Path, rounds: int, until: float) -> None:
    """Add rounds to the pool, on one cluster, until `until` (seconds of `time.monotonic`)."""
    pool.mkdir(parents=True, exist_ok=True)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for _ in range(3):  # what is imported and compiled for the first time
            recorded(client, {}, None)
        delays = plan(pool, client)
        for _ in range(rounds):
            began = time.monotonic()
            one_round(pool, client, delays)
            if time.monotonic() + (time.monotonic() - began) > until:
                break


def recorded(
    client: Client, delays: Mapping[str, float], path: Path | None
) -> tuple[stageprof.Recording, float]:
    """One run of the program, and the seconds that its delays really took."""
    suspect.prepare(client, delays)
    # Else what earlier runs left would be looked through in some runs and not in others.
    gc.collect()
    gc.freeze()
    with stageprof.profile(path, client=client, label="suspect") as region:
        suspect.program(client, delays)
    gc.unfreeze()
    return region.recording, suspect.taken() + sum(client.run(suspect.taken).values())


def plan(pool: Path, client: Client) -> dict[str, float]:
    """How many seconds are planted in each stage; measured once for a pool."""
    path = pool / "plan.json"
    if not path.exists():
        runs = [recorded(client, {}, None)[0].stages()["wall_s"] for _ in range(MEASURED)]
        usual = {str(s): statistics.median(float(run[s]) for run in runs) for s in SIX}
        path.write_text(json.dumps({s: PLANTED * took for s, took in usual.items()}, indent=1))
    found: dict[str, float] = json.loads(path.read_text())
    return found


class Load(NamedTuple):
    """Seconds of CPU that were taken on this machine until an instant, by all and by us."""

    at: float
    everybody: float
    ours: float

    @classmethod
    def now(cls) -> Self:
        """Until now."""
        times, me = psutil.cpu_times(), psutil.Process()
        mine = [each.cpu_times() for each in (me, *me.children(recursive=True))]
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0)
        return cls(time.monotonic(), busy, sum(each.user + each.system for each in mine))

    def others(self, before: Load) -> float:
        """How many CPUs others kept busy since then."""
        return (self.everybody - before.everybody - self.ours + before.ours) / (self.at - before.at)


def one_round(pool: Path, client: Client, delays: Mapping[str, float]) -> None:
    """Record the program clean and with each delay, in random order."""
    folder = pool / f"{len(list(pool.glob('round-*'))):03}.part"
    folder.mkdir(exist_ok=True)
    kinds = [*(f"clean-{i}" for i in range(CLEAN)), *map(str, SIX)]
    Random().shuffle(kinds)
    truth, before = {}, Load.now()
    for kind in kinds:
        planted = {kind: delays[kind]} if kind in delays else {}
        _, truth[kind] = recorded(client, planted, folder / f"{kind}.stageprof")
    told = {"planted_s": truth, "others": Load.now().others(before)}
    (folder / "truth.json").write_text(json.dumps(told, indent=1))
    folder.rename(pool / f"round-{folder.stem}")
    print(f"{folder.stem}: {len(kinds)} recordings", file=sys.stderr, flush=True)


# -- the study ------------------------------------------------------------------------------------

#: Recordings a side, comparisons of the program with itself, and trials for each stage.
SIDE, ALIKE, TRIALS = 7, 200, 100
#: What more recordings a side would find.
MORE: Final = (10, 14)

Kinds = Mapping[str, list[Measured]]


def kinds(pool: Path) -> tuple[Kinds, int]:
    """What is kept of the recordings of a pool, in the order of rounds, by what was planted.

    Also how many rounds are left out, for others kept the machine busy meanwhile.
    """
    found: defaultdict[str, list[Measured]] = defaultdict(list)
    disturbed = 0
    for folder in sorted(pool.glob("round-*")):
        if json.loads((folder / "truth.json").read_text())["others"] > DISTURBED:
            disturbed += 1
            continue
        for path in sorted(folder.glob("*.stageprof")):
            found[path.stem.partition("-")[0]].append(measure(Recording.open(path)))
    return found, disturbed


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
    """A recording as it would be if its stage took longer where delays are planted."""
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
    #: what is found with more recordings a side, as shares of trials
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
        others = [planted(found, stage, delays[stage], random, side) for side in MORE]
        shares = [other.found / other.number for other in others]
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
        f"| another stage called slower, too | smallest found by {SIDE} | {more} |"
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
        *(f"{share:.0%}" for share in row.more),
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
        given.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
