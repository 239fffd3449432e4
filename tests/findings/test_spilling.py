"""The rule spilling: seconds and bytes that went to disk and back."""

from __future__ import annotations

from typing import Any

import pytest

from findings.workers import MB, Workers, chain
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.sizing import need, plain, rounded
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.spilling import RULE
from stageprof_collectors.tables.crew import Crew, Member


def ask(recording: Recording, **limits: float) -> list[Finding]:
    usual = {name: limit.default for name, limit in RULE.limits.items()}
    return list(RULE.find(recording, usual | limits))


def spilled(
    gap: float, machine: float = 0, workers: int = 1, threads: int = 1, **thresholds: float
) -> Recording:
    """Five runs of a second, and before each but the first the loop spills for `gap` ms."""
    made = Workers(workers, 1000, threads, **thresholds)
    if machine:
        made.machine(machine)
    end = chain(made, gap)
    for i in range(4):
        start = 1000 + i * (1000 + gap)
        made.spilled(0, start, start + gap)
        made.took(0, start, 650, managed=500, spilled=300)
    return made.recording(end)


def test_seconds_of_spilling_between_tasks_are_its_cost_and_its_saving() -> None:
    """C8, C10: bytes and seconds spilled, and how much slower it made the run."""
    (found,) = ask(spilled(500))
    assert found.cost_s == pytest.approx(2.0, abs=0.01)
    assert found.saving_s == pytest.approx((2.0, 2.0), abs=0.05)
    assert found.severity == Severity.SERIOUS
    assert found.evidence["written_bytes"] == 400 * MB
    assert found.evidence["spilling_s"] == pytest.approx(2.0)
    assert "400 MB" in found.headline


def test_a_run_without_spilling_costs_nothing() -> None:
    made = Workers()
    assert ask(made.recording(chain(made))) == []


def test_what_is_below_its_limit_is_not_told() -> None:
    assert ask(spilled(5)) == []
    assert len(ask(spilled(5), share=0.0001)) == 1


def test_spilling_while_a_task_has_the_thread_costs_nothing() -> None:
    """B24: what is beside the critical path is not promised."""
    made = Workers()
    end = chain(made)
    made.spilled(0, 200, 800)
    (found,) = ask(made.recording(end))
    assert found.cost_s == 0
    assert found.saving_s[0] == 0
    assert found.severity == Severity.NOTE


def test_the_size_printed_holds_the_peak_below_the_thresholds_in_force() -> None:
    """C11, C16: 60 % was the source's number; the cluster's own is what counts."""
    (usual,) = ask(spilled(500))
    assert usual.evidence["needed_bytes"] == rounded((650 + 300) / 0.7 * 1.2 * MB)
    (by_results,) = ask(spilled(500, target=0.5))
    assert by_results.evidence["needed_bytes"] == rounded((500 + 300) / 0.5 * 1.2 * MB)
    (other,) = ask(spilled(500, target=0.9, spill=0.95))
    assert other.evidence["needed_bytes"] == rounded((650 + 300) / 0.95 * 1.2 * MB)
    assert 'memory_limit="1.7GB"' in usual.fix.code
    assert "1.7 GB" in usual.fix.text


@pytest.mark.parametrize(
    ("machine", "workers", "printed"),
    [
        (0, 2, "n_workers=2, threads_per_worker=4, memory_limit='1.7GB'"),  # nobody knows
        (4_000, 2, "n_workers=2, threads_per_worker=4, memory_limit='1.7GB'"),
        (2_000, 2, "n_workers=2, threads_per_worker=2, memory_limit='1GB'"),
        (600, 2, "n_workers=1, threads_per_worker=1, memory_limit='600MB'"),
    ],
)
def test_no_more_is_advised_than_a_machine_has(machine: int, workers: int, printed: str) -> None:
    """A cluster as Dask makes it has all of the machine's memory already: more would swap."""
    (found,) = ask(spilled(500, machine, workers, threads=4))

    assert printed.replace("'", '"') in found.fix.code
    short = 0 < machine < 3_400
    assert (found.saving_s[0] == 0.0) is short
    assert ("the machine would need 3.4 GB" in found.fix.text) is short


def test_on_several_hosts_no_cluster_of_this_one_is_advised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would have a part of all that their memory is."""
    crew = [Member(f"tcp://{host}:10", host, 4, 0, 0, 1) for host in ("host", "other")]
    monkeypatch.setattr(Crew, "fullest", crew)
    (found,) = ask(spilled(500, 600, threads=4))
    assert "LocalCluster" not in found.fix.code
    assert "--nworkers 1 --nthreads 1 --memory-limit 600MB" in found.fix.code


def test_a_threshold_that_is_off_is_not_divided_by() -> None:
    recording = spilled(500, target=0, spill=0, pause=0, terminate=0)
    limits, taken = recording.memory.limits[2], recording.memory.of(2)
    assert need(limits, taken) == rounded(950 * MB * 1.2)


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (90e6, "100MB"),
        (0.6e9 / 0.6 * 1.2, "1.2GB"),
        (950e6, "1GB"),
        (1.21e9, "1.3GB"),
        (12.4e9, "13GB"),
        (99e9, "99GB"),
    ],
)
def test_sizes_are_rounded_up_to_what_people_use(nbytes: float, text: str) -> None:
    assert plain(rounded(nbytes)) == text


@pytest.mark.cluster
# Of the dashboard's port, which somebody else may have.
@pytest.mark.filterwarnings("ignore:Port 8787", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_fix_runs_as_printed() -> None:
    """A28, C35: a cluster with the memory limit that is printed."""
    (found,) = ask(spilled(500))
    names: dict[str, Any] = {}
    exec(found.fix.code, names)
    with names["cluster"], names["client"] as client:
        client.wait_for_workers(1)
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        assert {w["memory_limit"] for w in workers} == {found.evidence["needed_bytes"]}
