"""The rule repeated-compute: A7, B9 (passes over the same data), C34."""

from __future__ import annotations

import time
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed
from replay.handmade import CLIENT, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import repeated_compute
from stageprof_collectors.rules.repeated_compute import RULE
from stageprof_runtime.event import FLAME, NODE, PART
from stageprof_runtime.stage import STEP


def again(
    keys: list[list[Any]], *, lines: bool = True, kind: str = "int", each: float = 100
) -> Recording:
    """One compute after another, each of tasks of 100 ms one after another."""
    made, now = Crewed(1), 0.0
    for i, some in enumerate(keys):
        graph = made.graph(now, now, now)
        made.at_line(graph, 25 + i if lines else 25)
        begun, cause = now, -1 - graph
        for key in some:
            last = key == some[-1]
            cause = made.run(0, now, now + each, cause=cause, key=key, wanted=last)
            made.sized(1_000_000, kind)
            now += each
        made.wait_for(begun, now, some[-1])
    for key in {key[0] for some in keys for key in some if isinstance(key, tuple)}:
        made.made(key, 12 if key.startswith("read") else 14)
    return made.recording(now)


READ: list[Any] = [("read-1a2b", i) for i in range(3)]


def test_keys_that_are_computed_again_are_found_with_what_they_cost() -> None:
    """B9: the same three pieces are made for each of two questions."""
    found = one(RULE, again([[*READ, "mean"], [*READ, "spread"]]))

    assert found.evidence["tasks_again"] == 3
    assert found.evidence["kept_bytes"] == 3_000_000
    assert found.cost_s == pytest.approx(0.3)
    assert found.saving_s == pytest.approx((0.3, 0.3), abs=0.02)
    assert "3 tasks, most of `read`" in found.headline
    assert "etl.py:26" in found.headline


@pytest.mark.parametrize(("each", "fires"), [(1.0, True), (0.1, False)])
def test_what_stands_for_persisted_pieces_is_no_work_that_is_done_again(
    each: float, fires: bool
) -> None:
    """Each compute has a task for each of them, which hands it on; to persist more is no advice."""
    assert bool(asked(RULE, again([[*READ, "mean"], [*READ, "spread"]], each=each))) is fires


def test_other_keys_are_no_repetition() -> None:
    assert asked(RULE, again([["a", "mean"], ["b", "spread"]])) == []


def test_a_single_compute_repeats_nothing() -> None:
    assert asked(RULE, again([[*READ, "mean"]])) == []


def test_little_that_is_done_again_is_not_worth_a_word() -> None:
    assert asked(RULE, again([["a"], ["a", *map(str, range(60))]])) == []


def test_a_failed_attempt_is_not_a_computation() -> None:
    """What was retried is for another rule."""
    made = Crewed(1)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - graph, key="a", status=1)
    made.run(0, 100, 200, cause=first, key="a", wanted=True)
    made.wait_for(0, 200, "a")

    assert asked(RULE, made.recording(200)) == []


def test_the_fix_asks_all_questions_at_once() -> None:
    found = one(RULE, again([[*READ, "mean"], [*READ, "spread"]]))
    numbers = dask.delayed([1, 2, 3])

    names = run(found, first=dask.delayed(min)(numbers), second=dask.delayed(max)(numbers))

    assert (names["first"], names["second"]) == (1, 3)


def test_the_fix_of_a_loop_persists() -> None:
    rounds = [[*READ, f"mean{i}"] for i in range(3)]
    made = again(rounds, lines=False, kind="numpy.ndarray")
    names = run(one(RULE, made), data=da.ones(4, chunks=2))

    assert float(names["data"].sum().compute()) == 4


def test_what_has_no_room_in_memory_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Persisted it would be spilled, and its workers be paused or killed."""
    monkeypatch.setattr(repeated_compute, "kept_in_memory", lambda *_: False)
    rounds = [[*READ, f"mean{i}"] for i in range(3)]
    looped = one(RULE, again(rounds, lines=False, kind="numpy.ndarray"))
    assert (looped.fix.code, looped.saving_s[0]) == ("", 0.0)
    assert "to_parquet" in looped.fix.text
    apart = one(RULE, again([[*READ, "mean"], [*READ, "spread"]]))
    assert "dask.compute(first, second)" in apart.fix.code
    assert "persist" not in apart.fix.text


def test_the_fix_of_a_loop_that_other_computes_follow_persists() -> None:
    made = Planned()
    for line in (25, 25, 25, 25, 30):
        made.line = line
        made.compute("read-1a2b")

    assert "data.persist()  # `read`; once, before" in one(RULE, made.recording(made.t)).fix.code


def test_what_rounds_build_upon_is_persisted_in_each() -> None:
    """As in an iteration that asks in each round whether it goes on."""
    steps = [(f"step-{i:032x}", 0) for i in range(5)]
    rounds = [[*READ, *steps[: i + 1], f"change{i}"] for i in range(5)]
    found = one(RULE, again(rounds, lines=False, kind="numpy.ndarray"))

    names = run(found, data=da.ones(4, chunks=2), state=da.zeros(4, chunks=2))

    assert "`read` at etl.py:12; once, before the loop" in found.fix.code
    assert "what a round makes at etl.py:14; in each round" in found.fix.code
    assert "what the rounds before it did again" in found.fix.text
    assert float((names["data"] + names["state"]).sum().compute()) == 4


def test_columns_that_one_question_reads_again_are_nothing_to_build_upon() -> None:
    """Each had a layer of its own, as what rounds make has."""
    reads = [[(f"read-{columns:032x}", i) for i in range(3)] for columns in range(3)]
    rounds = [[*reads[i // 2], f"mean{i}"] for i in range(6)]
    found = one(RULE, again(rounds, lines=False, kind="numpy.ndarray"))

    assert "`read` at etl.py:12; once, before the loop" in found.fix.code
    assert "round makes" not in found.fix.code + found.fix.text


def test_where_only_what_rounds_build_upon_is_done_again_nothing_is_persisted_before() -> None:
    steps = [(f"step-{i:032x}", 0) for i in range(5)]
    rounds = [[*steps[: i + 1], f"change{i}"] for i in range(5)]
    found = one(RULE, again(rounds, lines=False, kind="numpy.ndarray"))

    assert "before the loop" not in found.fix.code
    assert float(run(found, state=da.zeros(4, chunks=2))["state"].sum().compute()) == 0


def test_two_computes_of_one_line_are_no_loop() -> None:
    made = again([[*READ, "mean"], [*READ, "mean2"]], lines=False, kind="numpy.ndarray")
    assert "dask.compute(first, second)" in one(RULE, made).fix.code


# -- other keys ---------------------------------------------------------------------------------


def layer(name: str, number: int) -> str:
    return f"{name}-{number:032x}"


class Planned(Crewed):
    """Computes one after another of tasks of 100 ms, of whose plans is told what they share."""

    def __init__(self) -> None:
        super().__init__(1)
        self.t = 0.0
        self.kind = "FromMapProjectable 1"
        #: of all computes, if they are a loop's
        self.line = 0

    def shares(self, name: str, how: str = "", common: int = 0, columns: int = 0) -> None:
        """The next compute's plan has the user's `source` as this layer."""
        row = (PART, ns(self.t), name, layer("source", 0), self.kind, how, common, columns)
        self._rows[CLIENT].append(row)

    def compute(self, *layers: str, tasks: int = 3) -> None:
        begun, graph = self.t, self.graph(self.t, self.t, self.t)
        self.at_line(graph, self.line or 25 + graph)
        cause = -1 - graph
        keys = [(name, i) for name in layers for i in range(tasks)]
        for key in keys:
            cause = self.run(0, self.t, self.t + 100, cause=cause, key=key)
            self.sized(1_000_000, "pandas.DataFrame")
            self.t += 100
        self.wait_for(begun, self.t, keys[-1])

    def seen(self, prefix: str, function: str, node: int, at: float, count: int) -> None:
        """Looks at tasks of a prefix saw this function."""
        rows = self._rows[self._workers[0]]
        rows.append((NODE, node, -1, function, "library.py", 1))
        ms = count * 10_000_000
        rows.append((FLAME, ns(at), STEP["compute"], prefix, "library", node, count, ms))


def read_twice(
    common: int, columns: int, *, kind: str = "FromMapProjectable 1", tasks: int = 3
) -> Recording:
    """Two computes read the same, each with columns of its own."""
    made = Planned()
    made.kind = kind
    made.shares(layer("read-csv", 1))
    made.compute(layer("read-csv", 1), tasks=tasks)
    made.shares(layer("read-csv", 2), "", common, columns)
    made.compute(layer("read-csv", 2))
    return made.recording(made.t)


def test_the_same_work_for_other_columns_is_found() -> None:
    """What columns have in common is saved for certain, at most all of it."""
    found = one(RULE, read_twice(1, 4))

    assert found.evidence["tasks_again"] == 3
    assert found.evidence["kept_bytes"] == 3_000_000
    assert found.saving_s == pytest.approx((0.075, 0.3), abs=0.02)
    assert "3 tasks, most of `read-csv`, did again for other columns" in found.headline
    assert "(by etl.py:26)" in found.headline


def test_the_fix_of_a_loop_over_columns_persists_those_that_are_asked_for() -> None:
    made = Planned()
    made.line = 25
    for i in range(3):
        made.shares(layer("read-csv", i), "", i and 1, i and 4)
        made.compute(layer("read-csv", i))
    found = one(RULE, made.recording(made.t))
    frame = dd.from_pandas(pd.DataFrame({"x": [1, 2], "y": [3, 4], "z": [5, 6]}), npartitions=2)

    with dask.config.set(scheduler="sync"):
        data = run(found, data=frame, columns=["x", "y"])["data"]
        assert [int(data[name].sum().compute()) for name in ("x", "y")] == [3, 7]


@pytest.mark.parametrize(("common", "fires"), [(0, False), (2, True)])
def test_a_reader_of_columns_does_again_what_both_ask_for(common: int, *, fires: bool) -> None:
    found = asked(RULE, read_twice(common, 4, kind="ReadParquetFSSpec 1"))

    assert bool(found) is fires
    for each in found:
        assert each.saving_s == pytest.approx((0.15, 0.15), abs=0.02)


def test_no_more_is_done_again_than_was_done_before() -> None:
    """`head()` had read one of three partitions."""
    found = one(RULE, read_twice(4, 4, tasks=1))

    assert found.saving_s == pytest.approx((0.1, 0.1), abs=0.02)


def test_a_plan_that_was_never_computed_had_done_nothing() -> None:
    made = Planned()
    made.shares(layer("read-csv", 1))
    made.t += 1
    made.shares(layer("read-csv", 2), "", 4, 4)
    made.compute(layer("read-csv", 2))

    assert asked(RULE, made.recording(made.t)) == []


def test_computes_that_all_failed_did_nothing_again() -> None:
    made = Planned()
    for i in (1, 2):
        made.shares(layer("read-csv", i))
        made.fails(0, 100 * i, layer("read-csv", i))

    assert asked(RULE, made.recording(200)) == []


def test_two_of_one_kind_within_a_compute_are_no_repetition() -> None:
    made = Planned()
    made.compute("other")
    made.shares(layer("read-csv", 1))
    made.t += 1
    made.shares(layer("read-csv", 2), "", 4, 4)
    made.compute(layer("read-csv", 1), layer("read-csv", 2))

    assert asked(RULE, made.recording(made.t)) == []


def fused(looks: int) -> Recording:
    """Two computes make the same within tasks of their own, four fifths of which it is."""
    made = Planned()
    made.kind = "Blockwise 1"
    for i, question in enumerate(("sum", "var"), start=1):
        own = f"normal-{layer(question, i)}"  # as Dask names what it fuses
        made.shares(layer("pow", 0), "", i - 1, 1)
        made.shares(layer(question, i), "among others", i - 1, 1)
        if looks:
            made.seen(f"normal-{question}", "make", 2 * i, made.t + 1, 4 * looks)
            made.seen(f"normal-{question}", question, 2 * i + 1, made.t + 1, looks)
        made.compute(own)
    made.made(layer("source", 0), 8)
    return made.recording(made.t)


def test_what_tasks_of_two_computes_were_both_seen_in_was_done_again() -> None:
    found = one(RULE, fused(looks=20))

    low, high = found.saving_s
    assert 0.18 < low < 0.24 < high < 0.28
    assert "3 tasks made `source` at etl.py:8 again, with other work" in found.headline
    assert found.where.line == 8


def test_what_only_cheap_work_stands_below_is_not_done_again() -> None:
    """Two questions to an array in memory: each is work of its own."""
    made = Planned()
    made.kind = "Blockwise 1"
    for i, question in enumerate(("sum", "var"), start=1):
        made.shares(layer(question, i), "among others", i - 1, 1)
        made.seen(f"array-{question}", question, i, made.t + 1, 100)
        made.compute(f"array-{layer(question, i)}")

    assert asked(RULE, made.recording(made.t)) == []


def test_without_looks_nothing_of_it_is_certain() -> None:
    assert one(RULE, fused(looks=0)).saving_s == pytest.approx((0, 0.3), abs=0.02)


def slow(_part: int, columns: list[str] | None = None) -> pd.DataFrame:
    time.sleep(0.1)
    return pd.DataFrame({"x": np.ones(4), "y": np.ones(4)})[columns or ["x", "y"]]


def wait(block: Any) -> Any:
    time.sleep(0.1)
    return block


@pytest.mark.cluster
@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["frame", "array"])
def test_questions_one_after_the_other_are_found_and_questions_at_once_are_not(
    client: Client, kind: str
) -> None:
    """The keys of the two computes differ, of frames and of arrays."""
    assert client

    def recorded(*, at_once: bool) -> Recording:
        if kind == "frame":
            meta = {"x": "f8", "y": "f8"}
            frame = dd.from_map(slow, range(8), meta=meta)
            questions: list[Any] = [frame.x.sum(), frame.y.mean()]
        else:
            array = da.ones(8, chunks=1).map_blocks(wait, dtype=float)
            questions = [array.sum(), array.std()]
        with stageprof.profile(gil=False) as region:
            if at_once:
                dask.compute(*questions)
            else:
                for question in questions:
                    question.compute()
        return region.recording

    found = one(RULE, recorded(at_once=False))
    assert int(found.evidence["tasks_again"]) >= 8
    assert found.saving_s[1] > 0.2
    assert asked(RULE, recorded(at_once=True)) == []
