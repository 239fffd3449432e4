"""What differs beside the program is named, and then times do not fail a build."""

from __future__ import annotations

import pytest

from compare.made import CONDITIONS, COUNTS, DUMP, against, runs
from replay.handmade import HandMade, ns
from stageprof_collectors.comparison import circumstances
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.measured import Group, measure
from stageprof_collectors.recording import Recording
from stageprof_runtime.batch import pack
from stageprof_runtime.event import Place

TEST = "tests/test_etl.py::test_join"
READ = Group("load", "etl.py", 12)


@pytest.mark.parametrize("kind", ["machine", "versions", "cluster"])
def test_a_condition_that_differs_is_named_and_times_are_not_judged(kind: str) -> None:
    elsewhere = {**CONDITIONS, kind: "other"}
    head = runs(seed=2, more={DUMP: 0.2}, conditions=elsewhere)
    found = against(runs(seed=1), head)
    forced = against(runs(seed=1), head, force=True)

    assert [(d.kind, d.after) for d in found.differences] == [(kind, ("other",))]
    assert (found.unjudged, found.regressions) == ("differ", 0)
    assert forced.differences == found.differences
    assert forced.regressions > 0


def test_other_data_are_named() -> None:
    found = against(runs(seed=1, read={READ: 10_000_000}), runs(seed=2, read={READ: 20_000_000}))

    assert [d.kind for d in found.differences] == ["data"]
    assert found.differences[0].after == ("load (etl.py:12) gives 20.0 MB",)


def test_data_that_differ_a_little_are_the_same() -> None:
    found = against(runs(seed=1, read={READ: 10_000_000}), runs(seed=2, read={READ: 10_500_000}))

    assert found.differences == ()


def test_counts_are_judged_wherever_they_were_counted() -> None:
    """A graph is as large on any machine."""
    base, head = runs(seed=1), runs(seed=2, conditions={**CONDITIONS, "machine": "other"})
    grown = {**head[0].counts, "graph_tasks": 400.0}
    found = against(base, runs(seed=2, conditions=head[0].conditions, counts=grown))

    assert (found.unjudged, found.regressions) == ("differ", 1)


@pytest.mark.parametrize(
    ("header", "program"),
    [
        ({"program": "etl.py", "label": "etl.py"}, "etl.py"),
        ({"program": "etl.py", "label": "Block at etl.py:12"}, "etl.py, Block at etl.py"),
        ({"program": "", "label": "Block at In [3]:2"}, "Block at In"),
        ({"program": "etl.py", "label": "In [3]:2"}, "etl.py, In [3]"),
        ({"program": "pytest", "label": "tests/test_etl.py::test_join"}, TEST),
        ({"program": "python -m pytest", "label": "tests/test_etl.py::test_join"}, TEST),
        ({}, ""),
    ],
)
def test_a_test_is_the_same_program_whoever_runs_it(header: dict[str, str], program: str) -> None:
    assert circumstances.program(header) == program


LOST = "500,000 events lost"


@pytest.mark.parametrize("which", ["baseline", "candidate"])
@pytest.mark.parametrize("force", [False, True])
def test_sides_of_which_one_lacks_events_are_not_compared(which: str, *, force: bool) -> None:
    """Half the tasks were fewer, or twice as many, and nobody was told why."""
    half = {name: number / 2 for name, number in COUNTS.items()}
    short, whole = runs(seed=1, lost=LOST, counts=half), runs(seed=2)
    sides = (short, whole) if which == "baseline" else (whole, short)
    found = against(*sides, force=force)

    (difference,) = found.differences
    said = difference.before if which == "baseline" else difference.after
    assert (difference.kind, said) == ("events", (LOST,))
    assert {count.judged for count in found.counts} == {Judged.UNKNOWN}


def test_sides_of_which_both_lack_events_are() -> None:
    found = against(runs(seed=1, lost=LOST), runs(seed=2, lost=LOST))
    assert not found.differences
    assert {count.judged for count in found.counts} == {Judged.SAME}


def test_what_a_full_buffer_dropped_is_lost() -> None:
    """Only whole batches were."""
    made = HandMade(1)
    store = made.recording(1000).store
    place = Place("worker", "host", 99, "tcp://host:99", 1)
    store.add(pack(place, 0, ns(1), [], drops={"ring full": 500_000, "hook failed: x": 3}))
    assert measure(Recording(store)).lost == LOST
