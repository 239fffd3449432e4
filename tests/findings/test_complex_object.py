"""Rule complex-object: A18 (very complex objects), A29 (custom reducers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import pytest
from dask import compute, delayed
from distributed import Client

import clusters
import stageprof
from findings.asking import asked, one, run
from findings.crowded import Program, calls
from stageprof_collectors.findings.rule import Rule
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import embedded_object
from stageprof_collectors.rules.complex_object import RULE


@dataclass
class Article:
    number: int
    price: float


def program(dump: float = 300.0, nbytes: int = 3_000_000, tasks: int = 6) -> Recording:
    """Some tasks whose messages take as long as the dump of the object that they hold."""
    made = Program()
    made.made("priced", 44)
    keys = calls(tasks, "priced")
    for i, key in enumerate(keys):
        made.embedded(
            key, type="etl.Catalogue", variable="catalogue", nbytes=nbytes, tasks=1,
            copies=int(not i), dump=dump if not i else 0.0,
        )  # fmt: skip
    made.client("serialization/graph.dump", dump)
    made.tasks(keys, work=100.0, lead=dump)
    made.tasks(calls(6, "other"), work=100.0, lead=1.0)
    return made.recording()


def test_object_and_what_its_pickling_takes_are_named() -> None:
    """A18: what is complex, not large, is named with its type and seconds."""
    found = one(RULE, program())

    assert found.headline.startswith("`catalogue`, a Catalogue made at etl.py:40, takes 300 ms")
    assert "for 3.0 MB, and is in 6 tasks" in found.headline
    assert found.cause == "object:1"
    assert found.evidence["bytes_per_s"] == pytest.approx(1e7)
    assert found.cost_s == pytest.approx(0.3 + 6 * 0.299, rel=0.01)
    # at least what is saved if it travels once: with its graph, and to one task
    assert found.saving_s == pytest.approx((found.cost_s - 2 * 0.3, found.cost_s), rel=0.02)


@pytest.mark.parametrize("rule", [RULE, embedded_object.RULE])
def test_what_dask_knows_of_files_is_less_with_fewer_files(rule: Rule) -> None:
    """Nobody can keep it in arrays, or make it in a task."""
    made = Program()
    slow = rule is RULE
    made.embedded(
        "read", type="pyarrow.FileSystemDataset", variable="", file="", line=0, tasks=6,
        how="_dataset_info_cache of read_parquet_fsspec[ds]", used_file="etl.py", used_line=9,
        nbytes=3_000_000 if slow else 300_000_000, dump=300.0,
    )  # fmt: skip
    made.client("serialization/graph.dump", 300.0)
    made.tasks(calls(6, "read"), work=100.0)
    found = one(rule, made.recording())
    assert "travels with each task that reads" in found.fix.text
    assert "aggregate_files=True" in found.fix.code
    assert found.where.line == (99 if slow else 0)  # of the call that handed it over


@pytest.mark.parametrize(
    ("dump", "nbytes", "fires"),
    [
        (300.0, 3_000_000, True),
        (300.0, 31_000_000, False),  # 100 MB a second: as bytes go
        (9.0, 1_000, False),
        (11.0, 1_000, True),
    ],
)
def test_it_fires_where_bytes_do_not_explain_the_time(
    dump: float, nbytes: int, fires: bool
) -> None:
    recording = program(dump, nbytes)
    assert bool(asked(RULE, recording, share=0.0)) == fires
    if fires:  # one object is one finding
        assert not asked(embedded_object.RULE, recording)


def test_printed_code_makes_an_array_of_each_attribute() -> None:
    names = run(one(RULE, program(tasks=1)), catalogue=[Article(i, i / 2) for i in range(5)])
    assert names["columns"]["price"].tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert names["columns"]["number"].dtype == np.int64


def test_what_is_in_several_tasks_is_to_be_handed_over_once() -> None:
    """A dict of tuples has no attributes; and one line takes the many picklings down to one."""
    found = one(RULE, program())
    code = run(found, catalogue={1: ("a", 2)})
    assert dask.compute(code["catalogue"], scheduler="sync") == ({1: ("a", 2)},)
    assert "a few arrays" in found.fix.text


@pytest.fixture(scope="module")
def cluster() -> Any:
    with clusters.separate() as client:
        yield client


def _priced(seed: int, catalogue: list[Article]) -> float:
    return catalogue[seed].price


@pytest.mark.cluster
def test_many_small_objects_in_a_real_graph_are_found(cluster: Client) -> None:
    """A29: library-specific or custom objects are blamed by name."""
    articles = [Article(i, i / 2) for i in range(60_000)]
    with stageprof.profile() as region:
        found = compute(*[delayed(_priced)(i, delayed(articles, traverse=False)) for i in range(4)])
    assert found == (0.0, 0.5, 1.0, 1.5)
    assert [f.where.variable for f in asked(RULE, region.recording)] == ["articles"]
