"""Rule gil-contention: B20, B23 (the GIL, with numbers per task), A41."""

from __future__ import annotations

import pytest

from findings.asking import asked, one
from findings.busy import FILE, Busy
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.gil_contention import RULE
from stageprof_runtime.event import MARK


def program(
    threads: int = 4, *, contention: float = 1.0, cpu: float = 0.25, cpus: int = 8
) -> Recording:
    """Each thread waits for three quarters of its time, unless told otherwise."""
    busy = Busy(threads)
    busy.facts(threads=threads, cpus=cpus)
    busy.tasks("parsed", 20, 500, cpu=cpu)
    busy.look("parsed", 24, "parsed", "call", 50)
    busy.look("parsed", 30, "parsed", "library", 150)
    busy.contention(contention)
    return busy.recording()


def test_waiting_threads_are_counted_and_their_holder_named() -> None:
    """B23: who waits, for how long, and for which line."""
    found = one(RULE, program())

    assert "4 threads of a worker wait for one another's GIL" in found.headline
    assert "most in `parsed`, held by `parsed` at etl.py:24" in found.headline
    assert found.cost_s == pytest.approx(2.5 * 0.75, rel=0.02)
    assert found.evidence["waited_s"] == pytest.approx(10 * 0.75, rel=0.02)
    assert found.where.line == 24
    assert found.where.file == FILE
    low, high = found.saving_s
    assert low == pytest.approx(2.5 * 0.75 * 0.7, rel=0.03)
    assert high == pytest.approx(2.5 * 0.75, rel=0.03)


def test_no_more_is_promised_than_the_processors_can_do() -> None:
    """B24: four threads on two processors are at most twice as fast."""
    _, high = one(RULE, program(cpus=2)).saving_s

    assert high == pytest.approx(2.5 / 2, rel=0.03)


def test_one_thread_waits_for_nobody() -> None:
    """A busy processor looks like a busy GIL."""
    assert asked(RULE, program(1)) == []


def test_tasks_beside_others_on_the_one_thread_of_a_worker_need_no_other_layout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that seceded go on in threads of their own."""
    recording = program()
    told = recording.workers().assign(threads=1)
    monkeypatch.setattr(recording, "workers", lambda: told)
    assert asked(RULE, recording) == []


def test_threads_that_compute_without_the_gil_wait_for_nobody() -> None:
    assert asked(RULE, program(cpu=1.0)) == []


def test_a_free_gil_is_not_waited_for() -> None:
    assert asked(RULE, program(contention=0.0)) == []


@pytest.mark.parametrize(("contention", "fires"), [(0.01, False), (0.1, True)])
def test_it_takes_some_waiting(contention: float, fires: bool) -> None:
    assert bool(asked(RULE, program(contention=contention))) == fires


def test_a_recording_without_samples_of_the_gil_is_not_asked() -> None:
    busy = Busy(4)
    busy.tasks("parsed", 20, 500, cpu=0.25)

    assert asked(RULE, busy.recording()) == []


def test_the_code_starts_the_cluster_with_one_thread_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C35: what is printed runs, as it is; only the cluster is not started."""
    asked_for: dict[str, object] = {}
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: asked_for.update(options))
    monkeypatch.setattr("distributed.Client", lambda cluster: cluster)
    exec(one(RULE, program()).fix.code, {})

    assert asked_for == {"n_workers": 4, "threads_per_worker": 1, "processes": True}


def sleeping(threads: int, *, cpus: int) -> Recording:
    """The watch saw each task hold the GIL for a tenth and wait for it for a tenth of its time."""
    busy = Busy(threads)
    busy.facts(threads=threads, cpus=cpus)
    busy.tasks("asked", 20, 500, cpu=0.1)
    busy.look("asked", 24, "asked", "call", 50)
    for i in range(20):
        start = 2 + 500 * (i // threads)
        busy.held(start, start + 50, i % threads)
        busy.waited(start + 50, start + 100, i % threads)
    return busy.recording()


def test_tasks_that_wait_for_something_else_as_well_keep_their_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a thread for each of two processors eighteen of twenty would wait for their turn."""
    asked_for: dict[str, object] = {}
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: asked_for.update(options))
    monkeypatch.setattr("distributed.Client", lambda cluster: cluster)
    found = one(RULE, sleeping(20, cpus=2))
    exec(found.fix.code, {})

    assert asked_for == {"n_workers": 2, "threads_per_worker": 10, "processes": True}
    assert "2 worker processes of 10 threads each" in found.fix.text
    # Of the others that a thread waits for ten of nineteen are in another process then.
    assert found.saving_s[1] <= found.cost_s * (10 / 19) + 0.001


def test_the_cheap_remedy_is_shown_beside_the_rewriting_of_the_line() -> None:
    """python-bound hid it, for both name the line that holds the GIL."""
    busy = Busy(2)
    busy.facts(threads=2, cpus=2)
    busy.tasks("parsed", 20, 500, cpu=0.5)
    busy.look("parsed", 24, "parsed", "python", 100)
    busy.contention(1.0)
    found = {f.rule: f for f in busy.recording().findings()}

    assert {"python-bound", "gil-contention"} <= set(found)
    assert found["python-bound"].where.line == found["gil-contention"].where.line == 24
    assert "n_workers=2, threads_per_worker=1" in found["gil-contention"].fix.code


def test_where_processes_would_have_as_many_threads_nothing_is_said() -> None:
    assert asked(RULE, sleeping(20, cpus=1)) == []


def test_after_its_watch_was_killed_a_process_was_seen_no_more() -> None:
    """Later runs were said to have waited for nothing."""
    busy = Busy()
    busy.tasks("work", 2, 500)
    busy.worker(MARK, ns(1), "gil source", "watch")
    busy.held(0, 450)
    busy.worker(MARK, ns(600), "gil source", "ticker: the watch ended with status -9")
    assert busy.recording().timeline.gil.seen.tolist() == [True, False]
