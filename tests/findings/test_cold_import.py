"""Rule cold-import: modules imported for the first time while one waits (A35, C21)."""

from __future__ import annotations

from pathlib import Path

import pytest
from distributed import Client, LocalCluster

import stageprof
from findings.asking import asked, one, run
from findings.crowded import Program, calls
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.cold_import import RULE
from stageprof_collectors.rules.nothing_to_fix import RULE as NOTHING


def program(ms: float = 2000.0, module: str = "sklearn.ensemble") -> Recording:
    made = Program()
    made.tasks(calls(10), work=100.0, imports=(module, ms))
    return made.recording()


def test_module_and_where_it_was_imported_are_named() -> None:
    found = one(RULE, program())

    assert "on workers: sklearn.ensemble (2.00 s): 2.00 s of 3.01 s" in found.headline
    assert found.cost_s == pytest.approx(2.0)
    assert found.saving_s == pytest.approx((2.0, 2.0))
    assert found.cause == "imports"
    assert "second run" in found.fix.text


@pytest.mark.parametrize(("ms", "fires"), [(510.0, True), (490.0, False)])
def test_it_fires_from_half_a_second(ms: float, fires: bool) -> None:
    assert bool(asked(RULE, program(ms))) == fires


def test_it_does_not_fire_below_a_share_of_the_run() -> None:
    assert not asked(RULE, program(), share=0.7)


@pytest.mark.parametrize("module", ["stageprof_runtime.x", "distributed.dashboard.scheduler"])
def test_what_comes_with_the_observer_or_the_cluster_is_left_out(module: str) -> None:
    assert not asked(RULE, program(module=module))


def test_import_on_the_client_is_no_matter_of_workers() -> None:
    made = Program()
    made.client("construction/import", 2000.0, "pyarrow")
    made.tasks(calls(10), work=100.0)
    found = one(RULE, made.recording())
    assert "on the client: pyarrow" in found.headline
    # at the top of the program it takes as long, before anything is computed
    assert found.saving_s == pytest.approx((0.0, 2.0))
    assert not found.fix.code


def test_what_a_whole_program_itself_imports_is_told_with_no_promise() -> None:
    """At its top it would take as long, and that is recorded, too."""
    made = Program()
    made.client("construction/import", 2000.0, "pyarrow")
    made.tasks(calls(10), work=100.0)
    recording = made.recording(whole=True)
    found = one(RULE, recording)
    assert found.cost_s == pytest.approx(2.0)
    assert found.saving_s == (0.0, 0.0)
    assert "takes as long at its top" in found.fix.text
    assert one(NOTHING, recording).saving_s[1] < 0.1


def test_what_workers_of_a_whole_program_import_as_well_can_be_saved_there_alone() -> None:
    made = Program()
    made.client("construction/import", 2000.0, "pandas")
    made.tasks(calls(10), work=100.0, imports=("pandas", 1000.0))
    found = one(RULE, made.recording(whole=True))
    assert found.saving_s == pytest.approx((1.0, 1.0))
    assert "takes as long wherever it does" in found.fix.text


@pytest.mark.parametrize(("ms", "told"), [(2000.0, True), (50.0, False)])
def test_what_the_client_imports_beside_its_workers_is_told_too(ms: float, *, told: bool) -> None:
    """The headline names its modules, and the workers' fix does nothing for them."""
    made = Program()
    made.client("construction/import", ms, "pyarrow")
    made.tasks(calls(10), work=100.0, imports=("sklearn.ensemble", 2000.0))
    fix = one(RULE, made.recording()).fix

    assert ("your program itself imports" in fix.text) is told
    assert "sklearn" in fix.code
    assert "pyarrow" not in fix.code


def test_name_that_is_no_module_is_not_printed() -> None:
    found = one(RULE, program(module="os'] + [exit()"))
    assert "exit" not in found.fix.code


@pytest.mark.cluster
# Of the dashboard's port, which somebody else may have.
@pytest.mark.filterwarnings("ignore:Port 8787", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_printed_code_imports_on_workers_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module is one that nothing else imports; the code starts a cluster with it."""
    found = one(RULE, program(module="this_is_slow_to_import"))
    (tmp_path / "this_is_slow_to_import.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    names = run(found)
    cluster, client = names["cluster"], names["client"]
    try:
        assert isinstance(cluster, LocalCluster)
        assert isinstance(client, Client)
        loaded = client.run(_loaded, "this_is_slow_to_import")
        assert loaded
        assert all(loaded.values())
    finally:
        client.close()
        cluster.close()


def _loaded(module: str) -> bool:
    import sys

    return module in sys.modules


def test_recording_without_imports_costs_nothing() -> None:
    with stageprof.profile() as region:
        pass
    assert not asked(RULE, region.recording)
