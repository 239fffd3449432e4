"""Cost against size, from a thousand to ten million tasks: a table and a picture of it.

Run ``python benchmarks/scale.py [--sizes N ...] [--folder DIR] [--write]`` or ``make bench-scale``.
A process of its own makes the events of `flood`, a worker for every ten thousand tasks, and sends
them through a pipe, 200,000 a second at most, to another that does nothing but collect them. Then
fresh processes open what was recorded, ask for the account, the findings, and compare it with
itself. In `--folder` recordings and figures are kept; what is there is not measured again.

CPU seconds for what is collected, for the pipe is slower than the collector; seconds for the rest.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from benchmarks.flood import Flood, receive
from benchmarks.flood import send as write_batches
from benchmarks.page import machine, write
from benchmarks.picture import Line, loglog

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
RATE: Final = 200_000
#: What is drawn, and its name there.
DRAWN: Final = {
    "recording_s": "recording",
    "opening_s": "opening",
    "account_s": "account",
    "findings_s": "findings",
    "compare_s": "compare",
}
#: The most that each figure may be for ten million tasks.
TARGETS: Final = {
    "collecting_mib": 1024,
    "bytes_per_task": 40,
    "account_s": 10,
    "findings_s": 30,
}
SLOPE: Final = 1.05
#: Below, the fixed cost of a process hides what a task costs.
STEEP: Final = 100_000

Figures = dict[str, float]


def workers(tasks: int) -> int:
    """One for every ten thousand tasks, four at least."""
    return min(1000, max(4, tasks // 10_000))


def peak_mib() -> float:
    """Most memory that this process took so far (`getrusage` counts its parent's, too)."""
    with Path("/proc/self/status").open(encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


# -- steps, each in a process of its own ----------------------------------------------------------


def send(_path: Path, tasks: int) -> Figures:
    """Make the events of so many tasks, and write them to the standard output."""
    flood = Flood(tasks, workers(tasks))
    return {"tasks": flood.tasks, **write_batches(sys.stdout.buffer, flood.stream(), RATE)}


def record(path: Path, tasks: int) -> Figures:
    """Collect the events of so many tasks into a file."""
    from stageprof_collectors.storage.collector import Collector

    command = [sys.executable, __file__, "--step", "send", "-", f"--sizes={tasks}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as sender:
        assert sender.stdout is not None
        assert sender.stderr is not None
        bare, waiting = peak_mib(), 0
        collector = Collector(path, "benchmarks.scale")
        begun = time.process_time()
        for batch in receive(cast(BinaryIO, sender.stdout)):
            collector.take(batch)
            waiting = max(waiting, len(collector._waiting))
        sent = json.loads(sender.stderr.read())
        _finish(collector)
        used, peak = time.process_time() - begun, peak_mib()
    return {
        **sent, "recording_s": used, "events_per_cpu_s": sent["events"] / used,
        "events_per_s": sent["events"] / sent["seconds"], "waiting": waiting,
        "collecting_mib": peak, "imports_mib": bare,
        "bytes_per_task": path.stat().st_size / sent["tasks"],
    }  # fmt: skip


def _finish(collector: Any) -> None:
    """What `Collector.close` does, but for opening the recording."""
    collector._finish()
    collector._writer.close()


def read(path: Path, _tasks: int) -> Figures:
    """Open a recording, and ask it what everybody asks."""
    import stageprof
    from stageprof_runtime.event import TABLES

    found: Figures = {"bare_mib": peak_mib()}

    def timed(name: str, ask: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        answer = ask()
        found[f"{name}_s"] = time.perf_counter() - begun
        found[f"{name}_mib"] = peak_mib()
        return answer

    def opened() -> Any:
        """With every column: of a small recording they would be made later."""
        recording = stageprof.open(path)
        for name in TABLES.values():
            recording.store.table(name)
        return recording

    recording = timed("opening", opened)
    timed("account", recording.stages)
    timed("findings", recording.findings)
    store = recording.store
    found["stored"] = sum(store.rows(name) for name in TABLES.values())
    found["lost"] = sum(origin.lost for origin in store.origins)
    return found


def compare(path: Path, _tasks: int) -> Figures:
    """Compare a recording with itself."""
    import stageprof

    begun = time.perf_counter()
    stageprof.compare(path, path, force=True)
    return {"compare_s": time.perf_counter() - begun, "compare_mib": peak_mib()}


STEPS: Final[Mapping[str, Callable[..., Figures]]] = {
    "record": record,
    "read": read,
    "compare": compare,
}


def measure(tasks: int, folder: Path) -> Figures:
    """The figures of one size; those that the folder has are taken from there."""
    path, known = folder / f"{tasks}.stageprof", folder / f"{tasks}.json"
    figures: Figures = json.loads(known.read_text()) if known.exists() else {}
    for step in STEPS:
        if step not in figures:
            command = [sys.executable, __file__, "--step", step, f"{path}", f"--sizes={tasks}"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            figures |= json.loads(done.stdout) | {step: 1}
            known.write_text(json.dumps(figures))
    return figures


# -- what is said of them -------------------------------------------------------------------------


def slope(points: Mapping[int, float], least: int = 0) -> float:
    """Of the logarithms, by least squares; NaN if there are not two points from `least` on."""
    pairs = [(math.log(x), math.log(y)) for x, y in points.items() if x >= least and y > 0]
    if len(pairs) < 2:
        return math.nan
    mx, my = (sum(values) / len(pairs) for values in zip(*pairs, strict=True))
    products = sum((x - mx) * (y - my) for x, y in pairs)
    return float(products / sum((x - mx) ** 2 for x, _ in pairs))


def table(found: Mapping[int, Figures]) -> str:
    """All figures as a markdown table, and the slopes below."""
    head = ["tasks", "workers", *DRAWN.values(), "B/task", "MiB collecting", "MiB findings"]
    lines = [f"| {' | '.join(head)} |", "|--:" * len(head) + "|"]
    for tasks, f in found.items():
        cells = [f"{tasks:,}", f"{workers(tasks):,}", *(f"{f[name]:,.3g} s" for name in DRAWN)]
        cells += [f"{f['bytes_per_task']:.1f}", f"{f['collecting_mib']:,.0f}"]
        lines.append(f"| {' | '.join([*cells, format(f['findings_mib'], ',.0f')])} |")
    for least in (0, STEEP):
        cells = [f"{slope({n: f[name] for n, f in found.items()}, least):.2f}" for name in DRAWN]
        label = f"slope from {max(least, min(found)):,}"
        lines.append(f"| {' | '.join([label, '', *cells, '', '', ''])} |")
    return "\n".join(lines)


def remarks(tasks: int, f: Figures) -> str:
    """How the largest recording was collected, and what of it was lost."""
    missing = int(f["events"] - f["stored"])
    return (
        f"{tasks:,} tasks: {f['events']:,.0f} events came at {f['events_per_s']:,.0f} a second; "
        f"the collector could take {f['events_per_cpu_s']:,.0f} on one core "
        f"(target {RATE:,}), {f['waiting']:,.0f} batches waited for it at most, and it took "
        f"{f['collecting_mib']:,.0f} MiB. {missing:,} events are missing, {f['lost']:,.0f} batches "
        "are said to be lost."
    )


def missed(figures: Figures) -> list[str]:
    """Targets for ten million tasks that were not reached."""
    return [f"{name}: {figures[name]:,.1f}, target {most}"
            for name, most in TARGETS.items() if figures[name] > most]  # fmt: skip


def main() -> None:
    """Measure, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options.add_argument("--folder", type=Path, help="keep recordings and figures here")
    options.add_argument("--write", action="store_true", help="to benchmarks/SCALE.md, scale.svg")
    options.add_argument("--step", nargs=2, metavar=("STEP", "PATH"), help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.step:
        step, path = given.step
        if step == "send":  # whose standard output is the stream
            sys.stderr.write(json.dumps(send(Path(path), given.sizes[0])))
        else:
            print(json.dumps(STEPS[step](Path(path), given.sizes[0])))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = {tasks: measure(tasks, folder) for tasks in sorted(given.sizes)}
    largest = max(found)
    said = "\n\n".join([table(found), remarks(largest, found[largest]), machine()])
    print(said)
    if largest == max(SIZES):
        print("\n".join(missed(found[largest])))
    if given.write:
        here = Path(__file__).parent
        write(here / "SCALE.md", "scale", said)
        lines = [Line(name, {n: f[key] for n, f in found.items()}) for key, name in DRAWN.items()]
        (here / "scale.svg").write_text(loglog(lines, "tasks", "seconds"))


if __name__ == "__main__":
    main()
