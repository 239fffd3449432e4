"""`stageprof.check`: what is handed to Dask is looked at and not run, and nothing stays behind."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from dask.base import collections_to_expr
from dask.delayed import delayed

import clusters
import remains
import stageprof
from check.hostile import use
from named import plainly
from stageprof_collectors.findings.finding import Finding
from stageprof_runtime import handover
from stageprof_runtime.errors import UsageError

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_replaced() -> Iterator[None]:
    RAN.clear()
    yield
    assert remains.of_process() == []


def note(x: int) -> int:
    RAN.append(x)
    return x


def rules(found: Any) -> list[str]:
    return [f.rule for f in found]


# -- collections ----------------------------------------------------------------------------------


def test_on_threads_an_embedded_frame_costs_nothing_and_is_not_reported() -> None:
    table = np.zeros(4_000_000)
    assert "embedded-object" not in rules(stageprof.check(delayed(use)(table)))


@pytest.mark.parametrize("form", ["one", "list", "dict", "nested", "expression"])
def test_collections_may_be_given_in_every_form(form: str) -> None:
    x = da.ones((4_000, 4_000), chunks=40).sum()
    given = {
        "one": x,
        "list": [x],
        "dict": {"a": x},
        "nested": [(x, 3), {"b": [x]}],
        "expression": collections_to_expr([x]),
    }[form]
    assert rules(stageprof.check(given)) == ["large-graph"]


def test_a_graph_of_many_small_chunks_is_found_and_one_of_few_large_ones_is_not() -> None:
    bad = da.ones((8_000, 8_000), chunks=80)
    [found] = stageprof.check(bad.sum())
    assert found.evidence["piece_bytes"] == 80 * 80 * 8
    assert "about" in found.headline
    assert not stageprof.check(da.ones((8_000, 8_000), chunks=4_000).sum()).findings


def test_columns_of_objects_are_named_with_what_their_values_are() -> None:
    raw = pd.DataFrame({"page": np.array(["a", "b"] * 1000, dtype=object), "n": range(2000)})
    raw["page"] = raw["page"].astype(object)
    with dask.config.set({"dataframe.convert-string": False}):
        bad = dd.from_pandas(raw, npartitions=2)
        fixed = dd.from_pandas(raw.astype({"page": "string[pyarrow]"}), npartitions=2)
        [found] = stageprof.check(bad)
        assert (found.rule, found.severity) == ("object-dtype", "moderate")
        assert "`page`: string" in found.headline
        namespace: dict[str, Any] = {"frame": raw}
        exec(found.fix.code, namespace)
        assert str(namespace["frame"]["page"].dtype) == "string"
        assert not stageprof.check(fixed).findings


def test_columns_that_no_task_sees_as_objects_are_none() -> None:
    """Dask makes strings of texts in each part that it takes; of others, what is asked for."""
    raw = pd.DataFrame({"page": ["a", "b"] * 1000, "n": range(2000), "m": range(2000)})
    raw["page"] = raw["page"].astype(object)
    with dask.config.set({"dataframe.convert-string": True}):
        assert not stageprof.check(dd.from_pandas(raw, npartitions=2)).findings
    with dask.config.set({"dataframe.convert-string": False}):
        used = dd.from_pandas(raw, npartitions=2).groupby("n").m.sum()
        assert not stageprof.check(used).findings


def test_a_scheduler_that_is_configured_goes_before_a_client() -> None:
    """As `compute` has it: nothing travels to the cluster."""
    frame = pd.DataFrame({"x": range(200_000)})
    task = delayed(len)(frame)
    with clusters.inside(1) as client:
        assert client
        with dask.config.set(scheduler="distributed"):
            assert "cluster" in str(stageprof.check([task] * 4))
        with dask.config.set(scheduler="threads"):
            here = stageprof.check([task] * 4)
            assert not here.findings
            assert "cluster" not in str(here)
            assert "cluster" in str(stageprof.check([task] * 4, client=client))


@pytest.mark.parametrize("beside", [False, True])
def test_a_dataset_without_arrays_of_dask_is_nothing_of_dask(beside: bool) -> None:
    """It has `__dask_graph__`, which gives None."""
    loaded = xr.Dataset({"t": ("x", [1, 2, 3])})
    if beside:
        assert "1 graph" in str(stageprof.check([loaded, da.ones(3)]))
    else:
        with pytest.raises(UsageError, match="expected"):
            stageprof.check(loaded)


def test_object_columns_whose_values_are_lists_are_left_alone() -> None:
    raw = pd.DataFrame({"tags": [[1], [2]] * 1000})
    with dask.config.set({"dataframe.convert-string": False}):
        assert not stageprof.check(dd.from_pandas(raw, npartitions=2)).findings


def read(day: int) -> pd.DataFrame:
    return pd.DataFrame({"page": np.array(["a"], dtype=object)})


def test_object_columns_that_nobody_has_read_yet_are_a_note_that_says_so() -> None:
    with dask.config.set({"dataframe.convert-string": False}):
        meta = pd.DataFrame({"page": pd.Series([], dtype=object)})
        [found] = stageprof.check(dd.from_map(read, range(3), meta=meta))
    assert found.severity == "note"
    assert "not known" in found.fix.text
    assert all(math.isnan(s) for s in found.saving_s)


def test_nothing_is_built_to_be_counted() -> None:
    x = da.ones((1000, 1000), chunks=10) + 1
    checked = stageprof.check(x)
    assert checked.found.tasks == pytest.approx(10_000, rel=0.01)
    assert not any(layer.is_materialized() for layer in x.dask.layers.values())


COUNTED = {
    "blocks": lambda: abs(da.ones((400, 400), chunks=20) + 1),
    "rechunk": lambda: da.ones((400, 400), chunks=20).rechunk(50).mean(axis=0),
    "bag": lambda: db.from_sequence(range(100), npartitions=10).map(str).frequencies(),
    "delayed": lambda: delayed(sum)([delayed(abs)(i) for i in range(50)]),
    "frame": lambda: dd.from_pandas(pd.DataFrame({"a": range(99)}), npartitions=9).a + 1,
}


@pytest.mark.parametrize("name", COUNTED)
def test_tasks_are_counted_about_as_dask_makes_them(name: str) -> None:
    collection = COUNTED[name]()
    built = len(collections_to_expr([collection]).optimize().__dask_graph__())
    assert stageprof.check(collection).found.tasks == pytest.approx(built, rel=0.5, abs=3)


@pytest.mark.parametrize(
    "value",
    [3, "text", [], None, {"a": 1}, object()],
    ids=plainly,
)
def test_what_is_nothing_of_dask_is_refused_in_one_line(value: object) -> None:
    if callable(value):
        return
    with pytest.raises(UsageError) as error:
        stageprof.check(value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf])
def test_a_time_limit_that_is_no_time_is_refused(limit: float) -> None:
    with pytest.raises(UsageError):
        stageprof.check(da.ones(3), limit_s=limit)


# -- functions ------------------------------------------------------------------------------------


def test_a_function_is_stopped_where_it_computes_and_cleans_up() -> None:
    done: list[str] = []

    def program() -> None:
        try:
            delayed(note)(1).compute(scheduler="threads")
            done.append("after")
        except Exception:
            done.append("caught")
        finally:
            done.append("finally")

    checked = stageprof.check(program)
    assert (done, RAN) == (["finally"], [])
    assert checked.found.graphs == 1


@pytest.mark.parametrize("scheduler", ["threads", "processes", "sync"])
def test_no_scheduler_runs_anything(scheduler: str) -> None:
    checked = stageprof.check(lambda: delayed(note)(1).compute(scheduler=scheduler))
    assert (checked.found.graphs, checked.found.tasks, RAN) == (1, 1, [])


def test_with_everything_a_function_goes_on_and_each_graph_is_looked_at() -> None:
    results: list[int] = []

    def program() -> None:
        results.extend(delayed(note)(i).compute(scheduler="sync") for i in range(3))

    assert stageprof.check(program, everything=True).found.graphs == 3
    assert results == RAN == [0, 1, 2]


def test_a_function_that_swallows_everything_still_runs_nothing() -> None:
    def program() -> None:
        for i in range(3):
            try:
                delayed(note)(i).compute(scheduler="sync")
            except BaseException:
                continue

    assert stageprof.check(program).found.graphs == 3
    assert RAN == []


def test_other_threads_run_nothing_either() -> None:
    def program() -> None:
        def compute() -> None:
            with pytest.raises(handover.Stopped):
                delayed(note)(1).compute(scheduler="sync")

        thread = threading.Thread(target=compute)
        thread.start()
        thread.join()

    stageprof.check(program)
    assert RAN == []


def test_an_error_of_the_function_itself_is_its_own() -> None:
    def program() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        stageprof.check(program)


def test_a_function_without_dask_is_said_to_have_handed_over_nothing() -> None:
    checked = stageprof.check(lambda: None)
    assert "nothing was handed to Dask" in str(checked)
    assert not checked


def test_a_failure_of_ours_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from stageprof_collectors.preflight import checkup

    def broken(*args: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(checkup.Looking, "look", broken)
    stageprof.check(lambda: delayed(note)(1).compute(scheduler="sync"))
    assert RAN == []


# -- bad input ------------------------------------------------------------------------------------


def test_past_the_limit_it_says_what_was_not_looked_at() -> None:
    calls = [delayed(note)(i) for i in range(2_000)]
    checked = stageprof.check(calls, limit_s=1e-9)
    assert any("no more time" in text for text in checked.not_looked_at)
    assert "Not looked at" in str(checked)


@pytest.mark.parametrize("key", ["two\nlines", "\x1b[31mred", "<b>", ("a", 1), "x" * 5000])
def test_keys_of_every_kind_are_shown_harmless(key: Any) -> None:
    calls = [delayed(note, pure=False)(i) for i in range(2000)]
    calls.append(delayed(note)(1, dask_key_name=key))
    text = str(stageprof.check(calls))
    assert "\x1b" not in text


# -- settings and recordings ----------------------------------------------------------------------


def many() -> list[Any]:
    return [delayed(note)(i) for i in range(3000)]


def found_in(found: stageprof.Checked) -> Finding:
    [one] = [f for f in found if f.rule == "large-graph"]
    return one


def test_a_rule_that_is_off_is_not_asked_and_a_limit_holds() -> None:
    assert found_in(stageprof.check(many()))
    assert not stageprof.check(many(), settings={"rules": {"large-graph": False}}).findings
    limits = {"rules": {"large-graph": {"tasks": 5000}}}
    assert not stageprof.check(many(), settings=limits).findings


def test_what_only_a_check_knows_can_be_switched_off_too() -> None:
    settings = {"rules": {"versions-differ": False, "late-workers": {"workers": 3}}}
    stageprof.check(many(), settings=settings)
    with pytest.raises(UsageError):
        stageprof.check(many(), settings={"rules": {"late-workers": {"wrokers": 3}}})


def test_a_recording_gives_the_costs() -> None:
    with stageprof.profile() as prof:
        dask.compute(*[delayed(note)(i) for i in range(500)], scheduler="sync")
    found = found_in(stageprof.check(many(), like=prof.recording))
    assert "measured" in str(found.evidence["predicted_from"])
    each = found.cost_s / float(found.evidence["tasks"])
    assert 0 < each < 0.1


@pytest.mark.parametrize("steps", [20, 500])
def test_steps_that_become_one_are_counted_as_one(steps: int) -> None:
    x = da.ones((1000, 1000), chunks=100)
    for _ in range(steps):
        x = x + 1
    checked = stageprof.check(x)
    assert (checked.found.tasks, checked.findings) == (100, [])


def fewer(x: Any) -> int:
    """Tasks of what Dask makes of it."""
    return len(collections_to_expr([x]).optimize().__dask_graph__())


@pytest.mark.parametrize("scheduler", ["sync", "processes"])
def test_what_a_slice_leaves_out_is_not_counted(scheduler: str) -> None:
    """Dask takes a quarter of it; what is asked for beside a slice is needed as a whole."""
    x = da.random.default_rng(0).random((300, 300), chunks=(300, 15)).rechunk((15, 300))
    some = (((x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True))[:30] ** 2).sum()
    y = da.ones((3000,), chunks=30).cumsum(axis=0)

    one = stageprof.check(lambda: some.compute(scheduler=scheduler))
    both = stageprof.check(lambda: dask.compute(y, y[:30], scheduler=scheduler))

    assert one.found.tasks == pytest.approx(fewer(some), rel=0.15)
    assert both.found.tasks > fewer(y)
    assert stageprof.check(lambda: y[:30].compute(scheduler=scheduler)).found.tasks < 10


def test_slices_of_large_graphs_are_counted_whole_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stageprof_collectors.preflight import needed

    monkeypatch.setattr(needed, "CULLED", 50)
    x = da.ones((3000,), chunks=30).cumsum(axis=0)
    checked = stageprof.check(lambda: x[:30].compute(scheduler="sync"))

    assert checked.found.tasks > 100
    assert any("slices leave out" in what for what in checked.not_looked_at)


@pytest.mark.parametrize("scheduler", ["distributed", "nobody's"])
def test_a_scheduler_that_is_not_there_is_said(scheduler: str) -> None:
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(UsageError, match="the scheduler that is configured is not there"),
    ):
        stageprof.check(many())


async def later() -> None:
    """Computes once it is awaited."""


def gives() -> Iterator[int]:
    """Computes once it is gone through."""
    yield 1


@pytest.mark.parametrize("what", [later, gives])
def test_a_function_whose_call_does_nothing_is_refused(what: Any) -> None:
    """Nothing was found in it, as in what has nothing to find."""
    with pytest.raises(UsageError, match=r"does nothing when it is called.*asyncio\.run"):
        stageprof.check(what)


def test_the_line_of_an_embedded_object_is_that_of_its_call() -> None:
    """And not the line that computes."""
    table = np.zeros(4_000_000)

    def program() -> None:
        calls = [delayed(use)(table) for _ in range(3)]
        dask.compute(calls, scheduler="processes")

    [found] = [f for f in stageprof.check(program) if f.rule == "embedded-object"]
    called = program.__code__.co_firstlineno + 1
    assert f"3 tasks of test_check.py:{called}" in found.headline


def test_chunks_that_cut_across_a_files_are_told_with_the_line_that_asks_for_them(
    tmp_path: Path,
) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        data = np.arange(4_000_000.0).reshape(2000, 2000)
        kept = file.create_dataset("x", data=data, chunks=(200, 2000), compression="gzip")

        def program() -> None:
            x = da.from_array(kept, chunks=(2000, 200))
            (x + 1).sum().compute(scheduler="sync")

        found = [f for f in stageprof.check(program) if f.rule == "misaligned-chunks"]

    asked = program.__code__.co_firstlineno + 1
    assert [f.severity for f in found] == ["serious"]
    assert f"Chunks of 2,000 x 200 at test_check.py:{asked} cut across" in found[0].headline
    assert "200 x 2,000, each of which is unpacked 10 times" in found[0].headline


def forms(checked: stageprof.Checked) -> list[str]:
    data = checked._repr_mimebundle_()
    return [str(checked), checked._repr_markdown_(), data["text/html"]]


def test_a_finding_and_nothing_to_change_are_never_said_together() -> None:
    checked = stageprof.check(many())
    assert {f.severity for f in checked} == {"note"}
    for form in forms(checked):
        assert "Nothing to change" not in form
        assert "Notes only" in form


def test_every_form_has_the_notes_that_it_speaks_of() -> None:
    checked = stageprof.check(many())
    for form in forms(checked):
        assert all(f.rule in form for f in checked)


def test_what_was_looked_at_is_not_called_a_check_twice() -> None:
    for form in forms(stageprof.check(many())):
        assert "check check" not in re.sub("<[^>]*>|[`:]", "", form)


def test_it_is_said_where_a_program_was_stopped() -> None:
    def program() -> None:
        delayed(note)(1).compute(scheduler="sync")

    line = f"test_check.py:{program.__code__.co_firstlineno + 1}"
    checked, whole = stageprof.check(program), stageprof.check(program, everything=True)

    assert checked.found.stopped == line
    for form in forms(checked):
        assert "Nothing to change up to where it was stopped" in form
        assert f"what comes after {line}" in " ".join(form.replace("`", "").split())
    assert whole.found.stopped is None
    assert "stopped" not in str(whole)


def test_many_calls_are_counted_without_listing_what_compute_lists() -> None:
    checked = stageprof.check(da.ones((100_000, 100_000), chunks=100) + 1)
    assert checked.found.tasks == 1_000_000


def frame_of(n: int = 100) -> dd.DataFrame:
    frame = pd.DataFrame({"id": range(n), "x": range(n)})
    ddf = dd.from_pandas(frame, npartitions=4)

    def counted(part: pd.DataFrame) -> pd.DataFrame:
        RAN.append(len(part))
        return part

    counts: dd.DataFrame = ddf.map_partitions(counted, meta=frame)
    return counts


@pytest.mark.parametrize(
    "made",
    [
        lambda ddf: ddf.set_index("id"),
        lambda ddf: ddf.sort_values("x").x + 1,
        lambda ddf: ddf.repartition(partition_size="1kB"),
    ],
    ids=["set_index", "sort_values", "repartition"],
)
def test_what_dask_divides_by_what_it_computes_is_not_computed(made: Any) -> None:
    """To optimize it goes over all data once, with the functions of the user's in it."""
    with dask.config.set(scheduler="sync"):
        ddf = made(frame_of())
        found = stageprof.check(ddf)
        assert any("divide" in why for why in found.not_looked_at)
        RAN.clear()
        stopped = stageprof.check(ddf.compute)
    assert RAN == []
    assert any("comes after" in why for why in stopped.not_looked_at)


def test_with_divisions_that_are_named_it_is_looked_at_whole() -> None:
    with dask.config.set(scheduler="sync"):
        found = stageprof.check(frame_of().set_index("id", divisions=[0, 50, 99]))
    assert not any("divide" in why for why in found.not_looked_at)
    assert RAN == []


def many_chunks() -> None:
    x = da.ones((3_000, 50), chunks=(1, 50))
    dask.compute([x[i::12] - x.mean(axis=0) for i in range(12)])


def cut_up() -> None:
    x = da.ones((3_000, 50), chunks=(3_000, 50))
    pieces = x.rechunk((1, 50)) + 1
    pieces.sum(axis=1).compute()


@pytest.mark.parametrize(
    ("program", "line", "said"),
    [(many_chunks, 1, "where the data are read or made"), (cut_up, 2, "They are cut")],
)
def test_many_chunks_are_of_the_line_that_makes_them(program: Any, line: int, said: str) -> None:
    """Or cuts them; not of what picks some of each, or follows, and has as many tasks or more."""
    with dask.config.set(scheduler="sync"):
        [found] = [f for f in stageprof.check(program) if f.rule == "large-graph"]
    where = program.__code__.co_firstlineno + line
    assert (found.where.file, found.where.line) == (__file__, where)
    assert said in found.fix.text
    assert f"at test_check.py:{where}: c" in found.fix.text


def test_partitions_of_a_bag_that_is_grouped_are_no_calls() -> None:
    """Keys of its shuffle are like nobody's; what it gives out are partitions."""
    bag = db.from_sequence(range(2_000), npartitions=2_000).groupby(lambda x: x % 10)
    with dask.config.set(scheduler="sync"):
        [found] = [f for f in stageprof.check(bag) if f.rule == "large-graph"]
    parts = 2_000 // int(found.evidence["times_fewer"])
    assert f"bag.repartition(npartitions={parts})" in found.fix.code


def load(i: int) -> pd.DataFrame:
    RAN.append(i)
    return pd.DataFrame({"a": [i]})


def mapped() -> Any:
    return dd.from_map(load, range(9))


def gathered() -> Any:
    return dd.from_delayed([delayed(load)(i) for i in range(9)])


@pytest.mark.parametrize("made", [mapped, gathered])
def test_what_dask_would_run_to_learn_what_a_function_returns(made: Any) -> None:
    """It is not run; what to say so that the check sees what follows is told."""
    with dask.config.set(scheduler="sync"):
        [found] = stageprof.check(made).findings
    assert RAN == []
    assert found.rule == "meta-computed"
    assert "`load` at test_check.py:" in found.headline
    assert found.where.line == made.__code__.co_firstlineno + 1
    assert "meta=meta" in found.fix.code
