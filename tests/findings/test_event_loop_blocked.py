"""Rule event-loop-blocked: loops that could do nothing, and what held them."""

from __future__ import annotations

import pytest

from findings.asking import asked, one, run
from findings.stood import SCHEDULER, Stood
from replay.handmade import ns
from stageprof_collectors.findings import blockage
from stageprof_collectors.findings.standing import GONE
from stageprof_collectors.others import Others
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.event_loop_blocked import RULE
from stageprof_runtime.event import RUN, SPAN, STACK
from stageprof_runtime.stage import STEP


def waiting(made: Stood) -> float:
    """The second worker fetches for 900 ms from the first, whose task runs meanwhile; five times.

    When the last has ended.
    """
    graph = made.graph(0, 0, 0)
    last, now = -1, 0.0
    for i in range(5):
        cause = -1 - graph if not i else last
        made.run(0, now, now + 900, cause=cause, key=f"entries-{i}")
        last = made.run(
            1, now + 900, now + 1000, cause=cause, lead=(now, now), fetched=now + 900,
            key=f"fitted-{i}", wanted=i == 4,
        )  # fmt: skip
        now += 1000
    made.wait(0, now, last, now)
    return now


def blocked(
    threads: int = 1, contention: float = 1.0, *, look: bool = True, cpu: float = 0
) -> Recording:
    made = Stood(2, threads)
    end = waiting(made)
    rows = made._rows[made._workers[0]]
    rows[:] = [(*r[:7], round(cpu * 1e6), r[8]) if r[0] == RUN else r for r in rows]
    for i in range(5):
        made.stalled(0, i * 1000 + 50, i * 1000 + 850)
        made.said(0, i * 1000 + 860, "gil.contention", contention)
    if look:
        row = (STACK, ns(1), "entries", "/home/u/etl.py:12 entries", "library", "entries", 5, 5)
        made._rows[made._workers[0]].append(row)
    return made.recording(end)


def test_what_a_blocked_loop_held_up_is_its_cost_and_who_held_it_is_named() -> None:
    found = one(RULE, blocked())
    assert found.cost_s == pytest.approx(4.0, abs=0.05)
    assert found.saving_s[0] == pytest.approx(4.0 * GONE, abs=0.1)
    assert found.saving_s[1] == pytest.approx(4.0, abs=0.1)
    assert "`entries` at etl.py:12" in found.headline
    assert found.evidence["stalls"] == 5
    assert found.evidence["longest_s"] == pytest.approx(0.8)


@pytest.mark.parametrize(("contention", "fires"), [(0.5, True), (0.49, False)])
def test_a_loop_that_was_late_for_want_of_a_processor_is_no_finding(
    contention: float, fires: bool
) -> None:
    assert bool(asked(RULE, blocked(contention=contention))) == fires


@pytest.mark.parametrize(
    ("cpu", "stall", "fires"), [(0.4, 150, True), (0.2, 150, False), (0.4, 90, False)]
)
def test_a_task_that_had_the_processor_in_a_long_stall_held_the_gil(
    cpu: float, stall: float, fires: bool
) -> None:
    """What samples of the GIL miss: a single long call."""
    made = Stood(2)
    end = waiting(made)
    for i in range(5):
        made.stalled(0, i * 1000 + 50, i * 1000 + 50 + stall)
    rows = made._rows[made._workers[0]]
    rows[:] = [(*r[:7], round(cpu * 900e6), r[8]) if r[0] == RUN else r for r in rows]
    assert bool(asked(RULE, made.recording(end))) == fires


@pytest.mark.parametrize(("full", "cpu", "cost"), [(False, 1, 4), (True, 1, 0), (True, 600, 3)])
def test_a_task_that_waits_for_a_processor_with_the_gil_holds_nothing(
    monkeypatch: pytest.MonkeyPatch, full: bool, cpu: float, cost: float
) -> None:
    """Each of 900 ms, in a stall of 800 ms: where others leave no processor it is what it has."""
    monkeypatch.setattr(blockage, "beside", lambda _: [(range(9), Others(1.8, 2, full=full))])
    recording = blocked(cpu=cpu)
    assert sum(f.cost_s for f in asked(RULE, recording)) == pytest.approx(cost, abs=0.05)


def test_the_loops_own_long_steps_are_not_told_here() -> None:
    made = Stood(2)
    end = waiting(made)
    made.said(0, 860, "gil.contention", 1.0)
    made.stalled(0, 50, 850)
    rows = made._rows[made._workers[0]]
    rows.append((4 + 3, ns(0), "loop thread", "5"))
    rows.append((SPAN, STEP["data.dump"], ns(50), ns(850), 5, "", 100))
    assert not asked(RULE, made.recording(end))


@pytest.mark.parametrize("by_a_task", [False, True])
def test_what_another_thread_pickles_is_not_told_here_unless_a_task_holds_both_up(
    by_a_task: bool,
) -> None:
    """The dump of a result takes the GIL for long; one that waits for it takes long as well."""
    made = Stood(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 950 if by_a_task else 50, cause=-1 - graph, key="entries-1")
    last = made.run(
        1, 950, 1000, cause=first, lead=(50, 50), fetched=950, key="fitted-1", wanted=True
    )
    made.said(0, 860, "gil.contention", 1.0)
    made.stalled(0, 50, 850)
    rows = made._rows[made._workers[0]]
    rows.append((SPAN, STEP["result.dump"], ns(50), ns(850), 9, "", 100))
    made.wait(0, 1000, last, 1000)
    assert bool(asked(RULE, made.recording(1000))) is by_a_task


def test_a_task_that_held_nothing_is_not_named() -> None:
    """Nothing ran when the loop stood still: a thread that nobody knows held the process."""
    made = Stood(2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 50, cause=-1 - graph, key="entries-1")
    last = made.run(
        1, 950, 1000, cause=first, lead=(50, 50), fetched=950, key="fitted-1", wanted=True
    )
    made.said(0, 860, "gil.contention", 1.0)
    made.stalled(0, 50, 850)
    made.wait(0, 1000, last, 1000)
    found = one(RULE, made.recording(1000))
    assert "while a thread held the process" in found.headline
    assert "entries" not in found.fix.text


def test_stalls_that_hold_nobody_up_are_not_told() -> None:
    made = Stood(2)
    end = waiting(made)
    made.stalled(0, 4910, 4990)
    made.said(0, 4995, "gil.contention", 1.0)
    assert not asked(RULE, made.recording(end), share=0.01)


def test_the_collector_is_named_where_it_was_the_one() -> None:
    made = Stood(2)
    end = waiting(made)
    for i in range(5):
        made.stalled(0, i * 1000 + 50, i * 1000 + 850)
        made.collected(0, i * 1000 + 100, i * 1000 + 840)
    found = one(RULE, made.recording(end))
    assert "the garbage collector" in found.headline
    assert found.cause == "gc"
    assert "default_client().run(gc.set_threshold" in found.fix.code


def test_a_scheduler_that_stood_still_is_named() -> None:
    made = Stood(1)
    graph = made.graph(0, 0, 0)
    run_ = made.run(0, 2000, 3000, cause=-1 - graph, lead=(0, 2000), wanted=True)
    made.wait(0, 3000, run_, 3000)
    made.stalled(SCHEDULER, 500, 1900)
    made.said(SCHEDULER, 1950, "gil.contention", 1.0)
    assert one(RULE, made.recording(3000)).headline.startswith("The scheduler's event loop")


def test_code_for_one_thread_does_the_work_in_pieces_with_the_same_result() -> None:
    found = one(RULE, blocked())
    names = run(found, entries=sum)
    assert sum(names["entries_in_pieces"](list(range(1234)))) == sum(range(1234))
    assert len(names["entries_in_pieces"](list(range(1234)))) == 13


def test_code_for_several_threads_makes_processes_of_them() -> None:
    found = one(RULE, blocked(threads=2))
    assert "n_workers=4, threads_per_worker=1" in found.fix.code


def test_without_looks_the_tasks_are_named() -> None:
    assert "`entries`" in one(RULE, blocked(look=False)).headline


def test_what_the_tasks_of_a_shuffle_hold_is_nobodys_to_change() -> None:
    made = Stood(2)
    end = waiting(made)
    for rows in made._rows.values():
        rows[:] = [
            tuple(f.replace("entries", "shuffle-transfer") if isinstance(f, str) else f for f in r)
            for r in rows
        ]
    for i in range(5):
        made.stalled(0, i * 1000 + 50, i * 1000 + 850)
        made.said(0, i * 1000 + 860, "gil.contention", 1.0)
    assert not asked(RULE, made.recording(end))
