"""A recording of many workers, each on a host of its own, costs about so many times one's."""

from __future__ import annotations

import time

from findings.crews import Crewed
from replay.handmade import ns
from stageprof_collectors.others import beside
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import HOLD, MARK, SAMPLE, SPAN
from stageprof_runtime.stage import STEP

#: What a worker's samples say at the beginning, and by how much it is more each time.
SAMPLES = {
    "host.busy_s": (100.0, 0.1),
    "host.cpus": (1.0, 0.0),
    "process.cpu_s": (1.0, 0.08),
    "memory.process": (5e8, 1e6),
    "gil.contention": (0.5, 0.0),
    "gc.pause_s": (0.06, 0.0),
    "loop.stall_s": (0.15, 0.0),
}
STOP = 1000.0


def crewed(workers: int) -> Recording:
    """So many at once, each with four tasks, pauses of its collector and stalls of its loop."""
    made = Crewed(workers)
    graph = made.graph(0, 1, 2)
    for w in range(workers):
        made.on_host(w, f"node-{w}")
    for t in range(10, 900, 200):
        last = [made.run(w, t, t + 150, cause=-1 - graph) for w in range(workers)][-1]
    for place in made._workers:
        made.rows_of(place).extend(told(place.pid))
    made.wait(2, 960, last, 950)
    return made.recording(STOP)


def told(pid: int) -> list[tuple[object, ...]]:
    """What else a worker tells; no two hosts were as busy."""
    rows: list[tuple[object, ...]] = [(MARK, ns(0), "loop thread", "1")]
    for i in range(6):
        start, stop = ns(20 + 150 * i), ns(60 + 150 * i)
        for name, (first, more) in SAMPLES.items():
            apart = pid * (name == "host.busy_s")
            rows.append((SAMPLE, stop, name, first + apart + more * i))
        rows.append((HOLD, start, stop, 1, i % 2))
        rows.append((SPAN, STEP["task.load"], start, start + 1000, 1, "", 1000))
    return rows


def seconds(recording: Recording) -> float:
    """Of the processor that findings take, and what others did on the hosts."""
    begun = time.process_time()
    recording.findings()
    beside(recording)
    return time.process_time() - begun


def test_eight_times_the_hosts_take_about_eight_times_as_long() -> None:
    """Not 64 times, as where each host, place or worker is looked for among all the others'."""
    seconds(crewed(10))  # what is made once
    assert seconds(crewed(960)) < 20 * seconds(crewed(120))
