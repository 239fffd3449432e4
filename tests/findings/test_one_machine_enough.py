"""The rule one-machine-enough: B12, B18, B24."""

from __future__ import annotations

from uuid import UUID

import dask
import pytest

from findings.asking import asked, one, run
from findings.crews import Crewed
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.one_machine_enough import RULE


def rounds(
    number: int = 10,
    *,
    work: float = 10,
    held: int = 8,
    beside: bool = False,
    imports: float = 0,
    prefix: str = "part",
    futures: bool = False,
) -> Recording:
    """Computes of one task: 90 ms of construction, its graph's way, its own, the result's way.

    With `beside`, a worker is at another task from the beginning to the end. The client `imports`
    for so long before.
    """
    made, now, around = Crewed(2), imports, 30.0
    if imports:
        made.imported("pandas", imports)
    if beside:
        made.goes_on(1, 1, cause=-100)
    for i in range(number):
        key = f"{prefix}-{i:032x}" if futures else f"{prefix}-{UUID(int=i)}"
        made.span("build", now, now + 3 * around)
        sent = now + 3 * around
        graph = made.graph(sent, sent + around, sent + around)
        start = sent + 2 * around
        made.run(
            i % 2, start, start + work, cause=-1 - graph, lead=(sent + around, start),
            key=key, wanted=True, finished=start + work,
        )  # fmt: skip
        made.sized(held)
        now = start + work + around
        made.wait_for(sent, now, key)
    return made.recording(now)


def test_little_work_among_much_else_is_found_with_what_doing_without_would_save() -> None:
    """B12: 10 x 10 ms of work in 10 x 190 ms."""
    found = one(RULE, rounds())

    assert found.evidence["work_s"] == pytest.approx(0.1)
    assert found.saving_s == pytest.approx((1.5, 1.5), abs=0.05)  # the last hop of a result stays
    assert found.cost_s == pytest.approx(1.8, abs=0.05)
    assert "all 10 tasks together are 100 ms of work" in found.headline


@pytest.mark.parametrize(("work", "fires"), [(40, True), (100, False), (1000, False)])
def test_it_fires_where_work_is_less_than_a_third(work: float, fires: bool) -> None:
    """B24: with more work than that, more threads may do it sooner."""
    assert bool(asked(RULE, rounds(work=work))) is fires


@pytest.mark.parametrize(
    ("prefix", "counts"),
    [
        ("shuffle-transfer", False),
        ("rechunk-transfer", False),
        ("group-taskshuffle", False),
        ("p2pshuffle", False),
        ("shuffle-group", True),  # of a bag: it groups, which one thread has to do as well
        ("shuffle-shuffle-join-total", True),
        ("hashjoinp2p", True),
    ],
)
def test_what_only_moves_data_is_no_work_on_one_machine(prefix: str, counts: bool) -> None:
    found = one(RULE, rounds(prefix=prefix))
    assert found.evidence["work_s"] == pytest.approx(0.1 if counts else 0.0)


def test_work_that_goes_on_when_the_recording_ends_counts() -> None:
    assert asked(RULE, rounds(beside=True)) == []


def test_what_the_client_imports_it_imports_without_a_cluster_too() -> None:
    """Pandas, say: its import was promised to be saved, and to be what a cluster takes."""
    found, alike = one(RULE, rounds(imports=3000)), one(RULE, rounds())

    assert found.saving_s == pytest.approx(alike.saving_s, abs=0.1)
    assert found.cost_s == pytest.approx(alike.cost_s, abs=0.05)
    assert asked(RULE, rounds(3, imports=3000)) == []


def test_data_that_need_more_than_a_computer_are_no_case_for_one() -> None:
    assert asked(RULE, rounds(held=3_000_000_000)) == []


def test_a_short_run_is_not_worth_a_change() -> None:
    assert asked(RULE, rounds(3)) == []


def test_a_single_stage_that_takes_it_all_is_the_better_advice() -> None:
    """Construction is nearly all of it: mend that."""
    made = Crewed(1)
    made.span("build", 0, 2000)
    graph = made.graph(2000, 2005, 2005)
    made.run(0, 2005, 2105, cause=-1 - graph, key="part-0", wanted=True)
    made.wait_for(2000, 2105, "part-0")

    assert asked(RULE, made.recording(2105)) == []


def test_futures_are_called_in_a_loop_for_they_know_no_other_scheduler() -> None:
    code = one(RULE, rounds(futures=True)).fix.code
    assert "results = [part(x) for x in inputs]" in code
    assert "scheduler=" not in code


def test_the_fix_computes_on_one_thread_of_this_process() -> None:
    with dask.config.set(scheduler=None):
        run(one(RULE, rounds()))

        assert dask.config.get("scheduler") == "sync"
        assert dask.delayed(abs)(-1).compute() == 1
