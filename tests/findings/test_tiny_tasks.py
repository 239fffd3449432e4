"""Rule tiny-tasks: A9 (batch), A39, A40."""

from __future__ import annotations

import dask
import dask.bag as db
import pytest

import clusters
from findings.asking import asked, one, run
from findings.crowded import FILE, SCHEDULER, WORKER, Program, calls, ns
from stageprof_collectors.findings.crowd import Kind
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.tiny_tasks import RULE
from stageprof_runtime.event import DEPEND, RUN

TASKS = 600


def program(work: float = 0.1, tasks: int = TASKS, lead: float = 1.0) -> Recording:
    made = Program()
    made.made("checked", 21)
    made.client("construction/build", 100.0, f"{FILE}:21", seen=True)
    made.tasks(calls(tasks), work=work, lead=lead)
    return made.recording()


def test_many_short_tasks_are_named_with_their_line_and_what_each_costs() -> None:
    """A9: too many tasks that do too little."""
    found = one(RULE, program())

    assert "600 tasks, most of `checked` at etl.py:21" in found.headline
    assert found.where.file == FILE
    assert found.where.prefix == "checked"
    # A millisecond each on the way, and 100 ms of building them.
    assert found.evidence["overhead_each_s"] == pytest.approx(0.7 / TASKS)
    assert found.cost_s == pytest.approx(0.7)
    low, high = found.saving_s
    assert 0.9 * 0.7 < low <= high < 0.7


@pytest.mark.parametrize(
    ("work", "tasks", "fires"),
    [(0.1, 600, True), (11.0, 600, True), (12.0, 600, False), (0.1, 499, False), (0.1, 500, True)],
)
def test_it_fires_below_ten_overheads_of_work_and_from_500_tasks(
    work: float, tasks: int, fires: bool
) -> None:
    assert bool(asked(RULE, program(work, tasks))) == fires


def test_tasks_that_need_one_another_in_a_chain_are_not_batched() -> None:
    made = Program()
    made.tasks(calls(TASKS), work=0.1, chain=True)
    assert not asked(RULE, made.recording())


def test_batch_leaves_four_tasks_for_each_thread() -> None:
    found = one(RULE, program())
    assert found.evidence["batch_size"] == 100  # 600 tasks of one thread: 150, rounded
    assert "checked" in found.fix.code


def test_what_else_calls_are_given_is_not_known_of_a_run_and_said() -> None:
    """Only results of other tasks are seen: `delayed(f)(i, j)` may be given two numbers."""
    code = one(RULE, program()).fix.code
    assert "if that is several, their tuple, and checked(*x)" in code
    compile(code, "printed", "exec")


@pytest.mark.parametrize(
    ("rounds", "tasks", "batch"),
    [
        (15, 40, 10),  # of a round each thread is left four, whatever number of rounds there are
        (TASKS, 1, 100),  # `submit` hands over each by itself
    ],
)
def test_what_rounds_compute_is_batched_within_each(rounds: int, tasks: int, batch: int) -> None:
    made = Program()
    names = calls(rounds * tasks)
    for i in range(rounds):
        made.tasks(names[i * tasks : (i + 1) * tasks], work=0.1)
    assert one(RULE, made.recording()).evidence["batch_size"] == batch


def test_pipelines_that_are_handed_over_one_by_one_can_be_put_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`client.compute` of many delayed objects of two steps each: 300 of one kind, not two."""
    made = Program()
    monkeypatch.setattr(Program, "_wait", lambda *_: None)
    for first in calls(300):
        made.tasks([first, first.replace("checked", "parsed")], work=0.1)
    recording = made.recording()
    crowd = recording.crowds.of(Kind.CALLS)
    assert crowd is not None
    assert Overhead(recording, crowd).at_once == 300


def test_bags_of_rounds_are_left_partitions_for_each_thread() -> None:
    """It printed more partitions than there were, for it counted those of all rounds."""
    made = Program()
    for _ in range(15):
        keys = [(f"lambda-{'a' * 32}", i) for i in range(40)]
        made.tasks(keys, work=0.1, type_="list")
    bag = db.from_sequence(range(400), npartitions=40)
    assert run(one(RULE, made.recording()), bag=bag)["bag"].npartitions == 4


def test_printed_code_gives_the_same_results_in_fewer_tasks() -> None:
    found = one(RULE, program())

    def checked(x: int) -> int:
        return x * x

    with dask.config.set(scheduler="sync"):
        names = run(found, checked=checked, inputs=list(range(250)))
    assert names["results"] == [x * x for x in range(250)]
    assert len(names["batches"]) == 3


def test_printed_code_for_futures_maps_and_gathers() -> None:
    """Keys of `client.map` end with a hash of what is called, those of `delayed` with chance."""
    made = Program()
    made.tasks([f"checked-{i:032x}" for i in range(TASKS)], work=0.1)
    found = one(RULE, made.recording())

    with clusters.inside() as client:
        names = run(found, checked=lambda x: x * x, inputs=list(range(250)), client=client)
    assert names["results"] == [x * x for x in range(250)]
    assert "dask.compute" not in found.fix.code


def test_printed_code_of_functions_of_several_results_gives_each_its_tuple() -> None:
    made = Program()
    runs = made.tasks(calls(2, "load"), work=0.1)
    pairs = made.tasks(calls(TASKS), work=0.1)
    rows = made.rows[SCHEDULER]
    rows[:] = [row for row in rows if row[0] != DEPEND]
    rows += [(DEPEND, pair, run) for pair in pairs for run in runs]
    found = one(RULE, made.recording())

    with dask.config.set(scheduler="sync"):
        inputs = [(dask.delayed(i), i + 1) for i in range(250)]
        names = run(found, checked=lambda a, b: a * b, inputs=inputs)
    assert names["results"] == [i * (i + 1) for i in range(250)]


def test_printed_code_for_a_bag_makes_fewer_partitions() -> None:
    made = Program()
    keys = [(f"map-{'0' * 32}", i) for i in range(TASKS)]
    made.tasks(keys, work=0.1, type_="list")
    names = run(one(RULE, made.recording()), bag=db.from_sequence(range(1000), npartitions=200))
    assert names["bag"].npartitions == 6
    assert names["bag"].sum().compute(scheduler="sync") == sum(range(1000))


def test_name_that_is_no_identifier_is_not_printed() -> None:
    made = Program()
    made.tasks(calls(TASKS, "__import__('os')"), work=0.1)
    assert "__import__" not in one(RULE, made.recording()).fix.code


def test_where_the_scheduler_did_not_tell_of_all_runs_the_interval_is_wide() -> None:
    made = Program()
    made.tasks(calls(TASKS), work=0.1)
    extra = [(RUN, 10_000 + i, ns(1), ns(1), ns(1), ns(2), 101, 0, WORKER.name) for i in range(99)]
    made.rows[WORKER] += extra
    found = one(RULE, made.recording())
    assert found.saving_s[1] == pytest.approx(0.6, rel=0.02)
    assert not asked(RULE, Program().recording())
