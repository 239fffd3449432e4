"""A program that was killed while it waited: it waited to the end of the recording."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof.renderers import terminal
from stageprof_collectors.account.attempts import LOCAL
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.nothing_to_fix import RULE
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import ASSIGN, BLOCK, FINISH, GRAPH, MARK, RUN, SUBMIT
from stageprof_runtime.stage import STEP, Stage
from stageprof_runtime.underway import TELLS

#: An async region's lane.
REGION = -3


def shares(recording: Recording) -> dict[Stage, float]:
    """Of the wall time, which the stages cover."""
    frame = recording.stages()
    assert frame["wall_s"].sum() == pytest.approx(recording.wall)
    return {stage: float(frame["share"][stage]) for stage in Stage}


def killed(*, told: bool, going_on: bool = True) -> HandMade:
    """Three tasks one after another, of which the last may go on when the program is killed."""
    made = HandMade()
    cause = -1 - made.graph(10, 12, 14)
    first = made.run(0, 15, 400, cause=cause)
    second = made.run(0, 401, 800, cause=first)
    if going_on:
        made.goes_on(1, 801, cause=second)
    if told:
        made.rows_of(CLIENT).append((MARK, ns(5), TELLS, ""))
        made.waits_since(11)
    return made


@pytest.mark.parametrize("told", [True, False])
def test_time_until_the_kill_is_that_of_what_was_awaited(told: bool) -> None:
    """Also in a recording whose client did not tell that it waits: its graph's tasks ran."""
    found = shares(killed(told=told).broken_off(1000))
    assert found[Stage.EXECUTION] == pytest.approx(0.985, abs=0.005)
    assert found[Stage.OUTSIDE] == pytest.approx(0.01, abs=0.002)


def test_its_steps_are_those_of_the_complete_recording() -> None:
    """But for the last task, of which no worker told yet."""
    made = killed(told=True, going_on=False)
    last = made.run(1, 801, 1000, cause=1, wanted=True)
    made.wait(11, 1000, last, 1000)
    whole, cut = shares(made.recording(1000)), killed(told=True).broken_off(1000)
    assert shares(cut) == pytest.approx(whole, abs=0.005)


def test_an_async_region_waits_as_well() -> None:
    made = HandMade()
    made.goes_on(0, 12, cause=-1 - made.graph(10, 11, 12))
    made.waits_since(11, "gather", REGION)
    found = shares(made.broken_off(1000, REGION))
    assert found[Stage.EXECUTION] > 0.98


def test_between_tasks_it_waits_for_the_scheduler() -> None:
    """None is assigned, and what was asked for is not there."""
    found = shares(killed(told=True, going_on=False).broken_off(1000))
    assert found[Stage.SCHEDULING] == pytest.approx(0.2, abs=0.01)


def test_a_graph_that_is_still_taken_in_is_what_the_scheduler_is_at() -> None:
    made = HandMade()
    made.rows_of(CLIENT).append((SUBMIT, 0, ns(10), 1, 0, 7, "etl.py", 1))
    made.waits_since(11)
    made.now[SCHEDULER] = STEP["materialize"]
    found = shares(made.broken_off(1000))
    assert found[Stage.CONSTRUCTION] == pytest.approx(0.989, abs=0.002)


# -- what is no wait --------------------------------------------------------------------------


def test_a_program_that_tells_and_did_not_say_so_was_not_waiting() -> None:
    """It persisted something, and went on by itself."""
    made = HandMade()
    made.rows_of(CLIENT).append((MARK, ns(5), TELLS, ""))
    made.goes_on(0, 12, cause=-1 - made.graph(10, 11, 12))
    assert shares(made.broken_off(5000))[Stage.OUTSIDE] > 0.99


def test_a_call_that_began_right_before_the_kill_is_not_told_of_yet() -> None:
    made = HandMade()
    made.rows_of(CLIENT).append((MARK, ns(5), TELLS, ""))
    made.goes_on(0, 4512, cause=-1 - made.graph(4500, 4511, 4512))
    found = shares(made.broken_off(5000))
    assert found[Stage.EXECUTION] == pytest.approx(0.0976, abs=0.001)


def test_a_call_whose_end_was_lost_has_ended_when_its_region_did() -> None:
    assert shares(killed(told=True).recording(1000))[Stage.OUTSIDE] == pytest.approx(1.0)


def test_a_call_whose_end_was_lost_has_ended_when_another_graph_is_handed_over() -> None:
    """So much as is known: when it ended is not."""
    made = killed(told=True, going_on=False)
    made.goes_on(0, 902, cause=-1 - made.graph(900, 901, 902))
    made.waits_since(901)
    found = shares(made.broken_off(1000))
    assert found[Stage.OUTSIDE] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("label", ["", "7", "-", "x _gather", "99999999999999999999 _gather"])
def test_a_damaged_mark_is_nobodys_call(label: str) -> None:
    made = killed(told=False, going_on=False)
    made.rows_of(CLIENT).append((MARK, ns(11), "waits since", label))
    shares(made.broken_off(1000))


# -- what is said -----------------------------------------------------------------------------


def verdict(recording: Recording) -> Finding:
    """What is said where no other rule found anything."""
    [found] = RULE.find(recording, DEFAULTS.of(RULE))
    return found


def test_there_is_no_verdict_of_a_run_that_was_not_seen_to_its_end() -> None:
    found = verdict(killed(told=True).broken_off(1000))
    assert found.headline.startswith("It ended early: no stage around the tasks cost more than ")
    assert "its program was killed" in found.fix.text
    whole = verdict(killed(told=True).recording(1000))
    assert "ended early" not in whole.headline


def test_a_stage_without_a_known_cause_is_named_with_what_it_cost_by_then() -> None:
    found = verdict(killed(told=True, going_on=False).broken_off(20_000)).headline
    assert found == "It ended early: no known cause by then; scheduling cost at most 19.2 s"
    assert cell_len(found.replace("scheduling", "communication")) <= 80


def test_rules_are_asked_of_what_is_there() -> None:
    found = killed(told=True).broken_off(1000).findings()
    assert found[0].severity != Severity.NOTE


def test_nothing_that_was_seen_by_then_is_no_program_without_dask() -> None:
    found = verdict(HandMade().broken_off(1000))
    assert found.headline == "It ended early: no Dask computation had been seen by then"


def test_why_it_is_incomplete_is_said_whole() -> None:
    """Within 80 columns, and the summary within 30 lines."""
    recording = killed(told=True).broken_off(1000)
    recording.store.incomplete_reason = (
        "frame 11 at byte 72,927 cannot be read: the frame is cut off: 13,613 of 14,216 bytes"
    )
    lines = terminal.text(summarize(recording)).splitlines()
    said = " ".join(lines[2:4])
    assert said.endswith("the frame is cut off: 13,613 of 14,216 bytes)")
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= 80


def test_a_worker_whose_task_goes_on_is_not_idle() -> None:
    """Of two, one ends a task after the other; the other is at one all the while."""
    made = HandMade()
    cause = -1 - made.graph(10, 12, 14)
    made.goes_on(1, 15, cause=cause)
    for i in range(10):
        cause = made.run(0, 15 + 100 * i, 114 + 100 * i, cause=cause, wanted=True)
    made.goes_on(0, 1015, cause=cause)
    made.waits_since(11)
    rules = [found.rule for found in made.broken_off(1115).findings()]
    assert "idle-workers" not in rules


@pytest.mark.parametrize("going_on", [True, False])
def test_a_local_schedulers_caller_waits_for_its_tasks(going_on: bool) -> None:
    """One that goes on has no other end than that of the recording."""
    made = HandMade()
    rows = made.rows_of(CLIENT)
    rows.append((SUBMIT, LOCAL, ns(10), 1, 0, LANE, "etl.py", 1))
    rows.append((GRAPH, LOCAL, ns(10), ns(11), 2, 1, "local", -1))
    for run, t in ((LOCAL, 12), (LOCAL + 1, 412))[: 1 + going_on]:
        rows.append((ASSIGN, run, ns(t), "local", -1 - LOCAL, f"task-{run}"))
    rows.append((RUN, LOCAL, ns(12), ns(12), ns(12), ns(410), 9, 0, "local"))
    rows.append((FINISH, LOCAL, ns(410), 0, 8, "int"))
    rows.append((BLOCK, ns(12), ns(411), LANE, "local", 0, 0, 0, ""))
    made.waits_since(413, "local")
    recording = made.broken_off(1000)
    assert (recording.steps()["busy_s"] >= 0).all()  # its loop's span was never told
    found = shares(recording)
    expected = (Stage.EXECUTION, 0.986) if going_on else (Stage.SCHEDULING, 0.59)
    assert found[expected[0]] == pytest.approx(expected[1], abs=0.005)
