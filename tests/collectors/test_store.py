"""The store: all batches as one set of columns, and an account of what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.columns import narrow
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.frame import BATCH, Frame
from stageprof_collectors.storage.origin import OPEN, Origin
from stageprof_collectors.storage.shipment import decode
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import (
    ASSIGN,
    FIELDS,
    MARK,
    NATIVE,
    OWNER,
    SAMPLE,
    SPAN,
    STOOD,
    SUM,
    TABLES,
    WANT,
    Place,
)

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.0.stageprof"
GOLDEN_1_1 = GOLDEN.with_name("golden-1.1.stageprof")
GOLDEN_1_2 = GOLDEN.with_name("golden-1.2.stageprof")
GOLDEN_1_3 = GOLDEN.with_name("golden-1.3.stageprof")
A = Place("worker", "node-1", 1, "tcp://a:1", 0)
B = Place("worker", "node-2", 2, "tcp://b:2", 0)


def marks(place: Place, seq: int, *names: str, **more: Any) -> bytes:
    rows = [(MARK, 100 * seq + n, name, "") for n, name in enumerate(names)]
    return pack(place, seq, 1000 + seq, rows, **more)


def changed(batch: bytes, **fields: Any) -> bytes:
    packed: bytes = msgpack.packb({**msgpack.unpackb(batch), **fields})
    return packed


def with_table(name: str, table: Any) -> bytes:
    return changed(marks(A, 0), tables={name: table, **msgpack.unpackb(marks(A, 0, "x"))["tables"]})


# -- the file of version 1.0 --------------------------------------------------------------


def test_golden_recording_of_version_1_0_opens_with_the_same_numbers() -> None:
    store = Store.open(GOLDEN)

    assert store.complete
    assert store.header == {"program": "golden", "started": "2026-01-02T03:04:05Z"}
    assert store.totals == {"batches": 5, "frames": 6, "refused": 0}
    assert [(p.role, p.name, p.life) for p in store.places] == [
        ("client", "Client-1", 1),
        ("worker", "tcp://10.0.0.2:40001", 7),
    ]
    of_1_0 = [name for number, name in TABLES.items() if number <= SUM]
    assert {name: store.rows(name) for name in TABLES.values()} == {
        **dict.fromkeys(TABLES.values(), 0),  # what later versions added
        **dict.fromkeys(of_1_0, 24),
        "run": 124,
    }
    assert store.skipped == {}
    assert store.strings == ["", "tcp://10.0.0.2:40001", "lone \\udcff", "numpy.ndarray"]


def test_golden_recording_of_version_1_1_has_the_tables_of_its_day() -> None:
    store = Store.open(GOLDEN_1_1)

    assert store.complete
    of_1_1 = [name for number, name in TABLES.items() if number <= STOOD]
    assert {name: store.rows(name) for name in TABLES.values()} == {
        **dict.fromkeys(TABLES.values(), 0),  # what was added since
        **dict.fromkeys(of_1_1, 24),
        "run": 124,
    }
    assert store.skipped == {}
    hold, stood = store.table("hold"), store.table("stood")
    assert hold["thread"][:3].tolist() == [10**6 + n * 257**2 for n in range(3)]
    assert [store.strings[i] for i in stood["label"][:4]] == store.strings[:4]


def test_golden_recording_of_version_1_2_has_coarse_instants_too() -> None:
    """Of the last batch; and what was counted of it is exact."""
    store = Store.open(GOLDEN_1_2)

    assert store.complete
    of_1_2 = [name for number, name in TABLES.items() if number <= NATIVE]
    assert {name: store.rows(name) for name in TABLES.values()} == {
        **dict.fromkeys(TABLES.values(), 0),  # what was added since
        **dict.fromkeys(of_1_2, 24),
        "run": 124,
    }
    assert store.skipped == {}
    run = store.table("run")
    exact = [10**12 + n * 257**4 for n in range(100)]
    assert run["stop"][24:].tolist() == [stop >> 10 << 10 for stop in exact]
    assert run["run"][24:].tolist() == [1 + n for n in range(100)]


def test_golden_recording_of_version_1_3_says_whose_runs_are() -> None:
    store = Store.open(GOLDEN_1_3)

    assert store.complete
    of_1_3 = [name for number, name in TABLES.items() if number <= OWNER]
    assert {name: store.rows(name) for name in TABLES.values()} == {
        **dict.fromkeys(TABLES.values(), 0),  # what was added since
        **dict.fromkeys(of_1_3, 24),
        "run": 124,
    }
    assert store.skipped == {}
    assert store.table("owner")["graph"][:3].tolist() == [10**3 + n * 257 for n in range(3)]


@pytest.mark.parametrize("path", [GOLDEN, GOLDEN_1_1, GOLDEN_1_2, GOLDEN_1_3])
def test_golden_rows_are_what_they_were(path: Path) -> None:
    """T18, B9: keys of every type stay apart, and lone surrogates are shown."""
    store = Store.open(path)
    run, sample, want = store.table("run"), store.table("sample"), store.table("want")
    assert run["stop"][:9].tolist() == [10**12 + n * 257**4 for n in [*range(8), 0]]
    assert run["place"].tolist() == [0] * 8 + [1] * 116
    assert run["worker"][24:30].tolist() == [0, 1, 2, 3, 0, 1]
    assert sample["value"][:5].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert store.table("span")["step"][8:16].tolist() == list(range(8))
    assert store.keys(want["key"])[8:16] == [
        "sum-0123", "('add-4567', 0, 1)", "1", "'1'", "b'raw'", "('a', ('b', 2.5))", "\\ud800",
        "None",
    ]  # fmt: skip


def test_golden_worker_lost_one_batch_and_some_rows() -> None:
    worker = Store.open(GOLDEN).origins[1]
    assert (worker.last_seq, worker.batches, worker.gaps, worker.lost) == (3, 3, [(1, 1)], 1)
    assert (worker.first_t, worker.last_t) == (5000, 7000)
    assert worker.drops == {"ring full": 5}


# -- tables -------------------------------------------------------------------------------


def test_every_table_is_there_and_empty_at_first() -> None:
    store = Store()
    for number, name in TABLES.items():
        table = store.table(name)
        assert list(table) == [*FIELDS[number], "place"]
        assert {len(column) for column in table.values()} == {0}
    assert store.keys([]) == []
    assert (store.complete, store.places, store.strings) == (False, [], [""])


def test_rows_come_in_the_order_of_arrival_with_their_place() -> None:
    store = Store()
    for batch in (marks(B, 0, "x", "y"), marks(A, 0, "y"), marks(B, 1, "x")):
        assert store.add(batch)
    table = store.table("mark")
    assert table["t"].tolist() == [0, 1, 0, 100]
    assert [store.strings[i] for i in table["name"]] == ["x", "y", "y", "x"]
    assert [store.places[i] for i in table["place"]] == [B, B, A, B]


def test_table_is_kept_until_rows_are_added() -> None:
    store = Store()
    store.add(marks(A, 0, "x"))
    before = store.table("mark")
    assert store.table("mark")["t"] is before["t"]
    store.add(marks(A, 1, "z"))
    assert len(store.table("mark")["t"]) == 2
    assert len(before["t"]) == 1


def test_columns_cannot_be_written_to() -> None:
    store = Store()
    store.add(marks(A, 0, "x"))
    with pytest.raises(ValueError, match="read-only"):
        store.table("mark")["t"][0] = 5


def test_live_and_from_a_file_it_is_the_same(tmp_path: Path) -> None:
    """A store fed with shipped batches equals one opened from the narrowed ones."""
    batches = [marks(place, seq, f"m{seq}", "x") for seq in range(50) for place in (A, B)]
    live = Store()
    with Writer(tmp_path / "r", {}) as writer:
        for batch in batches:
            live.add(batch)
            writer.write(narrow(batch))
    opened = Store.open(tmp_path / "r")
    assert opened.strings == live.strings
    for name in TABLES.values():
        for field, column in live.table(name).items():
            np.testing.assert_array_equal(column, opened.table(name)[field])


def test_tables_beyond_the_pending_limit_join_without_a_seam() -> None:
    store = Store()
    for seq in range(4):
        rows = [(WANT, n, n, ("k", seq, n)) for n in range(40_000)]
        store.add(narrow(pack(A, seq, 0, rows)))
    want = store.table("want")
    assert want["run"].tolist() == [*range(40_000)] * 4
    assert store.keys(want["key"][[159_999, 0, 40_000]]) == [
        "('k', 3, 39999)", "('k', 0, 0)", "('k', 1, 0)"
    ]  # fmt: skip


def test_keys_come_in_the_order_asked_for_and_as_often() -> None:
    store = Store()
    store.add(pack(A, 0, 0, [(WANT, 0, 0, "a"), (WANT, 1, 0, 1)]))
    store.add(pack(A, 1, 0, [(ASSIGN, 0, 0, "w", -1, ("b", 0))]))
    assert store.keys([2, 0, 2, 1]) == ["('b', 0)", "a", "('b', 0)", "1"]
    assert store.table("assign")["key"].tolist() == [2]
    for number in (-1, 3):
        with pytest.raises(IndexError):
            store.keys([number])


# -- what is missing ----------------------------------------------------------------------


def test_gaps_in_the_sequence_are_lost_batches_until_they_come() -> None:
    store = Store()
    for seq in (0, 1, 5, 3):
        assert store.add(marks(A, seq, "x"))
    origin = store.origins[0]
    assert (origin.gaps, origin.lost, origin.last_seq) == ([(2, 2), (4, 4)], 2, 5)
    store.add(marks(A, 2, "x"))
    store.add(marks(A, 4, "x"))
    assert (origin.gaps, origin.lost, origin.batches) == ([], 0, 6)


def test_a_million_gaps_take_no_longer_than_so_many_batches() -> None:
    """Each late batch moved all gaps that are behind it; what is lost is counted all the same."""
    origin, most = Origin(A), 3 * OPEN
    for seq in range(1, 2 * most, 2):
        assert origin.take(decode(marks(A, seq)))
    assert (len(origin.gaps), origin.lost) == (OPEN, most)
    assert origin.take(decode(marks(A, 2 * most - 2)))
    assert not origin.take(decode(marks(A, 0)))
    assert (origin.lost, origin.duplicates) == (most - 1, 1)
    assert origin.copy().lost == most - 1


def test_gaps_within_a_gap_are_not_too_many_either() -> None:
    origin, first = Origin(A), 2 * OPEN
    assert origin.take(decode(marks(A, 2 * first)))
    for seq in range(1, 2 * first, 2):
        origin.take(decode(marks(A, seq)))
        assert len(origin.gaps) <= OPEN
    assert origin.lost == 2 * first + 1 - origin.batches


def test_batch_that_comes_again_is_ignored_and_counted() -> None:
    store = Store()
    assert store.add(marks(A, 0, "x"))
    assert not store.add(marks(A, 0, "x"))
    assert store.rows("mark") == 1
    assert store.origins[0].duplicates == 1


def test_the_name_of_a_host_may_be_no_utf8() -> None:
    """No batch of such a host could be read; nothing of it was in a recording."""
    store = Store()
    for place in (A._replace(host="h\udcff"), A._replace(host="hé", life=1)):
        assert store.add(marks(place, 0, "x"))
    assert [place.host for place in store.places] == ["h\\udcff", "hé"]


def test_two_lives_of_a_worker_are_two_places() -> None:
    store = Store()
    store.add(marks(A, 0, "x"))
    store.add(marks(A._replace(life=1), 0, "x"))
    assert len(store.places) == 2
    assert store.rows("mark") == 2


def test_latest_state_of_a_place_is_that_of_its_latest_batch() -> None:
    store = Store()
    cost = {"transition": [2, 300]}
    store.add(marks(A, 1, drops={"full": 9}, cost=cost, now=33, counts=(9, 5, 3)))
    store.add(marks(A, 0, drops={"full": 2}, now=1))
    origin = store.origins[0]
    assert (origin.drops, origin.cost) == ({"full": 9}, {"transition": (2, 300)})
    assert (origin.now, origin.counts) == (33, (9, 5, 3))


def test_unfinished_recording_opens_and_says_so(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "r", {"a": 1})
    writer.write(marks(A, 0, "x"))
    store = Store.open(tmp_path / "r")
    assert (store.complete, store.header, store.rows("mark")) == (False, {"a": 1}, 1)
    assert "cut short" in store.incomplete_reason
    writer.close()
    assert Store.open(tmp_path / "r").complete


@pytest.mark.parametrize(("refused", "told"), [(1, 1), (0, 0), (-1, 0), ("1", 0), (1 << 63, 0)])
def test_a_batch_that_no_frame_could_hold_is_told(tmp_path: Path, refused: Any, told: int) -> None:
    """It was the last of its place: no number is missing, and the END frame alone knows of it."""
    writer = Writer(tmp_path / "r", {})
    writer.write(marks(A, 0, "x"))
    writer.refused = refused
    assert writer.close()
    dropped = Recording.open(tmp_path / "r").coverage()["dropped"]
    assert dropped == ({"batch too large for a frame": told} if told else {})


def test_memory_limit_leaves_batches_out_and_says_so(tmp_path: Path) -> None:
    with Writer(tmp_path / "r", {}) as writer:
        for seq in range(100):
            writer.write(marks(A, seq, *["x"] * 100))
    store = Store.open(tmp_path / "r", max_memory=300_000)
    assert 0 < store.rows("mark") < 10_000
    assert not store.complete
    assert "max_memory" in store.incomplete_reason


@pytest.mark.parametrize("batch", [b"", b"\xc0", marks(A, 0)], ids=["none", "no map", "the same"])
def test_batches_take_memory_whatever_is_in_them(batch: bytes) -> None:
    """A file of 130 kB held 33 million of nothing, which took two minutes to look at."""
    store, many = Store(max_memory=100_000), 4_000
    raw = (len(batch).to_bytes(4, "little") + batch) * many
    store._take(Frame(BATCH, 0, 0, raw))
    assert store.full
    looked_at = store.skipped["damaged batch"] + sum(o.duplicates + 1 for o in store.origins)
    assert looked_at < 200


# -- batches that lie ---------------------------------------------------------------------

COLUMN = ["q", 0, bytes(8)]


@pytest.mark.parametrize(
    "batch",
    [
        b"",
        b"\xc1",
        b"\x80",
        msgpack.packb([1, 2]),
        b"\x91" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        marks(A, 0, "x")[:-1],
        marks(A, 0, "x") + b"\0",
        changed(marks(A, 0), v=2),
        changed(marks(A, 0), seq=-1),
        changed(marks(A, 0), seq=2**63),
        changed(marks(A, 0), t="now"),
        changed(marks(A, 0), place=["worker", "h", 1]),
        changed(marks(A, 0), place=["worker", "h", 2**64 - 1, "n", 0]),
        changed(marks(A, 0), strings={}),
        changed(marks(A, 0), strings=["", 5]),
        changed(marks(A, 0), strings=[""] * 300_000),
        changed(marks(A, 0), tables=[]),
        changed(marks(A, 0), tables={"mark": {}}),
        changed(marks(A, 0), tables={5: {}}),
    ],
)
def test_what_is_no_batch_is_skipped_and_counted(batch: bytes) -> None:
    store = Store()
    assert not store.add(batch)
    assert store.skipped == {"damaged batch": 1}
    assert store.places == []


@pytest.mark.parametrize(
    "columns",
    [
        {"sent": ["q", 0, bytes(7)]},
        {"sent": ["q", 0, bytes(16)]},
        {"sent": ["Z", 0, bytes(8)]},
        {"sent": ["d", 0, bytes(8)]},
        {"sent": ["B:peer", 0, bytes(1)]},
        {"sent": ["B:sent", 0, bytes(1)]},
        {},
    ],
)
def test_table_with_a_wrong_column_is_left_out_and_the_others_stay(columns: Any) -> None:
    store = Store()
    assert store.add(with_table("ping", [1, columns]))
    assert store.skipped == {"damaged table ping": 1}
    assert (store.rows("ping"), store.rows("mark")) == (0, 1)


@pytest.mark.parametrize("rows", [-1, 0, 2, 10**9, 2**40])
def test_table_that_claims_other_rows_than_it_has_is_left_out(rows: int) -> None:
    store = Store()
    store.add(with_table("ping", [rows, {"sent": COLUMN}]))
    assert store.rows("ping") == 0


@pytest.mark.parametrize("keys", [["a"], ["a", "b", "c"], "ab", b"\xdd\xff\xff\xff\xff"])
def test_key_column_with_other_keys_than_rows_is_left_out(keys: Any) -> None:
    two = ["q", 0, bytes(16)]
    for code in "kK":
        store = Store()
        column = [code, 0, keys if code == "k" else msgpack.packb(keys)]
        store.add(with_table("want", [2, {"run": two, "t": two, "key": column}]))
        assert store.rows("want") == 0


def test_unknown_table_is_ignored_and_counted() -> None:
    store = Store()
    assert store.add(with_table("nova", [1, {"t": COLUMN}]))
    assert store.skipped == {"unknown tables": 1}
    assert store.rows("mark") == 1


def test_unknown_column_is_ignored() -> None:
    columns = {**msgpack.unpackb(marks(A, 0, "x"))["tables"]["mark"][1], "colour": COLUMN}
    store = Store()
    store.add(changed(marks(A, 0, "x"), tables={"mark": [1, columns]}))
    assert "colour" not in store.table("mark")
    assert store.rows("mark") == 1


def test_column_that_an_older_version_lacks_is_filled_and_counted() -> None:
    store = Store()
    store.add(with_table("sample", [1, {"t": COLUMN}]))
    store.add(changed(marks(A, 1), tables={"want": [1, {"t": COLUMN}]}))
    assert np.isnan(store.table("sample")["value"]).tolist() == [True]
    assert store.keys(store.table("want")["key"]) == [""]
    assert store.skipped == {"missing columns of sample": 2, "missing columns of want": 2}


def test_texts_and_steps_that_do_not_exist_become_none_and_are_counted() -> None:
    rows = [(SPAN, step, 0, 0, 0, "label", 0) for step in (-1, 3, 41, 2**62)]
    numbers = [1, 2, -1, 2**62]
    store = Store()
    batch = msgpack.unpackb(pack(A, 0, 0, rows))
    label = b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)
    batch["tables"]["span"][1]["label"][2] = label
    store.add(msgpack.packb(batch))
    span = store.table("span")
    assert span["step"].tolist() == [0, 3, 0, 0]
    assert [store.strings[i] for i in span["label"]] == ["label", "", "", ""]
    assert store.clamped == 6


def test_numbers_that_are_none_pass_through() -> None:
    store = Store()
    store.add(pack(A, 0, 0, [(SAMPLE, -5, "x", float("nan"))], now=99))
    assert np.isnan(store.table("sample")["value"][0])
    assert store.table("sample")["t"][0] == -5
    assert store.origins[0].now == 0


def test_keys_that_cannot_be_decoded_have_a_text_all_the_same() -> None:
    deep, long = b"\x91" * 900 + b"\x01", msgpack.packb("y" * 10_000)
    packed = b"\x95" + deep + long + b"\xa2\xff\xfe" + b"\xc7\x01\x05\x00" + b"\x81\x90\x90"
    five = ["q", 0, bytes(40)]
    store = Store()
    store.add(with_table("want", [5, {"run": five, "t": five, "key": ["K", 0, packed]}]))
    texts = store.keys(range(5))
    assert all(len(text) <= 1024 for text in texts)
    assert texts[1].startswith("yyy")
    assert len(set(texts)) == 5


def test_opening_costs_little_python_stack(tmp_path: Path) -> None:
    """Deep nesting ends in a counted batch, also when the caller is deep down already."""
    store = Store()
    limit = sys.getrecursionlimit()
    deep = b"\x91" * (limit * 2) + b"\xc0"
    batch = marks(A, 0, "x")
    assert not store.add(batch.replace(b"\xa5drops\x80", b"\xa5drops" + deep))
    assert store.skipped["damaged batch"] == 1
    assert store.add(batch)
