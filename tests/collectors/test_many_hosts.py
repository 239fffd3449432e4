"""A recording of many workers, each on a host of its own, costs about so many times one's."""

from __future__ import annotations

from findings.crews import Crewed
from findings.crowded import Program
from replay.handmade import CLIENT, SCHEDULER, ns
from spent import spent
from stageprof_collectors.others import beside
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import HOLD, MARK, SAMPLE, SHARE, SPAN
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


def embedding(workers: int) -> Recording:
    """So many with twenty tasks each, all of which carry the same object in their messages."""
    made, layer, tasks = Crewed(workers), f"apply-{'0' * 32}", 20 * workers
    graph = made.graph(0, 1, 2)
    held = Program()
    held.embedded(layer, nbytes=1_000_000)
    made.rows_of(CLIENT).extend(held.rows[CLIENT])
    for i in range(tasks):
        w, t, step = i % workers, 3.0 + i, STEP["task.dump"]
        made.rows_of(SCHEDULER).append((SPAN, step, ns(t), ns(t + 0.5), 1, "", 1_000_100))
        last = made.run(w, t + 2, t + 9, cause=-1 - graph, lead=(t, t + 1), key=(layer, i))
    row = (SHARE, ns(tasks), STEP["task.dump"], layer, tasks, tasks * 500_000, tasks * 1_000_100)
    made.rows_of(SCHEDULER).append(row)
    made.wait(2, tasks + 14, last, tasks + 13)
    return made.recording(tasks + 15)


def seconds(recording: Recording) -> float:
    """Of the processor that findings take, and what others did on the hosts."""
    return spent(lambda: (recording.findings(), beside(recording)))


def test_eight_times_the_hosts_take_about_eight_times_as_long() -> None:
    """Not 64 times, as where each host, place or worker is looked for among all the others'."""
    seconds(crewed(10))  # what is made once
    assert seconds(crewed(960)) < 20 * seconds(crewed(120))


def test_an_object_in_all_messages_costs_by_message_not_by_message_and_worker() -> None:
    assert any(f.rule == "embedded-object" for f in embedding(10).findings())
    assert seconds(embedding(160)) < 8 * seconds(embedding(40))
