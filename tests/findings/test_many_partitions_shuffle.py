"""Rule many-partitions-shuffle: the same data shuffled more than once (B42)."""

from __future__ import annotations

from pathlib import Path

import dask
import dask.dataframe as dd
import pandas as pd
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, SCHEDULER, Program
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import many_partitions_shuffle
from stageprof_collectors.rules.many_partitions_shuffle import RULE
from stageprof_runtime.event import DEPEND, FINISH, LINE

PARTS = 4


def shuffling(
    tokens: list[str], *, sources: list[str] | None = None, line: bool = True, join: bool = False
) -> Recording:
    """A shuffle with each token of what is read anew each time; every task takes 100 ms."""
    made = Program()
    entry, end = (
        ("hash-join-transfer", "hashjoinp2p") if join else ("shuffle-transfer", "p2pshuffle")
    )
    if line:
        made.rows[CLIENT].append((LINE, "orders", FILE, 12, 1))
        made.rows[CLIENT].append((LINE, end if join else "shuffle", FILE, 30, 1))
    for i, token in enumerate(tokens):
        source = (sources or ["orders"] * len(tokens))[i]
        first = made._runs
        keys: list[tuple[str, int]] = [(f"{source}-{'5' * 32}", k) for k in range(PARTS)]
        keys += [(f"{entry}-{token}", k) for k in range(PARTS)]
        keys += [(f"{end}-{token}", k) for k in range(PARTS)]
        made.tasks(keys, work=99.0, type_="pandas.DataFrame", nbytes=1_000_000)
        rows = made.rows[SCHEDULER]
        rows[:] = [r for r in rows if r[0] != DEPEND or r[1] < first]
        for k in range(PARTS):
            rows.append((DEPEND, first + PARTS + k, first + k))
            last = first + 2 * PARTS - 1
            rows.append((DEPEND, first + 2 * PARTS + k, last))
        rows += [(DEPEND, first + k, -1) for k in range(1, PARTS)]
    return made.recording()


ONE, OTHER = "a" * 32, "b" * 32


def test_second_and_third_shuffle_are_the_cost_with_the_reading_for_them() -> None:
    found = one(RULE, shuffling([ONE, ONE, ONE]))
    assert found.evidence["shuffles"] == 3
    assert found.evidence["tasks_again"] == 2 * 3 * PARTS
    assert found.evidence["shuffled_again_bytes"] == 2 * PARTS * 1_000_000
    assert found.cost_s == pytest.approx(2 * 3 * PARTS * 0.1, rel=0.02)
    assert found.saving_s == pytest.approx((found.cost_s, found.cost_s), rel=0.05)
    assert "results of `orders` are shuffled 3 times at etl.py:30" in found.headline


def test_it_names_the_line_of_the_join_for_which_is_shuffled_not_of_what_was_read() -> None:
    found = one(RULE, shuffling([ONE, ONE], join=True))
    assert (found.where.file, found.where.line) == (FILE, 30)


def test_same_data_by_two_ways_of_shuffling_are_told_too() -> None:
    assert one(RULE, shuffling([ONE, OTHER])).evidence["shuffles"] == 2


def test_one_shuffle_is_no_finding() -> None:
    assert not asked(RULE, shuffling([ONE]))


def test_shuffles_of_different_data_are_no_finding() -> None:
    assert not asked(RULE, shuffling([ONE, OTHER], sources=["orders", "customers"]))


def test_cause_is_the_keys_made_again_or_what_is_shuffled() -> None:
    found = one(RULE, shuffling([ONE, ONE], line=False))
    assert found.cause == f"again:shuffle-transfer-{ONE}"
    assert found.where.prefix == "orders"
    assert one(RULE, shuffling([ONE, OTHER])).cause == "shuffle:orders"


def test_attempts_that_made_nothing_are_no_second_shuffle() -> None:
    """A task that was stolen or lost is run again, and is of the same shuffle."""
    made = Program()
    keys = [
        (f"orders-{'5' * 32}", 0),
        (f"shuffle-transfer-{ONE}", 0),
        (f"shuffle-transfer-{ONE}", 0),
    ]
    made.tasks(keys, work=99.0, chain=True)
    rows = made.rows[SCHEDULER]
    rows[:] = [(*r[:3], 3, *r[4:]) if r[0] == FINISH and r[1] == 1 else r for r in rows]
    assert not asked(RULE, made.recording())


def test_printed_code_keeps_rows_of_a_key_together() -> None:
    found = one(RULE, shuffling([ONE, ONE]))
    ddf = dd.from_pandas(pd.DataFrame({"k": [1, 2, 3] * 20, "v": range(60)}), npartitions=3)
    with dask.config.set(scheduler="sync"):
        made = run(found, ddf=ddf, key="k")
        held = made["by_key"].map_partitions(lambda part: set(part["k"]), meta=(None, object))
        held = held.compute()
        assert sorted(made["answer"].v.compute()) == [57, 58, 59]
    together = list(held)
    assert set.union(*together) == {1, 2, 3}
    assert sum(map(len, together)) == 3


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `to_parquet`
def test_what_has_no_room_in_memory_is_written_sorted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(many_partitions_shuffle, "kept_in_memory", lambda *_: False)
    found = one(RULE, shuffling([ONE, ONE]))
    assert found.saving_s[0] == 0
    ddf = dd.from_pandas(pd.DataFrame({"k": [1, 2, 3] * 20, "v": range(60)}), npartitions=3)
    with dask.config.set(scheduler="sync"):
        by_key = run(found)["sorted_by"](ddf, "k", tmp_path / "sorted")
        assert by_key.known_divisions
        assert by_key.v.sum().compute() == sum(range(60))


@pytest.mark.cluster
def test_joins_are_to_go_by_indexes_which_shuffle_no_more(client: Client) -> None:
    """A merge of what was shuffled and persisted shuffles it once more: Dask forgets the first."""
    assert client
    found = one(RULE, shuffling([ONE, OTHER], join=True))
    rows = pd.DataFrame({"k": [1, 2, 3] * 20, "v": range(60)})
    ddf = dd.from_pandas(rows, npartitions=3)
    other = dd.from_pandas(pd.DataFrame({"k": [1, 2, 3], "w": [10, 20, 30]}), npartitions=2)
    made = run(found, ddf=ddf, other=other.persist(), key="k")
    with stageprof.profile(gil=False) as region:
        assert made["joined"].w.sum().compute() == 20 * 60

    layers = list(region.recording.layers()["layer"])
    assert not any(name.startswith("hash-join-transfer") for name in layers)


def test_what_may_have_been_shuffled_by_other_keys_may_save_nothing() -> None:
    found = one(RULE, shuffling([ONE, OTHER]))
    assert found.saving_s[0] == 0.0
    assert found.saving_s[1] > 0.0


@pytest.mark.cluster
@pytest.mark.smoke
def test_an_index_that_is_set_for_each_compute_is_kept(client: Client) -> None:
    """It is what `set_index` made that is persisted: the program goes on from that."""
    assert client
    rows = pd.DataFrame({"k": [3, 1, 2] * 200, "v": range(600)})
    ddf = dd.from_pandas(rows, npartitions=3, sort=False)
    with stageprof.profile(gil=False) as region:
        indexed = ddf.set_index("k")
        first, second = indexed.v.max().compute(), indexed.v.cumsum().max().compute()
    assert (first, second) == (599, rows.v.sum())

    found = asked(RULE, region.recording, share=0.0)[0]
    by_key = run(found, ddf=ddf, key="k")["by_key"]
    assert by_key.index.name == "k"
    assert by_key.v.max().compute() == first
