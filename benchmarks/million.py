"""A million tasks: bytes a task takes in the file, and how fast it opens and is accounted.

Run ``python benchmarks/million.py [--tasks N] [--keep FILE]``. The recording is opened in a fresh
process, so that the seconds and the peak memory are those of a reader alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Run in a fresh process: open, build every numeric table, then print what that took.
_READER = """
import json, sys, time
import stageprof
from stageprof_runtime.event import TABLES

def peak():  # not getrusage: its maximum is that of the process that started this one, too
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

bare, begun = peak(), time.perf_counter()
recording = stageprof.open(sys.argv[1])
opened = time.perf_counter()
stages = recording.stages()
accounted = time.perf_counter()
before_keys, store = peak(), recording.store
keys = store.keys(store.table("assign")["key"])
print(json.dumps({
    "open_s": opened - begun, "stages_s": accounted - opened,
    "open_and_stages_s": accounted - begun, "peak_mib": before_keys, "imports_mib": bare,
    "keys_s": time.perf_counter() - accounted, "peak_with_keys_mib": peak(),
    "tasks": store.rows("run"), "distinct_keys": len(set(keys)), "batches": store.batches,
    "path_segments": len(recording.path_steps), "complete": store.complete,
    "missed_ns": int(1e9 * (recording.wall - stages["wall_s"].sum())),
}))
"""


def write(path: Path, tasks: int, seed: int) -> dict[str, float]:
    """Make the recording; what that took."""
    sys.path.insert(0, os.fspath(Path(__file__).parents[1]))
    from benchmarks.generate import generate

    begun = time.perf_counter()
    writer = generate(path, tasks=tasks, workers=16, threads=4, layers=4, seed=seed)
    return {
        "generate_s": time.perf_counter() - begun,
        "bytes_per_task": path.stat().st_size / tasks,
        "frames": writer.frames,
    }


def read(path: Path) -> dict[str, float]:
    """Open it in a fresh process; what that took."""
    command = [sys.executable, "-c", _READER, os.fspath(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print one line per figure."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", type=Path, help="write the recording here and keep it")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = given.keep or Path(folder) / "million.stageprof"
        for name, figure in {**write(path, given.tasks, given.seed), **read(path)}.items():
            print(
                f"{name:20} {figure:,.3f}" if isinstance(figure, float) else f"{name:20} {figure}"
            )


if __name__ == "__main__":
    main()
