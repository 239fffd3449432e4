"""A call that is interrupted before all of its results have come waited for what went on."""

from __future__ import annotations

import pytest

from replay.handmade import CLIENT, LANE, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ARRIVE, BLOCK


def interrupted(made: HandMade, came: str, awaited: float, *, call: str = "_gather") -> Recording:
    """A call from 200 to 5,000 ms that fetched nothing; a key of its had come by then."""
    rows = made.rows_of(CLIENT)
    rows.append((ARRIVE, ns(awaited), came))
    rows.append((BLOCK, ns(200), ns(5000), LANE, call, ns(awaited), 0, 0, came))
    return made.recording(5000)


def first(made: HandMade) -> str:
    """Two graphs, of which one is done; the key of its run."""
    run = made.run(0, 0, 100, cause=-1 - made.graph(0, 0, 0), wanted=True)
    made.wait(0, 150, run, 120)
    return f"task-{run}"


def wall(recording: Recording, stage: str) -> float:
    return float(recording.stages()["wall_s"][stage])


def test_where_tasks_go_on_it_waited_for_these() -> None:
    made = HandMade(2)
    key = first(made)
    made.run(1, 300, 6000, cause=-1 - made.graph(200, 200, 250), wanted=True)
    assert wall(interrupted(made, key, 210), "execution") == pytest.approx(4.8, abs=0.02)


def half_done(made: HandMade) -> Recording:
    """A call for a key that no run made: two runs, 1.5 s each, and perhaps another that goes on."""
    made.rows_of(CLIENT).append((BLOCK, ns(200), ns(5000), LANE, "_gather", 0, 0, 0, "last-1"))
    return made.recording(5000)


def chain(made: HandMade) -> int:
    """Two runs, one after the other, of the graph that is to end with a key that none made."""
    one = made.run(0, 300, 1800, cause=-1 - made.graph(200, 200, 250))
    return made.run(0, 1900, 3400, cause=one)


def test_before_the_last_task_began_it_waited_for_those_before_it() -> None:
    """A `compute` that is interrupted half-way: what it waited for is what was done of it."""
    made = HandMade(2)
    made.run(1, 3500, 6000, cause=chain(made))
    assert wall(half_done(made), "execution") == pytest.approx(4.5, abs=0.02)


def test_where_the_rest_does_not_begin_it_waited_for_the_scheduler_since_the_last_ended() -> None:
    made = HandMade(2)
    chain(made)
    recording = half_done(made)
    assert wall(recording, "execution") == pytest.approx(3.0, abs=0.02)
    assert wall(recording, "scheduling") == pytest.approx(1.7, abs=0.15)


def test_a_wait_that_gave_up_fetches_nothing_and_waited_for_what_goes_on() -> None:
    """So does the last turn of a loop over `as_completed`; whatever came of it before."""
    for call in ("_wait", "as_completed", "_result"):
        made = HandMade(2)
        key = first(made)
        made.run(1, 300, 6000, cause=-1 - made.graph(200, 200, 250), wanted=True)
        recording = interrupted(made, key, 210, call=f"{call} gave up")
        assert wall(recording, "execution") == pytest.approx(4.8, abs=0.02)


def test_a_task_that_ended_with_such_an_error_was_waited_for() -> None:
    """A timeout of its own, say: it came as the call ended."""
    made = HandMade(2)
    run = made.run(0, 300, 4900, cause=-1 - made.graph(200, 200, 250), wanted=True)
    made.run(1, 2000, 6000, cause=-1 - made.graph(1900, 1900, 1950))
    recording = interrupted(made, f"task-{run}", 4990, call="_gather gave up")
    assert wall(recording, "execution") == pytest.approx(4.6, abs=0.05)


def test_where_none_does_it_waited_for_the_scheduler() -> None:
    """No worker may run what is left; the first of the keys had been computed before."""
    made = HandMade(2)
    key = first(made)
    made.graph(200, 200, 250, wanted=3)
    recording = interrupted(made, key, 210)
    assert wall(recording, "scheduling") == pytest.approx(4.8, abs=0.02)
    assert wall(recording, "communication") < 0.1


def test_a_key_that_never_was_any_runs_is_waited_for_at_the_scheduler() -> None:
    made = HandMade(2)
    first(made)
    made.graph(200, 200, 250, wanted=3)
    made.rows_of(CLIENT).append((BLOCK, ns(200), ns(5000), LANE, "_gather", 0, 0, 0, "other-1"))
    assert wall(made.recording(5000), "scheduling") == pytest.approx(4.8, abs=0.02)


def test_a_result_that_is_not_fetched_but_only_waited_for_took_its_way() -> None:
    """`wait` fetches nothing: what comes after the last key is the message's."""
    made = HandMade(2)
    key = first(made)
    made.graph(200, 200, 250)
    recording = interrupted(made, key, 210, call="_wait")
    assert wall(recording, "communication") == pytest.approx(4.8, abs=0.05)
