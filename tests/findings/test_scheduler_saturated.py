"""Rule scheduler-saturated: a busy scheduler beside idle threads, and from how many on (B43)."""

from __future__ import annotations

import pytest

import clusters
from findings.asking import asked, one, run
from findings.stood import SCHEDULER, Stood
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.scheduler_saturated import RULE
from stageprof_runtime.event import FLAME
from stageprof_runtime.stage import STEP

TASKS = 600


def crowded(
    *,
    busy: float = 0.9,
    looked: float = 0.0,
    tasks: int = TASKS,
    threads: int = 8,
    work: float = 0.3,
    each: float = 1.0,
    others: float | None = None,
) -> Recording:
    """Tasks of `work` ms, one handed out every `each` ms by a loop that is busy for a share.

    `looked` is the part of the time in which it was seen at something; `others` is how many of two
    processors other programs kept busy, if that is known.
    """
    made = Stood(1, threads)
    graph = made.graph(0, 0, 0)
    last = -1
    for i in range(tasks):
        cause = -1 - graph if i == 0 else last
        start = i * each
        last = made.run(
            0, start, start + work, cause=cause, needs=None if not i else [-1],
            lead=(start + min(work - each, 0), start), thread=i % threads,
            key=f"watched-{i:032x}", wanted=i == tasks - 1,
        )  # fmt: skip
    end = tasks * each + work
    made.wait(0, end, last, end)
    for t in range(0, int(end) + 100, 50):
        made.said(SCHEDULER, t, "loop.cpu_s", 7 + t / 1e3 * busy)
        seen = (FLAME, ns(t), STEP["transition"], "", "python", -1, 1, round(50e6 * looked))
        made._rows[SCHEDULER].append(seen)
    for place in made._rows if others is not None else ():
        made.said(place, 0, "host.cpus", 2)
        for at in (0.0, end):
            made.said(place, at, "host.busy_s", (others or 0) * at / 1e3)
            made.said(place, at, "process.cpu_s", 0)
    return made.recording(end)


def test_busy_scheduler_and_idle_threads_are_told_with_where_it_saturates() -> None:
    found = one(RULE, crowded())
    assert found.evidence["loop_busy_share"] == pytest.approx(0.9, abs=0.02)
    assert found.evidence["threads_idle_share"] == pytest.approx(1 - 0.3 / 8, abs=0.01)
    assert found.evidence["loop_each_s"] == pytest.approx(0.9e-3, rel=0.02)
    assert found.evidence["saturated_at_threads"] == pytest.approx(0.3 / 0.9, rel=0.02)
    assert "600 tasks, most of `watched`" in found.headline
    assert "about 1 thread busy, and there are 8" in found.fix.text


@pytest.mark.parametrize(
    ("facts", "fires"),
    [
        ({"busy": 0.52}, True),
        ({"busy": 0.48}, False),
        ({"busy": 0.3, "looked": 0.55}, True),  # it waits for a processor, or for the GIL
        ({"busy": 0.3, "looked": 0.45}, False),
        ({"busy": 0.09, "looked": 0.68, "others": 1.9}, False),  # the machine has none for it
        ({"busy": 0.52, "looked": 0.68, "others": 1.9}, True),
        ({"busy": 0.3, "looked": 0.55, "others": 0.2}, True),
        ({"tasks": 499}, False),
        ({"threads": 3}, False),
        ({"work": 5.0}, False),  # five of eight threads are busy
    ],
)
def test_it_fires_around_its_limits(facts: dict[str, float], fires: bool) -> None:
    assert bool(asked(RULE, crowded(**facts))) == fires  # type: ignore[arg-type]


def test_without_the_loops_time_nothing_is_said() -> None:
    made = Stood(1, 8)
    graph = made.graph(0, 0, 0)
    run_ = made.run(0, 1, 2, cause=-1 - graph, wanted=True)
    made.wait(0, 3, run_, 3)
    assert not asked(RULE, made.recording(3), tasks=1)


def test_printed_code_gives_the_same_results_in_fewer_tasks() -> None:
    found = one(RULE, crowded())
    with clusters.inside() as client:
        names = run(found, watched=lambda x: x + 1, inputs=list(range(300)), client=client)
    assert names["results"] == list(range(1, 301))
    assert len(names["batches"]) < 300
