"""What is said of the GIL against threads that hold it for known times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import holding
import stageprof
from holding import Held

Job = Callable[[], list[Held]]
Run = Callable[[list[Job]], tuple[stageprof.Recording, list[Held]]]


@pytest.fixture(params=["cluster", "threads"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs jobs at the same time in threads of one process, recorded."""
    if request.param == "threads":
        with ThreadPoolExecutor(4) as pool:
            yield lambda jobs: _run(jobs, scheduler="threads", pool=pool)
        return
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=4, dashboard_address=":0", worker_dashboard_address=None
    )
    with cluster, Client(cluster):
        yield _run


def _run(jobs: list[Job], **how: Any) -> tuple[stageprof.Recording, list[Held]]:
    tasks = [dask.delayed(job, pure=False)() for job in jobs]
    with stageprof.profile() as prof:
        results = dask.compute(*tasks, **how)
    sources = set(prof.recording.timeline.gil.sources.values())
    assert sources == {"watch"}, prof.recording.coverage()["disabled"]
    return prof.recording, [held for result in results for held in result]


def rightly(recording: stageprof.Recording, truth: list[Held]) -> float:
    """Share of the looks within times of known holders that saw the right one."""
    pids = np.array([place.pid for place in recording.store.places])
    hold = recording.store.table("hold")
    mine = hold["waits"] == 0
    start, stop, thread = (hold[name][mine] for name in ("start", "stop", "thread"))
    right = whole = 0.0
    for pid, ident, a, b in truth:
        met = np.minimum(stop, b) - np.maximum(start, a)
        met = np.where(pids[hold["place"][mine]] == pid, np.maximum(met, 0), 0)
        right += float(met[thread == ident].sum())
        whole += float(met.sum())
    assert whole > 0.7 * sum(b - a for _, _, a, b in truth)
    return right / whole


def contention(recording: stageprof.Recording, pid: int) -> float:
    """Mean share of the time in which a process's GIL was taken, while tasks ran."""
    store = recording.store
    tasks = recording.tasks()
    first, last = tasks["start_s"].min(), tasks["stop_s"].max()
    samples = recording.samples()
    names = {place.name for place in store.places if place.pid == pid}
    mine = samples[samples["place"].isin(names) & (samples["name"] == "gil.contention")]
    inside = mine[(mine["t_s"] > first + 0.5) & (mine["t_s"] <= last)]
    return float(inside["value"].mean())


def test_the_holder_in_c_is_named_while_others_run(run: Run) -> None:
    """Long calls, so that few looks are near their ends."""
    recording, truth = run(
        [
            lambda: holding.in_c(0.3, 8, pause=0.05),
            lambda: holding.in_python(2.5) and [],
            lambda: holding.in_numpy(2.5),
        ]
    )
    assert rightly(recording, truth) >= 0.95


@pytest.mark.parametrize("part", [0.2, 0.6])
def test_contention_is_within_5_points_of_the_truth(run: Run, part: float) -> None:
    """Twelve seconds: where nobody waits, so many looks that know it take ten."""
    recording, truth = run([lambda: holding.in_c(0.1 * part, 120, 0.1 * (1 - part))])
    held = sum(h.stop - h.start for h in truth) / (truth[-1].stop - truth[0].start)
    assert contention(recording, truth[0].pid) == pytest.approx(held, abs=0.05)


def test_a_pure_python_thread_alone_takes_the_gil_all_the_time(run: Run) -> None:
    recording, truth = run([lambda: holding.in_python(3)])
    assert contention(recording, truth[0].pid) == pytest.approx(1, abs=0.05)


def test_numpy_and_sleep_hold_nothing(run: Run) -> None:
    recording, _ = run([lambda: holding.in_numpy(3), lambda: holding.waiting(3)])
    frame = recording.gil()
    assert frame.loc[frame["prefix"] != "", "hold_s"].sum() < 0.05 * 3


def test_two_python_threads_share_it_and_each_waits_for_the_other(run: Run) -> None:
    """A thread that runs Python on a processor has the GIL; on a busy machine it may lack one."""
    recording, _ = run([lambda: holding.in_python(3) and [], lambda: holding.in_python(3) and []])
    tasks = recording.tasks()
    held, waited = tasks["gil_hold_s"].to_numpy(), tasks["gil_wait_s"].to_numpy()
    assert 0.85 * tasks["cpu_s"].sum() <= held.sum() <= 3.1
    assert held.min() > 0.3 * held.sum()
    assert (held + waited <= tasks["duration_s"] + 0.05).all()
    assert waited.sum() > 0.6 * held.sum()


def test_the_line_that_holds_it_is_named(run: Run) -> None:
    recording, _ = run([lambda: holding.in_python(2) and [], lambda: holding.in_python(2) and []])
    frame = recording.gil()
    best = frame[frame["prefix"] != ""].iloc[0]
    assert (best["function"], best["file"]) == ("in_python", holding.__file__)
    assert best["caused_s"] > 0
