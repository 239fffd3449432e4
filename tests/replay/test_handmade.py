"""Replays of recordings made by hand, where the right answer can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest

from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof_collectors.account.program import Kind
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.event import BLOCK
from stageprof_runtime.stage import STEP, Stage


def only(
    recording: Recording, factors: dict[int, float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A factor for some runs (by number), 1 for all others."""
    found = np.ones(len(recording.timeline.runs["run"]))
    for run, factor in factors.items():
        found[recording.timeline.run_of(run, 1)] = factor
    return found


def saved(recording: Recording, change: Change) -> tuple[float, float]:
    """What a change saves, ms."""
    low, high = recording.replay.saving(change)
    return round(1e3 * low, 6), round(1e3 * high, 6)


def chain_and_side() -> tuple[Recording, list[int], int]:
    """Three tasks of 100 ms in a chain on one worker, one of 250 ms beside it on another."""
    made = HandMade()
    g = made.graph(0, 0, 0, wanted=2)
    a = made.run(0, 0, 100, cause=-1 - g)
    side = made.run(1, 0, 250, cause=-1 - g, wanted=True)
    b = made.run(0, 100, 200, cause=a)
    c = made.run(0, 200, 300, cause=b, wanted=True)
    made.wait(0, 300, c, 300)
    return made.recording(300), [a, b, c], side


def eight_on_two() -> tuple[Recording, list[int]]:
    """Eight tasks of 100 ms on two workers, those after the first two queued."""
    made = HandMade()
    g = made.graph(0, 0, 0, wanted=8)
    runs: list[int] = []
    for i in range(8):
        t, cause = 100 * (i // 2), runs[i - 2] if i > 1 else -1 - g
        needs = [-1] if i > 1 else []
        runs.append(made.run(i % 2, t, t + 100, cause=cause, needs=needs, wanted=True))
    made.wait(0, 400, runs[-1], 400)
    return made.recording(400), runs


def test_a_chain_beside_a_branch_is_replayed_exactly() -> None:
    recording, _, _ = chain_and_side()

    assert recording.replay.error == 0
    assert recording.replay.saving(Change()) == (0, 0)
    assert recording.replay.wall(Change()) == pytest.approx((0.3, 0.3))


def test_a_task_off_the_path_saves_nothing() -> None:
    recording, _, side = chain_and_side()

    assert saved(recording, Change(compute=only(recording, {side: 0.5}))) == (0, 0)


def test_a_task_on_the_path_saves_until_the_other_path_is_critical() -> None:
    recording, (a, b, _), _ = chain_and_side()

    assert saved(recording, Change(compute=only(recording, {a: 0.7}))) == (30, 30)
    assert saved(recording, Change(compute=only(recording, {a: 0.5}))) == (50, 50)
    assert saved(recording, Change(compute=only(recording, {a: 0.0, b: 0.0}))) == (50, 50)


def test_every_task_twice_as_fast_halves_the_time() -> None:
    recording, _, _ = chain_and_side()

    assert saved(recording, Change(compute=0.5)) == (150, 150)


def test_a_change_that_makes_it_slower_saves_nothing_and_tells_the_wall_time() -> None:
    recording, _, side = chain_and_side()
    slower = Change(compute=only(recording, {side: 2.0}))

    assert saved(recording, slower) == (0, 0)
    assert recording.replay.wall(slower) == pytest.approx((0.5, 0.5))


def test_queued_tasks_are_replayed_exactly() -> None:
    recording, _ = eight_on_two()

    assert recording.replay.error == 0
    assert saved(recording, Change(compute=0.5)) == (200, 200)


def test_a_freed_thread_takes_other_work() -> None:
    """Two of eight tasks gone from one of two workers: three rounds, if the others move over."""
    recording, runs = eight_on_two()
    change = Change(compute=only(recording, {runs[0]: 0.0, runs[2]: 0.0}))

    assert saved(recording, change) == (0, 100)


def test_twice_the_threads_or_workers_halve_a_queue() -> None:
    recording, _ = eight_on_two()

    assert saved(recording, Change(threads=2)) == (200, 200)
    assert saved(recording, Change(workers=4)) == (200, 200)
    assert saved(recording, Change(threads=2, workers=4)) == (300, 300)
    assert recording.replay.wall(Change(workers=1)) == pytest.approx((0.8, 0.8))


def test_more_threads_do_not_shorten_a_chain() -> None:
    recording, _, _ = chain_and_side()

    assert saved(recording, Change(threads=8)) == (0, 0)
    assert saved(recording, Change(workers=8)) == (0, 0)


def two_graphs() -> Recording:
    """Two computes of 100 ms, each with 20 ms of building and 10 ms on its way; own code of
    50 ms between them; results take 5 ms."""  # noqa: D205, D209
    made = HandMade()
    t = 0.0
    for _ in range(2):
        made.span("build", t, t + 20)
        g = made.graph(t + 20, t + 25, t + 30)
        run = made.run(0, t + 30, t + 130, cause=-1 - g, wanted=True)
        made.wait(t + 20, t + 135, run, t + 130)
        t += 185
    return made.recording(320)


def test_two_graphs_one_after_the_other_are_replayed_exactly() -> None:
    recording = two_graphs()

    assert recording.wall == pytest.approx(0.32)
    assert recording.replay.error == 0
    assert saved(recording, Change(compute=0.5)) == (100, 100)


def test_serial_pieces_are_scaled_by_step() -> None:
    recording = two_graphs()

    def without(*steps: int) -> Change:
        return Change(serial=lambda step: float(step.what.step not in steps))

    assert saved(recording, without(STEP["build"])) == (40, 40)
    assert saved(recording, without(STEP["graph.send"], STEP["place"])) == (20, 20)
    assert saved(recording, without(STEP["result.gather"])) == (10, 10)
    nothing = Change(serial=lambda _: 0.0, compute=0.0)
    assert saved(recording, nothing) == (320, 320)


def test_what_coroutines_hand_over_while_others_wait_is_replayed() -> None:
    """Two on one thread: a graph, 180 ms on its way, is sent while another is awaited."""
    made = HandMade()
    for sent, taken in ((0, 100), (10, 200)):
        g = made.graph(sent, taken - 10, taken)
        run = made.run(g, taken, taken + 20, cause=-1 - g, wanted=True)
        made.wait(sent, taken + 25, run, taken + 20)
    recording = made.recording(230)
    assert recording.replay.error == 0
    sent_at_once = Change(serial=lambda step: float(step.what.step != STEP["graph.send"]))
    assert saved(recording, sent_at_once) == (180, 180)


def asks_within() -> HandMade:
    """A task hands 100 ms of work over, whose result takes 70 ms to come to it; its own, 1 ms."""
    made = HandMade()
    g = made.graph(0, 0, 0)
    asks = made.run(0, 0, 200, cause=-1 - g, wanted=True)
    within = made.launched(asks, 10)
    child = made.run(1, 10, 110, cause=-1 - within, wanted=True)
    made.waits_within(0, 10, 180, child, 110)
    made.wait(0, 201, asks, 200)
    return made


def test_what_brings_results_to_a_task_that_asked_is_replayed() -> None:
    recording = asks_within().recording(201)
    at_once = Change(serial=lambda step: float(step.what.step != STEP["result.gather"]))

    assert recording.replay.error == 0
    assert saved(recording, at_once) == (71, 71)


def test_own_code_between_computes_is_not_touched_by_faster_tasks() -> None:
    recording = two_graphs()

    assert saved(recording, Change(compute=0.0)) == (200, 200)
    assert recording.replay.at_most(Stage.OUTSIDE) == pytest.approx(0.05)
    assert recording.replay.at_most(Stage.CONSTRUCTION) == pytest.approx(0.04)
    assert recording.replay.at_most(Stage.EXECUTION) == pytest.approx(0.2)


def with_transfer() -> tuple[Recording, int]:
    """100 ms, then a fetch of 80 ms before 50 ms elsewhere; leads of 4 and lags of 3 ms."""
    made = HandMade()
    g = made.graph(0, 0, 0)
    a = made.run(0, 4, 104, cause=-1 - g, lead=(0, 4), finished=107)
    b = made.run(1, 191, 241, cause=a, lead=(109, 111), fetched=191, finished=244, wanted=True)
    made.wait(0, 250, b, 245)
    return made.recording(250), b


def test_a_transfer_on_the_path_is_replayed_exactly() -> None:
    recording, b = with_transfer()

    assert recording.replay.error == 0
    assert saved(recording, Change(fetch=0.0)) == (80, 80)
    assert saved(recording, Change(fetch=only(recording, {b: 0.25}))) == (60, 60)
    assert saved(recording, Change(lead=0.5)) == (4, 4)
    assert saved(recording, Change(lag=0.0)) == (6, 6)


def test_waiting_for_a_thread_is_a_result_and_no_input() -> None:
    """A task that waited 60 ms on a busy worker does not wait once the worker is free."""
    made = HandMade(workers=1)
    g = made.graph(0, 0, 0, wanted=2)
    a = made.run(0, 0, 60, cause=-1 - g, wanted=True)
    b = made.run(0, 60, 100, cause=-1 - g, lead=(0, 1), wanted=True)
    made.wait(0, 100, b, 100)
    recording = made.recording(100)

    assert recording.replay.error == 0
    assert saved(recording, Change(compute=only(recording, {a: 0.0}))) == (59, 59)
    assert saved(recording, Change(threads=2))[1] >= 39


def test_what_else_was_asked_for_is_waited_for_too() -> None:
    """Without its longest task a compute still waits for the second longest."""
    made = HandMade(workers=3)
    g = made.graph(0, 0, 0, wanted=3)
    for w, ms in enumerate((90, 40, 100)):
        made.run(w, 0, ms, cause=-1 - g, wanted=True)
    made.wait(0, 100, 2, 100)
    recording = made.recording(100)

    assert saved(recording, Change(compute=only(recording, {2: 0.0}))) == (10, 10)


def test_a_retried_task_waits_for_its_failed_attempt() -> None:
    made = HandMade()
    g = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - g, key="again", status=1)
    made.run(0, 100, 200, cause=first, needs=[-1], key="again", wanted=True)
    made.wait(0, 200, 1, 200)
    recording = made.recording(200)

    assert recording.replay.error == 0
    assert saved(recording, Change(compute=only(recording, {first: 0.0}))) == (100, 100)


def test_a_cluster_recorded_from_outside_has_a_replay() -> None:
    made = HandMade()
    g = made.graph(0, 0, 10)
    a = made.run(0, 10, 110, cause=-1 - g)
    made.run(0, 110, 210, cause=a, wanted=True)
    recording = made.recording(210, attached=True)
    low, high = recording.replay.saving(Change(compute=0.5))

    assert recording.replay.error < 0.02
    assert (low, high) == pytest.approx((0.1, 0.1), rel=0.05)


def test_a_recording_without_anything_has_a_replay_that_says_so() -> None:
    recording = HandMade().recording(100)
    empty = HandMade().recording(0)

    assert recording.replay.saving(Change(compute=0.0)) == (0, 0)
    assert recording.replay.error == 0
    assert empty.replay.saving(Change(compute=0.0)) == (0, 0)


def test_where_the_replay_cannot_tell_the_interval_is_wide() -> None:
    """Tasks that three idle workers could have taken, and one took: nobody recorded why."""
    made = HandMade(workers=4)
    g = made.graph(0, 0, 0, wanted=4)
    for i in range(4):
        made.run(0, 100 * i, 100 * i + 100, cause=-1 - g, lead=(0, 0), wanted=True)
    made.wait(0, 400, 3, 400)
    recording = made.recording(400)
    low, high = recording.replay.saving(Change(compute=0.5))

    assert recording.replay.error > 0.5
    assert low < 0.05
    assert high >= 0.2


def test_a_loop_that_waits_for_each_holds_each_once() -> None:
    """So many calls each held all that had come before them: the square of their number."""
    made = HandMade()
    graph = made.graph(0, 1, 1, wanted=200)
    for i in range(200):
        made.run(0, 1 + 10 * i, 11 + 10 * i, cause=i - 1 if i else -1 - graph, wanted=True)
        made.wait(1 + 10 * i, 11 + 10 * i, i, 11 + 10 * i)
    recording = made.recording(2001)
    replay = recording.replay
    waits = [op for program in replay._programs for op in program.ops if op.kind == Kind.WAIT]
    assert sum(len(op.on) for op in waits) <= 2 * 200
    assert replay.error < 0.01


def test_calls_that_overlap_within_a_task_are_counted_once() -> None:
    made = HandMade()
    graph = made.graph(0, 0, 0)
    outer = made.run(0, 0, 100, cause=-1 - graph, wanted=True)
    made.launched(outer, 10)
    inner = made.run(1, 10, 60, cause=-2, wanted=True)
    made.waits_within(0, 10, 60, inner, 60)
    made.waits_within(0, 20, 50, inner, 60)
    made.wait(0, 100, outer, 100)
    recording = made.recording(100)
    assert recording.stages()["wall_s"].sum() == pytest.approx(0.1, abs=1e-6)


def test_a_task_that_took_no_time_holds_no_thread_of_the_one_that_began_with_it() -> None:
    """Clocks are coarse: on one thread a longer task and one of no time begin at one instant."""
    made = HandMade(workers=1)
    g = made.graph(0, 0, 0, wanted=4)
    last = -1
    for start, stop in ((0, 10), (10, 30), (10, 10), (30, 50)):
        last = made.run(0, start, stop, cause=-1 - g, lead=(0, 0), wanted=True)
    made.wait(0, 50, last, 50)
    recording = made.recording(50)

    assert recording.replay.error == 0
    assert saved(recording, Change(compute=0.5)) == (25, 25)


@pytest.mark.parametrize("polls", [1, 4])
@pytest.mark.parametrize("then", [True, False])
def test_who_gives_a_task_up_is_replayed_exactly(polls: int, *, then: bool) -> None:
    """It hands over another graph, or waits once more: for that task all the time."""
    made = HandMade(workers=2)
    first = made.run(0, 5, 905, cause=-1 - made.graph(0, 1, 2), wanted=True)
    for i in range(polls):
        gave_up = (ns(10 + 100 * i), ns(110 + 100 * i), LANE, "_result gave up", 0, 0, 0, "task-0")
        made.rows_of(CLIENT).append((BLOCK, *gave_up))
    if then:
        after = made.graph(600, 601, 602)
        last = made.run(1, 605, 700, cause=-1 - after, wanted=True)
        made.wait(602, 702, last, 701)
    made.wait(710 if then else 10 + 100 * polls, 910, first, 907)
    replay = made.recording(920).replay

    assert replay.error < 0.01
    assert replay.saving(Change(compute=np.array([0.0, 1.0][: 1 + then])))[1] > 0.15
