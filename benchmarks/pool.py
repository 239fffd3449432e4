"""The pool of recordings that the study of regressions draws from: a program, clean and delayed."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Self

import psutil
from distributed import Client, LocalCluster

import stageprof
from benchmarks import suspect
from stageprof_collectors.comparison.measured import Measured, measure
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import SIX

#: Clean recordings of a round, beside one for each stage.
CLEAN: Final = 3
#: What is planted: this share of what the stage takes.
PLANTED: Final = 0.10
#: CPUs that others may keep busy during a round; more, and it does not count, whatever it shows.
DISTURBED: Final = 0.25
#: Clean runs by which it is known what a stage takes.
MEASURED: Final = 7

#: Recordings by what was planted.
Kinds = Mapping[str, list[Measured]]


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
