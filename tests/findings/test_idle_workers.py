"""The rule idle-workers: C23, C28 (pieces against threads), B27."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, wait

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed, side_by_side
from replay.handmade import SCHEDULER, ns
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.misplaced import fix, line, passed_on
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.idle_workers import RULE
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.event import FINISH, RUN, SAMPLE, TURN


def lonely(lengths: list[tuple[int, float]], workers: int = 2) -> Recording:
    made = Crewed(workers)
    return made.recording(side_by_side(made, lengths))


def test_a_task_that_outlasts_what_is_known_of_all_workers_is_none_of_many_threads() -> None:
    """NumPy warned the program of a division by zero."""
    made = Crewed(2)
    end = side_by_side(made, [(0, 900)])
    for worker in range(2):
        made.left(worker, 800)

    found = one(RULE, made.recording(end))

    assert found.saving_s == pytest.approx((0.27, 0.4), abs=0.01)


def test_one_task_for_two_threads_is_found_with_what_the_other_would_save() -> None:
    """C28: at worst the second thread is worth half of the first, at best as much."""
    found = one(RULE, lonely([(0, 900)]))

    assert found.evidence["threads_idle"] == 1
    assert found.evidence["why"] == "too few tasks"
    assert found.saving_s == pytest.approx((0.3, 0.45), abs=0.01)
    assert found.cost_s == pytest.approx(0.9)
    assert "1 of 2 threads" in found.headline


@pytest.mark.parametrize(("cpu_s", "fires"), [(0.3, True), (1.7, False)])
def test_a_task_whose_library_uses_the_other_cpus_is_wide_enough(cpu_s: float, fires: bool) -> None:
    """A training with OpenMP in one task: the other thread is idle, and its CPU is not."""
    made = Crewed(2)
    lengths = side_by_side(made, [(0, 900)])
    made.took(0, 1000, cpu_s)
    assert bool(asked(RULE, made.recording(lengths))) is fires


def test_what_other_tasks_of_the_process_took_is_no_librarys() -> None:
    """Short ones on the same worker before one was left alone; nobody else used a CPU."""
    made = Crewed(1, threads=2)
    graph = made.graph(0, 0, 0, wanted=4)
    how: dict[str, Any] = {"cause": -1 - graph, "wanted": True, "lead": (0, 0)}
    last = made.run(0, 0, 900, thread=0, key="long-1a", **how)
    for i in range(4):
        made.run(0, i * 100, i * 100 + 100, thread=1, key=f"short-{i}a", **how)
    rows = made.rows_of(made._workers[0])
    rows[:] = [(*r[:7], r[5] - r[4], *r[8:]) if r[0] == RUN else r for r in rows]  # all computed
    for at, value in ((0.0, 0.0), (400.0, 0.8), (1000.0, 1.3)):
        rows.append((SAMPLE, ns(at), "process.cpu_s", value))
    made.wait(0, 900, last, 900)
    assert asked(RULE, made.recording(1000))


@pytest.mark.parametrize(
    ("lengths", "fires"),
    [
        ([(0, 900), (1, 900)], False),
        ([(0, 900), (1, 750)], False),
        ([(0, 900), (1, 700)], True),
    ],
)
def test_it_fires_where_a_tenth_of_the_threads_time_is_idle_for_want_of_tasks(
    lengths: list[tuple[int, float]], fires: bool
) -> None:
    """Of 1,800 ms of two threads: 150 are less than a tenth, 200 are more."""
    found = asked(RULE, lonely(lengths))
    assert bool(found) is fires
    assert not found or "Threads had, for 200 ms in sum" in found[0].headline


def test_it_fires_where_a_thread_is_idle_for_more_than_half_of_the_others_time() -> None:
    """However short that is beside what the program does otherwise."""
    made = Crewed(2)
    assert len(asked(RULE, made.recording(side_by_side(made, [(0, 900), (1, 300)]) + 5000))) == 1


def put_together(pieces: int) -> Finding:
    """Short tasks on two workers, and one of 900 ms that needs them all."""
    made = Crewed(2)
    made.made("concat", 7)
    cause = -1 - made.graph(0, 0, 0)
    parts = [made.run(i % 2, 0, 10, cause=cause, key=f"part-{i}") for i in range(pieces)]
    key = "concat-1a2b"
    lead = (10.0, 10.0)
    made.run(0, 10, 910, cause=parts[-1], needs=parts, key=key, lead=lead, wanted=True)
    made.wait_for(0, 910, key)
    return one(RULE, made.recording(910))


@pytest.mark.parametrize(
    ("kind", "why"),
    [("pandas.DataFrame", "a result in one piece"), ("numpy.float64", "too few tasks")],
)
def test_a_frame_that_is_put_together_of_parts_may_stay_in_pieces(kind: str, why: str) -> None:
    """A groupby with many groups: cutting the data, which are cut, would change nothing."""
    made = Crewed(2)
    cause = -1 - made.graph(0, 0, 0)
    parts = [made.run(i % 2, 0, 10, cause=cause, key=f"part-{i}") for i in range(8)]
    key, lead = ("sum-tree-1a2b", 0), (10.0, 10.0)
    made.run(0, 10, 910, cause=parts[-1], needs=parts, key=key, lead=lead, wanted=True)
    made.wait_for(0, 910, key)
    rows = made.rows_of(SCHEDULER)
    rows[:] = [(*r[:5], kind) if r[0] == FINISH else r for r in rows]

    found = one(RULE, made.recording(910))

    assert found.evidence["why"] == why
    assert ("split_out=4" in found.fix.code) is (why == "a result in one piece")


@pytest.mark.parametrize(("pieces", "why"), [(8, "too few tasks"), (9, "all pieces in one task")])
def test_one_task_for_all_pieces_is_to_get_what_each_gives(pieces: int, why: str) -> None:
    """Cutting what was put together is no advice; Dask's own reductions join eight at a time."""
    assert put_together(pieces).evidence["why"] == why


@pytest.mark.parametrize(
    ("megabytes", "why"), [(20, "all pieces in one task"), (1, "too few tasks")]
)
def test_what_works_on_a_small_answer_did_not_get_all_pieces(megabytes: int, why: str) -> None:
    """A reduction of twenty pieces of a megabyte each is small; put together they are not."""
    made = Crewed(2)
    cause, parts = -1 - made.graph(0, 0, 0), []
    for i in range(20):
        parts.append(made.run(i % 2, 0, 10, cause=cause, key=f"part-{i}"))
        made.sized(1_000_000)
    joined = made.run(0, 10, 20, cause=parts[-1], needs=parts, key="joined-1", lead=(10, 10))
    made.sized(megabytes * 1_000_000)
    key = "solve-1"
    made.run(0, 20, 920, cause=joined, needs=[joined], key=key, lead=(20, 20), wanted=True)
    made.wait_for(0, 920, key)
    assert one(RULE, made.recording(920)).evidence["why"] == why


def test_the_fix_for_one_task_for_all_pieces_works_on_each() -> None:
    found = put_together(20)
    assert "`concat` at etl.py:7" in found.headline
    assert found.evidence["pieces"] == 20
    assert found.saving_s[1] == pytest.approx(0.9, abs=0.01)  # what is never put together

    pieces = [dask.delayed(range)(i) for i in range(4)]
    with dask.config.set(scheduler="sync"):
        names = run(found, pieces=pieces, summary=sum, combine=max)
    assert names["result"] == 3


def test_a_single_thread_is_never_idle_beside_others() -> None:
    assert asked(RULE, lonely([(0, 900)], workers=1)) == []


def test_threads_beyond_the_cpus_would_save_nothing() -> None:
    made = Crewed(4)
    for worker in range(4):
        made.cpus(worker, 1)
    end = side_by_side(made, [(0, 900)])

    assert asked(RULE, made.recording(end)) == []


def in_line(*, on_data: bool = False) -> Finding:
    """The finding on two workers one of which has all tasks, of which each may need a piece."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0, wanted=8)
    cause, needs, begun = -1 - graph, None, 0.0
    if on_data:
        begun, cause = 10.0, made.run(0, 0, 10, cause=cause, lead=(0, 0), key="load-0")
        needs = [cause]
    for i in range(8):
        start, lead = begun + 100.0 * i, (begun, begun)
        key = f"work-{i}"
        made.run(0, start, start + 100, cause=cause, needs=needs, lead=lead, key=key, wanted=True)
    made.wait_for(0, begun + 800, "work-7")
    return one(RULE, made.recording(begun + 800))


def test_tasks_that_stand_in_line_elsewhere_are_another_reason() -> None:
    """Data in one place, or a restriction: the scheduler could not give them to the other."""
    found = in_line()

    assert found.evidence["why"] == "tasks in line on other workers"
    assert found.saving_s[1] == pytest.approx(0.4, abs=0.05)
    assert "`work`" in found.headline
    assert found.where.prefix == "work"


def test_what_follows_its_data_is_told_to_spread_it_and_what_needs_none_to_go_anywhere() -> None:
    """`workers=` is the likely reason where tasks need nothing that another task made."""
    assert "Tasks follow their data" in in_line(on_data=True).fix.text
    assert "remove what restricts them" in in_line().fix.text


@pytest.mark.cluster
def test_tasks_that_are_all_to_be_on_one_worker_are_found(client: Client) -> None:
    """The one works all the time, so that no moment of the run is one of waiting for a thread."""
    first, *_ = client.scheduler_info(n_workers=-1)["workers"]
    wait(client.submit(sort, 40, workers=[first]))  # it has imported this module
    with stageprof.profile() as prof:
        client.gather(client.map(sort, range(40), workers=[first]))

    found = one(RULE, prof.recording)
    assert found.evidence["why"] == "tasks in line on other workers"
    assert found.where.prefix == "sort"
    assert "remove what restricts them" in found.fix.text


def sort(seed: int) -> float:
    return float(np.sort(np.random.default_rng(seed).random(300_000))[0])


def uneven(mine: int, other: int) -> Recording:
    """Two workers: tasks of 100 ms in line from the start, so many for each."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0, wanted=mine + other)
    for worker, number in enumerate((mine, other)):
        for i in range(number):
            start = 100.0 * i
            key = f"work-{worker}{i}"
            lead = (0, 0)
            made.run(worker, start, start + 100, cause=-1 - graph, lead=lead, key=key, wanted=True)
    made.wait_for(0, 100.0 * mine, f"work-0{mine - 1}")
    return made.recording(100.0 * mine)


def test_lines_elsewhere_matter_though_no_thread_is_idle_for_long() -> None:
    """A tenth of the threads' time: the one line is 10 long, the other 7."""
    found = one(RULE, uneven(10, 7))

    assert found.evidence["threads_idle"] == 0
    assert found.evidence["idle_beside_waiting_tasks_s"] == pytest.approx(0.2, abs=0.01)
    assert found.cost_s == pytest.approx(0.1, abs=0.01)
    assert found.saving_s[1] == pytest.approx(0.15, abs=0.05)
    assert "Threads had" in found.headline


def test_lines_of_almost_the_same_length_are_no_finding() -> None:
    assert asked(RULE, uneven(10, 9)) == []


@pytest.mark.parametrize(("last", "fires"), [(3, False), (1, True)])
def test_short_lines_matter_less_where_all_are_idle_most_of_the_time(
    last: int, *, fires: bool
) -> None:
    """Each in turn has eight tasks for its two threads; or one has all, and the others none."""
    made = Crewed(3, threads=2)
    graph = made.graph(0, 0, 0, wanted=24)
    for worker in range(last):
        for i in range(24 // last):
            begun = 400.0 * worker
            start, key = begun + 100 * (i // 2), f"work-{worker}{i}"
            how: dict[str, Any] = {"lead": (begun, begun), "thread": i % 2, "key": key}
            made.run(worker, start, start + 100, cause=-1 - graph, wanted=True, **how)
    made.wait_for(0, 1200.0, key)
    found = [str(f.evidence["why"]) for f in asked(RULE, made.recording(7000))]
    assert any(why.startswith("tasks in line") for why in found) is fires


def test_gaps_of_a_worker_with_a_line_of_its_own_are_not_for_want_of_tasks() -> None:
    """Each rests for 50 ms between its tasks while the other's stand in line: that is overhead."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0, wanted=16)
    for worker in range(2):
        for i in range(8):
            start = 150.0 * i
            key = f"work-{worker}{i}"
            made.run(
                worker, start, start + 100, cause=-1 - graph, lead=(0, 0), key=key, wanted=True
            )
    made.wait_for(0, 1150.0, "work-07")
    assert asked(RULE, made.recording(1150)) == []


@pytest.mark.cluster
@pytest.mark.usefixtures("client")
def test_pieces_that_p2p_passed_on_are_told_of_and_by_tasks_there_are_none() -> None:
    """The printed code sets what it says, and no piece is placed twice with it."""
    with dask.config.set({"array.rechunk.method": "p2p"}), stageprof.profile() as prof:
        rechunked()
    crew = Crew(prof.recording)
    passed = passed_on(prof.recording, crew)
    assert 0 < passed["rechunk_pieces_passed_on"] <= 40
    advice = fix(line(prof.recording, crew), passed)
    assert f"here {passed['rechunk_pieces_passed_on']}," in advice.text

    with dask.config.set({}):
        exec(advice.code, {})
        with stageprof.profile() as prof:
            rechunked()
    assert passed_on(prof.recording, Crew(prof.recording)) == {}


def rechunked() -> None:
    """P2P with more pieces than the scheduler hands out at once."""
    x = da.ones((400, 400), chunks=(10, 400)).rechunk((400, 10))
    x.map_blocks(np.sort).sum().compute()


@pytest.mark.cluster
def test_the_fix_puts_what_lies_on_one_worker_on_all(client: Client) -> None:
    first, *_ = client.scheduler_info(n_workers=-1)["workers"]
    pieces = client.map(abs, range(-6, 0), workers=[first])
    wait(pieces)

    names = run(in_line(), pieces=pieces)

    wait(names["pieces"])
    held = client.who_has(names["pieces"])
    assert len({place for places in held.values() for place in places}) == 2
    assert client.gather(names["pieces"]) == [6, 5, 4, 3, 2, 1]


def test_a_straggler_has_a_finding_of_its_own() -> None:
    assert asked(RULE, lonely([*[(0, 100.0)] * 9, (1, 4000)])) == []


def test_late_workers_have_a_finding_of_their_own() -> None:
    made = Crewed(2)
    end = side_by_side(made, [(0, 900)])
    made.late(1, 500)

    assert asked(RULE, made.recording(end)) == []


def test_the_fix_gives_several_tasks_the_work_of_one() -> None:
    found = one(RULE, lonely([(0, 900)]))

    names = run(found, work=sum, items=list(range(10)))

    assert sum(names["results"]) == 45
    assert len(names["results"]) >= 2


def in_turn(prefix: str) -> Finding:
    """Six tasks on four workers, each of which needs the one before."""
    made = Crewed(4)
    made.made(prefix, 16)
    cause = -1 - made.graph(0, 0, 0)
    for i in range(6):
        at = 100.0 * i
        cause = made.run(
            i % 4, at, at + 100, cause=cause, key=(f"{prefix}-1a2b", i), lead=(at, at), wanted=True
        )
    made.wait_for(0, 600, (f"{prefix}-1a2b", 5))
    return one(RULE, made.recording(600))


def test_tasks_of_which_each_needs_the_one_before_are_not_to_be_cut_further() -> None:
    found = in_turn("step")
    assert "only one of 6 tasks of `step` at etl.py:16" in found.headline
    assert found.evidence["why"] == "one after another"
    assert "Each of them needs the one before" in found.fix.text
    assert not found.fix.code


def test_a_frame_that_is_written_into_one_file_is_to_be_written_into_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = dd.from_pandas(pd.DataFrame({"x": range(10)}), npartitions=2)
    run(in_turn("write_csv"), ddf=frame)
    assert len(list((tmp_path / "parts").glob("*.csv"))) == 2


def test_coroutines_that_compute_stand_in_line_for_loops_not_for_other_workers() -> None:
    """No restriction put them there, and a thread elsewhere would not run two of them at once."""
    made = Crewed(2, 4)
    graph = made.graph(0, 0, 0)
    for i in range(20):
        worker, start, stop = int(i == 19), i % 19 * 100, (i % 19 + 1) * 100
        key = f"asked-{i:032x}"
        last = made.run(worker, start, stop, cause=-1 - graph, lead=(0, 0), key=key)
        row = (TURN, last, ns(start), ns(stop), 95_000_000)
        made.rows_of(made._workers[worker]).append(row)
    made.wait(0, 1900, last, 1900)

    found = one(RULE, made.recording(1900))

    assert (
        "stood in line for the event loops of workers, most of the time `asked`" in found.headline
    )
    assert "restrict" not in found.fix.text
    assert "def asked_in_thread" in found.fix.code
