"""Whatever a recording says, and whatever it lost, its account is whole and agrees with itself."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import SPAN
from stageprof_runtime.stage import SIX, STEP, Stage

#: Of the region, ms; events may lie before and after it.
END = 600.0
CALLS = ["_gather", "_result", "wait", "local", "actor"]
CLIENTS_STEPS = ["build", "tokenize", "expr", "graph.dump", "result.load", "local.loop"]
OTHERS_STEPS = ["transition", "order", "state", "task.load", "data.transfer", "graph.load"]


def recorded(drawn: Random) -> Recording:
    """Some computations at once: with impossible times, rows that were lost, a clock that is off,
    and perhaps without an end."""  # noqa: D205, D209
    made = HandMade(workers=2)
    for _ in range(drawn.randint(0, 3)):
        computation(made, drawn)
    works(made, drawn)
    for place in made._rows:
        rows = made.rows_of(place)
        rows[:] = [row for row in rows if drawn.random() > 0.05]
    off = drawn.choice([0, drawn.randint(-200, 200) * 1_000_000])
    skewed = made.rows_of(made._workers[0])
    skewed[:] = [tuple(later(value, off) for value in row) for row in skewed]
    return made.broken_off(END) if drawn.random() < 0.2 else made.recording(END)


def later(value: object, off: int) -> object:
    """An instant by a clock that is off; other values as they are."""
    return value + off if isinstance(value, int) and value > ns(-500) else value


def computation(made: HandMade, drawn: Random) -> None:
    sent = drawn.uniform(-5, END)
    causes = [-1 - made.graph(sent, sent + drawn.uniform(-3, 30), sent + drawn.uniform(0, 60))]
    for _ in range(drawn.randint(0, 6)):
        start = drawn.uniform(sent, END)
        stop = start + drawn.choice([0, drawn.uniform(0, 200)])
        run = made.run(
            drawn.randint(0, 1), start, stop, cause=drawn.choice([*causes, -8]),
            lead=(start - drawn.uniform(0, 50), start - drawn.uniform(-5, 20)),
            finished=stop + drawn.uniform(-5, 30), thread=drawn.randint(0, 1),
            key=(f"layer{drawn.randint(0, 3)}", drawn.randint(0, 9)),
            wanted=drawn.random() < 0.5, status=drawn.randint(0, 3),
        )  # fmt: skip
        causes.append(run)
    start = drawn.uniform(-10, END)
    stop = start + drawn.uniform(0, 300)
    made.wait(start, stop, max(causes), drawn.uniform(start, stop), call=drawn.choice(CALLS))


def works(made: HandMade, drawn: Random) -> None:
    """Spans of all places, nested or not."""
    for place, steps in ((CLIENT, CLIENTS_STEPS), (SCHEDULER, OTHERS_STEPS)):
        for _ in range(drawn.randint(0, 4)):
            start, thread = drawn.uniform(-10, END), 7 if place == CLIENT else 1
            times = ns(start), ns(start + drawn.uniform(0, 100))
            made.rows_of(place).append((SPAN, STEP[drawn.choice(steps)], *times, thread, "", 8))


@settings(max_examples=12)
@given(st.randoms(use_true_random=False))
def test_each_instant_is_there_once_and_all_tables_have_the_same_sums(drawn: Random) -> None:
    recording = recorded(drawn)
    region, steps = recording.timeline.region, recording.path_steps
    stages, layers, by_step = recording.stages(), recording.layers(), recording.steps()

    assert [region.start, *(s.stop for s in steps)] == [*(s.start for s in steps), region.stop]
    assert stages["wall_s"].sum() == pytest.approx(recording.wall, abs=1e-9)
    assert layers["wall_s"].sum() == pytest.approx(
        recording.wall - stages["wall_s"][Stage.OUTSIDE], abs=1e-9
    )
    assert (layers["before_first_task_s"] <= layers["wall_s"] + 1e-9).all()
    assert (layers[[f"{stage}_s" for stage in SIX]] >= 0).all().all()
    for stage in SIX:
        assert layers[f"{stage}_s"].sum() == pytest.approx(stages["busy_s"][stage], abs=1e-9)
    walls = by_step.reset_index().groupby("stage")["wall_s"].sum()
    assert walls.reindex(stages.index).fillna(0).tolist() == pytest.approx(
        stages["wall_s"].tolist(), abs=1e-9
    )


@settings(max_examples=12)
@given(st.randoms(use_true_random=False))
def test_a_computation_has_no_more_seconds_than_it_lasted(drawn: Random) -> None:
    """And all of them have no more work than there is."""
    recording = recorded(drawn)
    table, work = recording.computations(), recording.stages()["busy_s"].sum()
    lines = table[[f"{stage}_s" for stage in Stage]]

    assert (lines >= 0).all().all()
    assert (lines.sum(axis=1) <= table["duration_s"] + 1e-9).all()
    assert not (table["first_task_s"] > table["duration_s"] + 1e-9).any()
    assert (table["busy_s"] >= 0).all()
    assert table["busy_s"].sum() <= work + 1e-9
