"""Fixtures of every test: nothing of stageprof is left in the process, before or after."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

import stageprof_runtime
from stageprof_runtime import process

# What tests share (planted delays, clusters) is imported by tests and by workers alike.
sys.path.insert(0, str(Path(__file__).parent))

import clusters
from chromium import browser

__all__ = ["browser"]  # a fixture

TESTS = Path(__file__).parent

#: Python's own helpers, which stay from the first spawned process to the end of the session.
PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")

#: Seconds that a thread or process already told to stop may take to be gone.
GRACE_S = 15


#: Tests that read planted delays back or watch real clusters: on a busy machine one may see a delay
#: that nobody planted, so they get two more tries; what is wrong stays wrong.
NOISY = (
    "check", "findings", "gil", "ground_truth", "layers", "objects", "profiles", "replay",
    "runtime", "test_samples",
)  # fmt: skip


#: Tests that measure time or memory: nothing else runs beside them. Where only some of a file do,
#: they are marked there.
ALONE = (
    "findings/test_clean", "gil/test_truth", "ground_truth", "layers/test_stages",
    "replay/test_irregular", "replay/test_real", "runtime/test_clocks", "runtime/test_overload",
)  # fmt: skip
#: Of those, what holds on a busy machine as well: the truth was measured by the same clock at the
#: same time, or something must only be there.
ANYWHERE = (
    "ground_truth/test_construction.py::test_fifty_thousand_",
    "ground_truth/test_execution.py::test_spilling_",
    "ground_truth/test_execution.py::test_the_first_import_",
    "ground_truth/test_lines.py::",
    "ground_truth/test_scheduling.py::test_ordering_on_a_cluster",
    "runtime/test_overload.py::test_a_stalled_recorder_",
)

#: Files that take longest: begun first, so that at the end no process waits for another.
FIRST = ("runtime/test_cluster", "test_samples", "check/test_command", "faces/test_run")
#: What shares a cluster to the end of the session, which is nothing that others should find.
LAST = ("ground_truth",)

#: Of the tests in a browser these are quick enough for every time; the rest is for the night.
SEEN_ALWAYS = ("test_report", "test_app", "test_guard", "test_boxes", "test_hostile_pages")
#: Tests for the night that have a sibling every time: the same on the other kind of scheduler, one
#: program more, one more size.
LONG = (
    "check/test_command.py::test_a_check_names_what_is_wrong_before_it_runs_and_nothing_after_the_fix[complex-object]",
    "check/test_command.py::test_data_that_goes_into_a_training_is_looked_at[(100, 10)",
    "check/test_command.py::test_data_that_goes_into_a_training_is_looked_at[(100, 30)",
    "check/test_command.py::test_data_that_goes_into_a_training_is_looked_at[(1000, 30)",
    "check/test_command.py::test_only_graver_findings_than_allowed_make_it_fail[critical",
    "check/test_command.py::test_only_graver_findings_than_allowed_make_it_fail[moderate",
    "check/test_command.py::test_only_graver_findings_than_allowed_make_it_fail[None",
    "check/test_command.py::test_other_forms_have_stdout_to_themselves[--markdown",
    "ci/test_samples_ci.py::test_github_keeps",
    "collectors/test_hostile.py::test_bomb_takes_neither_time_nor_memory[places]",
    "collectors/test_hostile.py::test_bomb_takes_neither_time_nor_memory[unknown columns]",
    "collectors/test_hostile.py::test_mutated_recording_is_judged",
    "compare/test_command.py::test_a_run_of_recordings_is_forgotten_one_by_one",
    "faces/test_run.py::test_child_processes_find_the_main_module[fork]",
    "faces/test_run.py::test_child_processes_find_the_main_module[forkserver]",
    "faces/test_run.py::test_exception_is_shown_as_python_shows_it[import no_such",
    "faces/test_run.py::test_exception_is_shown_as_python_shows_it[try",
    "faces/test_run.py::test_exception_is_shown_as_python_shows_it[x =",
    "faces/test_run.py::test_exit_status_is_kept[raise",
    "faces/test_run.py::test_exit_status_is_kept[sys.exit('bye')",
    "faces/test_run.py::test_exit_status_is_kept[sys.exit()",
    "faces/test_run.py::test_output_that_cannot_be_written_stops_before_the_script[.]",
    "faces/test_run.py::test_output_that_cannot_be_written_stops_before_the_script[/proc",
    "faces/test_run.py::test_program_sees_what_python_would_have_shown_it[-m package.sub",
    "faces/test_run.py::test_program_sees_what_python_would_have_shown_it[-m package]",
    "faces/test_run.py::test_program_sees_what_python_would_have_shown_it[-m script]",
    "faces/test_run.py::test_program_sees_what_python_would_have_shown_it[../",
    "faces/test_run.py::test_program_sees_what_python_would_have_shown_it[folder",
    "faces/test_run.py::test_what_outlives_the_program_finds_its_own[at exit",
    "findings/test_clean.py::test_nothing_above_a_note_is_found_in_a_clean_program[bag",
    "findings/test_clean.py::test_nothing_above_a_note_is_found_in_a_clean_program[dataframe_small",
    "findings/test_clean.py::test_nothing_above_a_note_is_found_in_a_clean_program[delayed_simu",
    "findings/test_complex_object.py::test_many_small_objects_in_a_real_graph",
    "gil/test_harm.py::test_a_py_spy_that_does_not_work_is_said[broken",
    "gil/test_harm.py::test_a_py_spy_that_does_not_work_is_said[deaf",
    "gil/test_harm.py::test_a_py_spy_that_does_not_work_is_said[fails",
    "gil/test_harm.py::test_neither_outlives_a_process_that_ends_without_stop[raise",
    "gil/test_harm.py::test_neither_outlives_a_process_that_ends_without_stop[sys.exit",
    "gil/test_harm.py::test_py_spy_does_not_outlive",
    "gil/test_several_processes.py::test_each_worker_has_its_own_number[1]",
    "gil/test_truth.py::test_a_pure_python_thread_alone_takes_the_gil_all_the_time[threads]",
    "gil/test_truth.py::test_contention_is_within_5_points_of_the_truth[threads-0.2]",
    "gil/test_truth.py::test_numpy_and_sleep_hold_nothing[threads]",
    "gil/test_truth.py::test_the_line_that_holds_it_is_named[threads]",
    "gil/test_truth.py::test_two_python_threads_share_it_and_each_waits_for_the_other[threads]",
    "ground_truth/test_scheduling.py::test_ordering_on_the_threaded_",
    "layers/test_stages.py::test_a_slow_optimizer_is_its_collections_on_threads",
    "layers/test_stages.py::test_a_slow_rewrite_is_its_expressions_on_threads",
    "layers/test_stages.py::test_many_tasks_are_scheduling_of_their_line_on_threads",
    "layers/test_stages.py::test_slow_meta_inference_is_its_lines_on_threads",
    "notebook/test_cells.py::test_a_request_that_makes_no_sense_gets_one_line[%%",
    "notebook/test_cells.py::test_await_works[%%",
    "objects/test_planted.py::test_a_clean_program_has_none[many_small_objects]",
    "preload/test_flight.py::test_a_task_that_runs_since_before_the_window",
    "privacy/test_redaction.py::test_nor_does_a_redacted_report",
    "profiles/test_planted.py::test_tasks_and_the_scheduler_of_a_cluster_are_seen",
    "pytest_plugin/test_beside.py::test_a_marker_that_makes_no_sense_fails_its_test_under_xdist",
    "pytest_plugin/test_beside.py::test_on_a_cluster_a_failure",
    "pytest_plugin/test_beside.py::test_workers_that_run_the_same_test_record_apart",
    "reliability/test_impossible_numbers.py::test_a_sample_that_cannot_be_breaks_no_face[[",
    "replay/test_depends.py::test_a_task_that_needs_very_many",
    "replay/test_real.py::test_a_cause_taken_away_on_threads_saves_what_was_foretold[a slow",
    "runtime/test_cluster.py::test_a_killed_worker_comes_back",
    "runtime/test_cluster.py::test_a_retired_worker_loses_nothing",
    "runtime/test_cluster.py::test_a_worker_that_joins_under_load",
    "runtime/test_cluster.py::test_many_cycles_leave",
    "runtime/test_clients.py::test_tasks_of_two_clients_of_one_cluster_are_recorded_whoever_leaves[second",
    "runtime/test_hooks.py::test_a_worker_of_its_own_process_survives_a_broken_hook[setup]",
    "runtime/test_hooks.py::test_nor_on_the_scheduler_of_processes",
    "runtime/test_memory_of_workers.py::test_the_growth_around",
    "runtime/test_overload.py::test_a_stalled_recorder",
    "runtime/test_results.py::test_the_scheduler_of_processes_gives_the_same[some",
    "runtime/test_samples_of_places.py::test_what_a_worker_holds",
    "ui/test_app.py::test_two_who_look",
    "ui/test_workers_page.py::test_the_page_shows_whatever_there_is[many",
)
#: Programs of samples/ that take longest; the others show the same, every time.
LONG_SAMPLES = (
    "[boosting]", "[climatology]", "[futures_pipeline]", "[wordcount]", "[etl]", "[rechunk]",
    "_client_is_used[futures_pipeline]",
    "[boosting-threads]", "[boosting-processes]", "[boosting-sync]",
    "[futures_pipeline-processes]", "[futures_pipeline-sync]",
)  # fmt: skip

# Begun in the background of a shell, tests and what they start would not hear an interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on what runs beside it.
settings.register_profile("stageprof", deadline=None)
settings.load_profile("stageprof")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark noisy tests to be tried again, those that run alone, and those for the night."""
    for item in items:
        path = _path(item)
        if path.startswith(NOISY):
            item.add_marker(pytest.mark.flaky(reruns=2))
        if path.startswith(ALONE) and not f"{path}::{item.name}".startswith(ANYWHERE):
            item.add_marker(pytest.mark.alone)
        if _is_long(item, path):
            item.add_marker(pytest.mark.nightly)
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    path = _path(item)
    return 0 if path.startswith(FIRST) else 2 if path.startswith(LAST) else 1


def _path(item: pytest.Item) -> str:
    """Below tests/: the folder that this is checked out to may be called anything."""
    return item.path.relative_to(TESTS).as_posix()


def _is_long(item: pytest.Item, path: str) -> bool:
    if "browser" in getattr(item, "fixturenames", ()) and item.path.stem not in SEEN_ALWAYS:
        return True
    if f"{path}::{item.name}".startswith(LONG):
        return True
    if path.startswith("test_samples"):
        return item.name.endswith(LONG_SAMPLES)
    # Two kinds of cluster, of which one is enough for most cases.
    smoke = item.get_closest_marker("smoke") is not None
    return path.startswith("ground_truth") and item.name.endswith("[local]") and not smoke


@pytest.fixture(autouse=True)
def no_loop_of_the_browsers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Playwright's event loop stays the running one of its thread, where tests run their own."""
    loop = asyncio._get_running_loop()
    if loop is None or "browser" in request.fixturenames:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails the test that finds or leaves a probe, a thread or a process."""
    assert leftovers() == []
    yield
    assert leftovers() == []


def leftovers() -> list[str]:
    """What of stageprof is in this process, or was started by it, as texts."""
    return [*stageprof_runtime.installed(), *_not_undone(), *_threads(), *_processes()]


def _not_undone() -> list[str]:
    found = [name for name, why in process.failed.items() if why.startswith("undo")]
    # Popped, so that the next test is not blamed for it.
    return [f"{name}: {process.failed.pop(name)}" for name in found]


def _threads() -> list[str]:
    ours = [t for t in threading.enumerate() if t.name.startswith("stageprof")]
    for thread in ours:
        thread.join(GRACE_S)
    return [f"thread {t.name}" for t in ours if t.is_alive()]


def _processes() -> list[str]:
    children = [p for p in psutil.Process().children() if _is_ours(p)]
    children = [p for p in children if p.pid not in clusters.shared]
    _, alive = psutil.wait_procs(children, timeout=GRACE_S)
    found = [str(p) for p in alive]
    for child in alive:  # so that the next test is not blamed for it
        child.kill()
    return found


def _is_ours(child: psutil.Process) -> bool:
    try:
        command = " ".join(child.cmdline())
    except psutil.Error:  # it ended meanwhile
        return False
    return not any(name in command for name in PYTHONS_OWN)
