"""Batches merged before they are written: smaller and fewer, and equal in all that they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.merge import MOST, merge
from stageprof_collectors.storage.origin import Origin
from stageprof_collectors.storage.shipment import decode
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import ASSIGN, MARK, SAMPLE, TABLES, Place

A = Place("worker", "node-1", 200, "tcp://10.0.0.2:40001", 7)
B = Place("scheduler", "node-0", 100, "tcp://10.0.0.1:8786", 3)

KEYS = st.one_of(
    st.text(max_size=5), st.integers(-5, 5), st.tuples(st.text(max_size=3), st.just(1))
)
ROWS = st.lists(
    st.one_of(
        st.tuples(st.just(MARK), st.integers(0, 9), st.sampled_from("xyz"), st.just("\ud800")),
        st.tuples(st.just(SAMPLE), st.integers(0, 9), st.sampled_from("uv"), st.floats(0, 1)),
        st.tuples(
            st.just(ASSIGN), st.integers(), st.just(5), st.just("w"), st.just(0), KEYS
        ).filter(lambda row: -(2**63) <= row[1] < 2**63),
    ),
    max_size=6,
)


def stored(batches: list[bytes]) -> Store:
    store = Store()
    for batch in batches:
        assert store.add(batch)
    return store


def content(store: Store) -> dict[str, Any]:
    """All rows by place, with texts and keys in place of their numbers."""
    out: dict[str, Any] = {}
    for name in TABLES.values():
        table = {k: v.tolist() for k, v in store.table(name).items()}
        for field in ("name", "label", "worker"):
            if field in table:
                table[field] = [store.strings[i] for i in table[field]]
        if "key" in table:
            table["key"] = store.keys(table["key"])
        rows = list(zip(*table.values(), strict=True))
        out[name] = [[row for row in rows if row[-1] == p] for p in range(2)]
    return out


@given(st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=5))
def test_merged_batches_hold_the_same_rows_in_the_same_order(lots: list[Any]) -> None:
    batches = []
    for seq, (mine, yours) in enumerate(lots):
        batches.append(pack(A, seq, 100 + seq, mine, drops={"full": seq}, counts=(seq, 0, 0)))
        batches.append(pack(B, seq, 900 + seq, yours))

    merged = merge(batches)

    one, other = stored(merged), stored(batches)
    assert len(merged) == 2
    assert content(one) == content(other)
    for a, b in zip(one.origins, other.origins, strict=True):
        for said in ("batches", "last_seq", "first_t", "last_t", "drops", "counts", "gaps"):
            assert getattr(a, said) == getattr(b, said), said


def test_a_gap_between_batches_is_still_a_lost_batch() -> None:
    batches = [pack(A, seq, seq, [(MARK, seq, "x", "")]) for seq in (0, 1, 4, 5)]

    store = stored(merge(batches))

    assert store.origins[0].gaps == [(2, 3)]
    assert store.origins[0].batches == 4


def test_a_merged_batch_that_comes_late_fills_its_gap() -> None:
    batches = [pack(A, seq, seq, [(MARK, seq, "x", "")]) for seq in range(6)]

    store = stored([*merge(batches[:2]), *merge(batches[4:]), *merge(batches[2:4])])

    assert store.origins[0].lost == 0
    assert not store.add(merge(batches[2:4])[0]), "a duplicate was taken twice"


def test_large_batches_stay_by_themselves_and_damaged_ones_as_they_are() -> None:
    rows = [(MARK, n, "x", "") for n in range(MOST - 1)]
    batches = [pack(A, 0, 0, rows), b"\x93abc", pack(A, 1, 1, rows), pack(A, 2, 2, rows[:1])]

    damaged, *merged = merge(batches)

    assert damaged == batches[1]
    assert [decode(m).seq for m in merged] == [0, 2]
    assert [decode(m).merged for m in merged] == [1, 2]


def test_a_batch_that_cannot_be_read_is_told_of_as_in_memory(tmp_path: Path) -> None:
    """It was the first and last of its place, which no gap shows: the file was complete."""
    dropped = []
    for path in (None, tmp_path / "r.stageprof"):
        collector = Collector(path)
        collector.take(pack(A, 0, 0, []).replace(b"node-1", b"node-\xff"))
        dropped.append(collector.close().coverage()["dropped"])
    assert dropped == 2 * [{"damaged batch": 1}]


@given(st.lists(st.sampled_from(range(6)), min_size=1, max_size=12), st.integers(1, 4))
def test_batches_that_come_again_are_in_the_file_once(order: list[int], at_once: int) -> None:
    """What a killed worker had sent comes again, with what it had not, when others were written."""
    batches = [pack(A, seq, seq, [(MARK, seq, "x", f"label {seq}")]) for seq in range(6)]
    origins: dict[Place, Origin] = {}
    lots = [order[i : i + at_once] for i in range(0, len(order), at_once)]

    store = stored([b for lot in lots for b in merge([batches[i] for i in lot], origins)])

    marks = store.table("mark")["t"].tolist()
    assert sorted(marks) == sorted(set(order))
    assert store.origins[0].batches == len(set(order))
    assert store.origins[0].lost == max(order) + 1 - len(set(order))
