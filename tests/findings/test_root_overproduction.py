"""Rule root-overproduction: queuing switched off, and first results that pile up."""

from __future__ import annotations

import dask
import pytest

from findings.asking import asked, one, run
from findings.workers import MB, Workers
from replay.handmade import SCHEDULER, ns
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.root_overproduction import RULE
from stageprof_runtime.event import FINISH, SAMPLE


def loading(
    *,
    saturation: float | None = 0.0,
    at_once: int = 10,
    nbytes: int = 50,
    spill: float = 300,
    held: bool = False,
) -> Recording:
    """Ten results of 50 MB in a worker of 1000 MB: so many are made before the first is used."""
    made = Workers(1, 1000)
    if saturation is not None:
        made._rows[SCHEDULER].append((SAMPLE, ns(0), "worker.saturation", saturation))
    graph = made.graph(0, 0, 0)
    now, last, loaded = 0.0, -1, []
    for batch in range(0, 10, at_once):
        mine = []
        for i in range(batch, min(batch + at_once, 10)):
            cause = -1 - graph if last < 0 else last
            needs = None if last < 0 else [-1]
            key = f"loaded-{i:032x}"
            last = made.run(0, now, now + 500, cause=cause, needs=needs, key=key, wanted=held)
            mine.append(last)
            now += 500
        loaded += mine
        if spill:
            made.spilled(0, now, now + spill)
            made.took(0, now, 750, managed=500, spilled=300)
        there, now = now, now + spill
        for run_ in mine:
            last = made.run(
                0, now, now + 100, cause=last, needs=[run_], lead=(there, there),
                wanted=run_ == loaded[-1],
            )  # fmt: skip
            now += 100
            there = now
    made.wait(0, now, last, now)
    rows = made._rows[SCHEDULER]
    rows[:] = [
        (*r[:4], nbytes * MB, r[5]) if r[0] == FINISH and r[1] in loaded else r for r in rows
    ]
    return made.recording(now)


def test_what_piles_up_is_counted_and_named_and_its_cost_is_that_of_the_shortage() -> None:
    found = one(RULE, loading())
    assert found.evidence["results"] == 10
    assert found.evidence["results_bytes"] == 500 * MB
    assert found.cost_s == pytest.approx(0.3, abs=0.01)
    assert found.saving_s[1] == pytest.approx(0.3, abs=0.05)
    assert found.cause == shortage.CAUSE
    assert "Up to 10 results of `loaded` (500 MB)" in found.headline


@pytest.mark.parametrize("saturation", [None, 1.1, 2.0])
def test_with_queuing_or_where_it_is_not_known_nothing_is_said(saturation: float | None) -> None:
    assert not asked(RULE, loading(saturation=saturation))


def test_results_that_are_used_soon_are_no_finding() -> None:
    assert not asked(RULE, loading(at_once=2))


@pytest.mark.parametrize(("nbytes", "fires"), [(31, True), (29, False)])
def test_it_fires_from_three_tenths_of_the_memory(nbytes: int, fires: bool) -> None:
    assert bool(asked(RULE, loading(nbytes=nbytes))) == fires


def test_what_the_program_holds_would_be_there_with_queuing_too() -> None:
    """`persist`: the spilling was blamed on what helps nothing there."""
    assert not asked(RULE, loading(held=True))


def test_without_trouble_it_is_a_note() -> None:
    found = one(RULE, loading(spill=0))
    assert found.severity == Severity.NOTE
    assert found.cost_s == 0


def test_printed_code_is_the_default_of_dask() -> None:
    with dask.config.set():
        name = "distributed.scheduler.worker-saturation"
        before = dask.config.get(name)
        run(one(RULE, loading()))
        assert dask.config.get(name) == before == pytest.approx(1.1)
