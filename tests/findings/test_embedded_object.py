"""Rule embedded-object: A19, A24 (embedded repeatedly), A25 to A28 (the fixes, each executed)."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, LANE, SCHEDULER, Program, calls, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import complex_object
from stageprof_collectors.rules.embedded_object import RULE
from stageprof_runtime.event import BLOCK, GRAPH, SUBMIT

TOKEN = "0" * 32
LAYER = f"scored-{TOKEN}"


def program(tasks: int = 20, lead: float = 100.0, **fields: Any) -> Recording:
    """Tasks that carry a frame, and as many that do not, whose messages take a millisecond."""
    made = Program()
    made.made("scored", 43)
    made.embedded(LAYER, **fields)
    made.client("serialization/graph.dump", 50.0)
    made.tasks([(LAYER, i) for i in range(tasks)], work=10.0, lead=lead)
    made.tasks([(f"made-{TOKEN}", i) for i in range(tasks)], work=10.0, lead=1.0)
    return made.recording()


def test_variable_lines_bytes_and_copies_are_named() -> None:
    """A24: identity, copies and bytes; the headline has the user's own names."""
    found = one(RULE, program())

    assert found.headline.startswith(
        "`weights`, a DataFrame of 32.0 MB made at etl.py:40, is embedded in 20 tasks of etl.py:43"
    )
    assert (found.where.file, found.where.line, found.where.variable) == (FILE, 40, "weights")
    assert found.evidence["sent_bytes"] == 20 * 32_000_000
    assert found.cause == "object:1"
    # Twenty messages of 100 ms would take 1 ms each; one to the only worker stays if it is wrapped.
    assert found.cost_s == pytest.approx(20 * 0.099, rel=0.01)
    low, high = found.saving_s
    assert low == pytest.approx(19 * 0.099, rel=0.01)
    assert high == pytest.approx(20 * 0.099, rel=0.01)


@pytest.mark.parametrize(
    ("fields", "fires"),
    [
        ({"nbytes": 600_000}, True),  # 12 MB sent
        ({"nbytes": 400_000}, False),
        ({"nbytes": 400_000, "dump": 2.0}, False),
        ({"nbytes": 9_000_000, "tasks": 1, "dump": 40.0}, True),  # 1.6 % of the run
        ({"nbytes": 400_000, "dump": 40.0}, False),  # slow for its bytes: the other rule
    ],
)
def test_it_fires_for_what_is_large_or_takes_long(fields: dict[str, Any], fires: bool) -> None:
    assert bool(asked(RULE, program(**fields))) == fires


def test_large_object_that_costs_nothing_is_a_note() -> None:
    """Bytes alone never make severity."""
    found = one(RULE, program(lead=1.0))
    assert found.severity == stageprof.Severity.NOTE
    assert found.saving_s[1] < 0.01


@pytest.mark.parametrize("variable", ["", "weights[3]", "class", "x; import os"])
def test_only_identifiers_are_printed(variable: str) -> None:
    code = one(RULE, program(variable=variable)).fix.code
    assert "thing = dask.delayed(thing" in code
    compile(code, "<fix>", "exec")


@pytest.mark.parametrize("how", ["closure of make.<locals>.f", "keyword model of partial(score)"])
def test_object_that_a_function_has_from_outside_is_to_be_an_argument(how: str) -> None:
    """In a `partial` Dask computes no delayed object: the function would be given that itself."""
    found = one(RULE, program(how=how))
    assert "give it to the function as an argument" in found.fix.text


def test_one_object_in_many_graphs_is_one_finding() -> None:
    made = Program()
    for g in range(3):
        made.embedded(f"scored-{g:032x}")
        made.tasks([(f"scored-{g:032x}", i) for i in range(5)], work=10.0, lead=50.0)
    found = one(RULE, made.recording())
    assert found.evidence["tasks"] == 15
    assert found.evidence["copies_in_graph"] == 3


def test_values_that_a_variable_had_one_after_another_are_one_finding() -> None:
    """`[process(part) for part in parts]`: each by itself would be a note."""
    made = Program()
    made.made("process", 43)
    keys = calls(12, "process")
    for number, key in enumerate(keys, start=1):
        made.embedded(key, number=number, nbytes=8_000_000, tasks=1, variable="part")
    made.tasks(keys, work=10.0, lead=100.0)

    found = one(RULE, made.recording())

    assert found.headline.startswith(
        "12 values of `part`, each a DataFrame of 8.0 MB made at etl.py:40, are embedded in 12 "
        "tasks of etl.py:43: "
    )
    assert found.cost_s == pytest.approx(12 * 0.095, rel=0.05)
    assert found.saving_s[0] == pytest.approx(found.saving_s[1], rel=0.01)
    assert "Read or make each of them in the task that needs it" in found.fix.text
    assert "wrap" not in found.fix.text  # it would travel as often
    parts = run(found, function_that_makes_a_piece=lambda i: i)["part"]
    assert dask.compute(*parts, scheduler="sync") == tuple(range(12))


def test_what_is_submitted_again_and_again_travels_once_as_a_future() -> None:
    """Each submit is a graph of one task, and the object is the same."""
    made = Program()
    keys = [f"scored-{i:032x}" for i in range(5)]
    for key in keys:
        made.embedded(key, tasks=1)
        made.tasks([key], work=10.0, lead=100.0)
    found = one(RULE, made.recording())
    assert "travels once and not with each of 5 tasks" in found.fix.text
    assert "get_client()" in found.fix.code
    assert found.saving_s[0] < 0.9 * found.saving_s[1]


def test_what_one_task_has_is_not_to_be_wrapped() -> None:
    made = Program()
    [key] = calls(1, "process")
    made.embedded(key, tasks=1)
    made.tasks([key], work=10.0, lead=900.0)
    found = one(RULE, made.recording())
    assert "wrap" not in found.fix.text
    assert found.saving_s[0] > 0.5


# -- what it costs ---------------------------------------------------------------------------------


def test_time_of_messages_with_several_objects_is_shared_by_their_bytes() -> None:
    """So that one sees which to wrap first; together they cost what the messages do."""
    made = Program()
    for number, nbytes in ((1, 32_000_000), (2, 8_000_000)):
        made.embedded(LAYER, number=number, nbytes=nbytes, variable=f"x{number}")
    made.tasks([(LAYER, i) for i in range(20)], work=10.0, lead=100.0)
    made.tasks([(f"made-{TOKEN}", i) for i in range(20)], work=10.0, lead=1.0)
    large, small = sorted(asked(RULE, made.recording()), key=lambda f: f.where.variable)
    assert large.cost_s == pytest.approx(0.8 * 20 * 0.099, rel=0.02)
    assert small.cost_s == pytest.approx(0.2 * 20 * 0.099, rel=0.02)
    assert large.saving_s[0] > small.saving_s[1]


def test_where_all_messages_hold_it_the_way_of_its_bytes_is_its_cost() -> None:
    """None without it tells what is left: no more than the bytes can have taken is taken away."""
    made = Program()
    made.embedded(LAYER, nbytes=2_000_000)
    made.tasks([(LAYER, i) for i in range(20)], work=10.0, lead=100.0)
    slow = one(RULE, made.recording())
    made = Program()
    made.embedded(LAYER)
    made.tasks([(LAYER, i) for i in range(20)], work=10.0, lead=100.0)
    heavy = one(RULE, made.recording())

    assert slow.cost_s == pytest.approx(20 * 0.04, rel=0.05)  # 2 MB at 50 MB a second
    assert heavy.cost_s == pytest.approx(20 * 0.095, rel=0.05)  # all but a small message


@pytest.mark.parametrize(("nbytes", "cost"), [(32_000_000, 0.395), (0, 0.0)])
def test_results_that_wait_behind_its_graphs_are_its_cost(nbytes: int, cost: float) -> None:
    """A small one takes 400 ms, for the loops that it passes are moving the object meanwhile."""

    def made(after: float) -> Recording:
        made = Program()
        made.embedded(LAYER)
        made.tasks([(LAYER, 0)], work=10.0, lead=100.0)
        begun, end, made.now = ns(made.now), ns(made.now + after), made.now + after
        made.rows[CLIENT].append((SUBMIT, 1, begun, 1, nbytes, LANE, FILE, 99))
        made.rows[SCHEDULER].append((GRAPH, 1, end, end, 1, 1, CLIENT.name, -1))
        row = (BLOCK, begun, end, LANE, "_gather", begun, begun, end, (LAYER, 0))
        made.rows[CLIENT].append(row)
        return made.recording()

    without, behind = (one(RULE, made(after)) for after in (0.001, 400.0))
    assert behind.cost_s - without.cost_s == pytest.approx(cost, abs=0.01)
    assert behind.saving_s[1] - without.saving_s[1] == pytest.approx(cost, abs=0.05)


def test_the_stage_is_that_of_most_of_the_cost() -> None:
    sent = one(RULE, program())
    dumped = Program()
    dumped.embedded(LAYER, dump=900.0, nbytes=1_000_000_000)
    dumped.client("serialization/graph.dump", 900.0)
    dumped.tasks([(LAYER, i) for i in range(6)], work=10.0, lead=1.0)
    assert sent.evidence["communication_s"] == pytest.approx(sent.cost_s, rel=0.05)
    assert sent.stage == stageprof.Stage.COMMUNICATION
    assert one(RULE, dumped.recording()).stage == stageprof.Stage.SERIALIZATION


@pytest.mark.parametrize(
    ("type_", "variable", "says"),
    [
        ("numpy.ndarray", "w", "`w`, an ndarray of 32.0 MB made at etl.py:40, is embedded in"),
        ("pandas.DataFrame", "w", "`w`, a DataFrame of 32.0 MB made at etl.py:40, is embedded in"),
        ("pandas.Index", "w", "`w`, an Index of 32.0 MB made at etl.py:40, is embedded in"),
        ("numpy.ndarray", "", "An unnamed ndarray of 32.0 MB made at etl.py:40 is embedded in"),
    ],
)
def test_articles_and_commas(type_: str, variable: str, says: str) -> None:
    """A comma only where there is a pair of them."""
    assert one(RULE, program(type=type_, variable=variable)).headline.startswith(says)


# -- what is printed, executed ---------------------------------------------------------------------


def test_what_map_was_given_is_made_a_future() -> None:
    assert "get_client()" in one(RULE, program(how="argument 1 of client.map")).fix.code


def test_meta_is_asked_for_only_where_dask_tries_the_function() -> None:
    assert "meta=" not in one(RULE, program(how="argument 1 of work")).fix.code


def test_where_dask_hands_a_delayed_to_the_function_a_future_is_printed() -> None:
    """As 2025.4 does; a later release takes it by its value."""
    recording = program()
    recording.store.header["dask"] = "2025.4.1"
    old = one(RULE, recording).fix
    assert "get_client()" in old.code
    assert "meta=" in old.code
    assert "take a newer Dask" in old.text
    recording.store.header["dask"] = "2025.5.0"
    assert "get_client()" not in one(RULE, recording).fix.code


@pytest.mark.smoke
@pytest.mark.cluster
def test_what_is_printed_for_map_partitions_works_with_this_release(client: Client) -> None:
    """The function gets the value, whichever of the two was printed."""
    recording = program()
    recording.store.header["dask"] = dask.__version__
    weights = run(one(RULE, recording), weights=pd.DataFrame({"w": np.arange(5.0)}))["weights"]
    ddf = dd.from_pandas(pd.DataFrame({"x": np.arange(4.0)}), npartitions=2)

    def scored(piece: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
        return piece + float(weights["w"].sum())

    out = ddf.map_partitions(scored, weights, meta={"x": float})
    assert out.compute()["x"].tolist() == [10.0, 11.0, 12.0, 13.0]


def test_printed_delayed_gives_the_same_result_with_one_copy() -> None:
    """A28: wrapped in `delayed`."""
    weights = pd.DataFrame({"w": np.arange(5.0)})
    found = one(RULE, program())
    wrapped, code = run(found, weights=weights)["weights"], found.fix.code
    ddf = dd.from_pandas(pd.DataFrame({"x": np.arange(4.0)}), npartitions=2)

    def scored(piece: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
        return piece + float(weights["w"].sum())

    assert "meta=..." in code
    with pytest.raises((NotImplementedError, ValueError)):
        ddf.map_partitions(scored, wrapped)
    out = ddf.map_partitions(scored, wrapped, meta={"x": float})
    with dask.config.set(scheduler="sync"):
        assert out.compute()["x"].tolist() == [10.0, 11.0, 12.0, 13.0]


@pytest.mark.cluster
def test_printed_delayed_is_taken_by_map_blocks_which_needs_its_meta(client: Client) -> None:
    """It tries the function on no data, and takes what that makes of a `delayed` for an array."""
    table = np.random.default_rng(1).random(200_000)
    x = da.random.random((80, 40), chunks=(10, 40))

    def looked_up(block: Any, table: Any = table) -> Any:
        return table[(block * 1000).astype(int)]

    with stageprof.profile(gil=False) as region:
        total = x.map_blocks(looked_up, table=table).sum().compute()
    found = one(RULE, region.recording, nbytes=1_000_000)
    wrapped = run(found, table=table)["table"]
    assert "map_blocks needs meta=np.array((), dtype=...)" in found.fix.code
    with pytest.raises(TypeError):
        x.map_blocks(looked_up, table=wrapped).sum()
    again = x.map_blocks(looked_up, table=wrapped, meta=np.array((), dtype=float))
    assert again.sum().compute() == pytest.approx(total)


@pytest.mark.cluster
def test_arrays_that_plain_calls_return_need_no_meta(client: Client) -> None:
    table = np.random.default_rng(1).random(200_000)

    def looked_up(number: int, table: Any) -> Any:
        return table[:number]

    with stageprof.profile(gil=False) as region:
        parts = [dask.delayed(looked_up)(i, table) for i in range(1, 9)]
        dask.compute(*parts)
    found = one(RULE, region.recording, nbytes=1_000_000)
    assert "delayed(" in found.fix.code
    assert "meta=" not in found.fix.code


@pytest.mark.cluster
def test_printed_future_is_taken_by_submit(client: Client) -> None:
    made = Program()
    keys = [f"scored-{i:032x}" for i in range(20)]
    for key in keys:
        made.embedded(key, tasks=1)
    made.tasks(keys, work=1.0, lead=50.0)
    found = one(RULE, made.recording())
    weights = run(found, weights=np.arange(10))["weights"]
    assert client.submit(np.sum, weights).result() == 45


@pytest.mark.cluster
@pytest.mark.parametrize("pure", [True, False])
def test_what_is_submitted_and_computed_as_well_is_taken_by_both_as_printed(
    client: Client, *, pure: bool
) -> None:
    """A `delayed` is no argument of `submit`: its function got it as it is."""

    def picked(table: Any, number: int) -> float:
        return float(table[number])

    def program(table: Any) -> float:
        calls = [dask.delayed(picked)(table, i) for i in range(6)]
        futures = [client.submit(picked, table, i, pure=pure) for i in range(3)]
        return float(sum(dask.compute(*calls)) + sum(client.gather(futures)))

    table = np.arange(300_000.0)
    with stageprof.profile(gil=False) as region:
        before = program(table)
    found = one(RULE, region.recording, nbytes=1_000_000)
    assert program(run(found, table=table)["table"]) == before == 18


def test_with_the_processes_scheduler_nothing_is_to_be_wrapped() -> None:
    """It pickles each task with all that it is given: a `delayed` travelled as often."""
    weights = np.random.default_rng(1).random(2_000_000)

    def scored(number: int) -> float:
        return float(weights[number])

    bag = db.from_sequence(range(8), npartitions=8).map(scored)
    with stageprof.profile(gil=False) as region:
        bag.sum().compute(scheduler="processes", num_workers=2)
    found = one(RULE, region.recording)
    assert found.where.variable == "weights"
    assert "Make or read it in the process that needs it" in found.fix.text
    assert "delayed(" not in found.fix.code
    made = run(found, function_that_makes_it=lambda: [1, 2, 3])["weights"]
    assert made() is made()


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_frame_in_a_real_graph_is_found_by_name(client: Client) -> None:
    """A26: what should be read in a task is named with its variable and line."""
    lookup = pd.DataFrame({"w": np.arange(1_500_000.0)})  # <- here
    with stageprof.profile() as region:
        ddf = dd.from_map(_made, list(range(8)), meta=_made(0).head(0))
        total = ddf.map_partitions(_looked_up, lookup, meta=_made(0).head(0)).x.sum().compute()
    assert total == sum(range(8)) * 10

    found = one(RULE, region.recording)
    assert found.where.variable == "lookup"
    assert found.where.file == __file__
    assert found.evidence["tasks"] == 8
    assert not asked(complex_object.RULE, region.recording)


def _made(i: int) -> pd.DataFrame:
    return pd.DataFrame({"x": np.full(10, float(i))})


def _looked_up(piece: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    return piece.assign(x=piece["x"] + table["w"].iloc[0])


def test_recording_without_objects_costs_nothing() -> None:
    made = Program()
    made.tasks(calls(10), work=1.0)
    assert not asked(RULE, made.recording())
