"""Rule gc-pressure: seconds of garbage collection, in which a whole process stands still."""

from __future__ import annotations

import gc

import pytest
from distributed import Client

from clusters import local
from findings.asking import asked, one, run
from findings.stood import CLIENT, SCHEDULER, Stood, chain
from stageprof_collectors.findings.collecting import YOUNG
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.gc_pressure import GONE, RULE


def collecting(each: float, runs: int = 10) -> Recording:
    """Ten runs of a second, in each of which the collector takes `each` ms."""
    made = Stood(2)
    end = chain(made, runs, 1000)
    for i in range(runs):
        made.collected(0, i * 1000 + 100, i * 1000 + 100 + each)
    return made.recording(end)


def test_what_collections_take_of_tasks_on_the_path_is_the_cost() -> None:
    found = one(RULE, collecting(300))
    assert found.cost_s == pytest.approx(3.0, abs=0.01)
    assert found.saving_s == pytest.approx((3.0 * GONE[0], 3.0), abs=0.02)
    assert found.severity == Severity.SERIOUS
    assert found.evidence["collecting_s"] == pytest.approx(3.0)
    assert found.evidence["share_of_process"] == pytest.approx(0.3, abs=0.01)
    assert "1 worker for 3.00 s" in found.headline
    assert "`task`" in found.headline


@pytest.mark.parametrize(("each", "fires"), [(51, True), (49, False)])
def test_it_fires_from_five_percent_of_a_process(each: float, fires: bool) -> None:
    assert bool(asked(RULE, collecting(each))) == fires
    assert asked(RULE, collecting(each), share=0.01)


def test_a_collection_beside_the_critical_path_costs_nothing() -> None:
    made = Stood(2)
    end = chain(made, 10, 1000)
    made.collected(1, 0, 5000)
    assert not asked(RULE, made.recording(end))


def test_a_collection_in_the_scheduler_is_in_what_leads_to_a_run() -> None:
    made = Stood(1)
    graph = made.graph(0, 0, 0)
    run_ = made.run(0, 2000, 3000, cause=-1 - graph, lead=(0, 2000), wanted=True)
    made.wait(0, 3000, run_, 3000)
    made.collected(SCHEDULER, 500, 1500)
    found = one(RULE, made.recording(3000))
    assert found.cost_s == pytest.approx(1.0, abs=0.05)
    assert found.evidence["role"] == "scheduler"
    # It is in a process of its own, whose collector only code that runs there can set.
    assert "default_client().run_on_scheduler(gc.set_threshold" in found.fix.code


def test_the_client_tells_for_the_scheduler_in_its_process() -> None:
    """One process tells once, whatever it is."""
    made = Stood(1)
    made.span("build", 0, 1000)
    graph = made.graph(1000, 1000, 1000)
    run_ = made.run(0, 1000, 2000, cause=-1 - graph, wanted=True)
    made.wait(1000, 2000, run_, 2000)
    made.collected(CLIENT, 200, 800)
    found = one(RULE, made.recording(2000))
    assert found.cost_s == pytest.approx(0.6, abs=0.01)
    assert "default_client" not in found.fix.code


@pytest.mark.cluster
def test_the_printed_code_makes_collections_rare_on_all_workers() -> None:
    with local(2) as client:
        run(one(RULE, collecting(300)))
        assert _thresholds(client) == {(YOUNG, 50, 100)}


def _thresholds(client: Client) -> set[tuple[int, ...]]:
    return set(client.run(gc.get_threshold).values())
