"""One task with a long name makes nobody else's long."""

from __future__ import annotations

import tracemalloc

from findings.crowded import FILE, WORKER, Program, calls, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import STACK


def seen(names: list[str], tasks: int = 1) -> Recording:
    """So many tasks of each name, all of which were looked at while they ran Python."""
    made = Program()
    for i, name in enumerate(names):
        made.tasks(calls(tasks, name), work=50.0)
        look = (name, f"{FILE}:{i} f{i}", "python", "load", 100, 50_000_000 * tasks)
        made.rows[WORKER].append((STACK, ns(made.now), *look))
    return made.recording()


def peak(names: list[str]) -> int:
    """Bytes that the findings take at most."""
    recording = seen(names, 3_000)
    tracemalloc.start()
    assert recording.findings()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_a_name_of_a_thousand_letters_takes_the_memory_of_a_short_one() -> None:
    peak(["short"])  # what is made once
    assert peak(["short", "q" * 1000]) < 2 * peak(["short", "q"])
