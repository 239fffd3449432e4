"""Columns: every int64 survives narrowing, and narrow columns are narrow."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import EXAMPLES
from stageprof_collectors.storage import columns as columns_module
from stageprof_collectors.storage.columns import narrow, narrowed, widen
from stageprof_collectors.storage.key import MAX_KEY, text_of_key, unpack_keys
from stageprof_collectors.storage.shipment import COARSE, UNIT, Part, decode
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import DamagedRecording
from stageprof_runtime.event import FIELDS, FINISH, KEYS, RUN, SAMPLE, TABLES, TEXT, WANT, Place

PLACE = Place("worker", "h", 1, "tcp://h:1", 0)
INT64 = st.integers(-(2**63), 2**63 - 1)
#: Near each other, far apart, growing, at the borders of the codes
VALUES = st.one_of(
    INT64,
    st.integers(0, 300),
    st.integers(-(2**24), 2**24),
    st.sampled_from([0, 2**8, 2**16, 2**24, 2**32, 2**63 - 1]).map(lambda v: v - 1),
)
KEY = st.recursive(
    st.one_of(st.text(), st.binary(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.none()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


def _field(name: str) -> st.SearchStrategy[object]:
    if name in KEYS:
        return KEY
    if name in TEXT:
        return st.text(max_size=5)
    return st.floats(allow_nan=False) if name == "value" else VALUES


def rows_of(table: int) -> st.SearchStrategy[list[tuple[object, ...]]]:
    fields = [_field(name) for name in FIELDS[table]]
    return st.lists(st.tuples(st.just(table), *fields), min_size=1, max_size=20)


def wide(batch: bytes, table: int) -> dict[str, list[object]]:
    shipment = decode(batch)
    assert not shipment.skipped
    name = TABLES[table]
    found = {f: list(v) for f, v in widen(name, [shipment.parts[name]]).items()}
    texts = msgpack.unpackb(shipment.strings, unicode_errors="surrogatepass")
    return {f: [texts[i] for i in v] if f in TEXT else v for f, v in found.items()}


@pytest.mark.parametrize("table", FIELDS)
# of each of two dozen tables, which share their code
@settings(max_examples=EXAMPLES // 10, deadline=None)
@given(data=st.data())
def test_every_row_of_every_table_survives(table: int, data: st.DataObject) -> None:
    rows = data.draw(rows_of(table))
    narrowed = narrow(pack(PLACE, 3, 4, rows))
    found = wide(narrowed, table)
    for n, field in enumerate(FIELDS[table], start=1):
        if field not in KEYS:
            assert found[field] == [row[n] for row in rows]
    assert narrow(narrowed) == narrowed


@pytest.mark.parametrize("table", FIELDS)
@settings(max_examples=EXAMPLES // 10, deadline=None)
@given(data=st.data())
def test_few_rows_are_narrowed_to_the_same_bytes_as_many(table: int, data: st.DataObject) -> None:
    batch = pack(PLACE, 3, 4, data.draw(rows_of(table)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "FEW", 0)
        by_numpy = narrow(batch)
    assert narrow(batch) == by_numpy


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(parts=st.lists(st.lists(VALUES, min_size=1, max_size=9), min_size=1, max_size=9))
def test_batches_of_different_codes_join_in_order(parts: list[list[int]]) -> None:
    packed = [pack(PLACE, 0, 0, [(RUN, *(v + 0 for _ in range(7)), "w") for v in part])
              for part in parts]  # fmt: skip
    tables = [decode(narrow(batch)).parts["run"] for batch in packed]

    columns = widen("run", tables)

    expected = [value for part in parts for value in part]
    for field in ("run", "received", "ready", "start", "stop", "thread", "cpu"):
        assert columns[field].tolist() == expected


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([7, 7, 7], "B"),
        ([-5, 250], "B"),
        ([0, 256], "H"),
        ([10**15, 10**15 + 65535], "H"),
        ([0, 65536], "T"),
        ([0, 2**24], "I"),
        ([0, 2**32], "q"),
        ([n * 100 for n in range(20)], "b"),
        ([n * 10_000 for n in range(20)], "h"),
        ([n * 1_000_000 for n in range(20)], "t"),
        ([n * 1_000_000_000 for n in range(20)], "i"),
        ([-(2**63), 2**63 - 1], "b"),  # the step wraps to -1
    ],
)
def test_column_takes_the_narrowest_code(values: list[int], code: str) -> None:
    batch = narrow(pack(PLACE, 0, 0, [(FINISH, 0, 0, 0, v, "") for v in values]))
    part = decode(batch).parts["finish"]
    assert part.columns["nbytes"][0] == code
    assert widen("finish", [part])["nbytes"].tolist() == values


def test_columns_near_another_are_stored_relative_to_it() -> None:
    rng = np.random.default_rng(0)
    stops = np.cumsum(rng.integers(0, 10**9, 50)) + 10**15
    rows = [(RUN, i, s - 90, s - 60, s - 50, s, 1, 50, "w") for i, s in enumerate(stops.tolist())]
    part = decode(narrow(pack(PLACE, 0, 0, rows))).parts["run"]
    codes = {field: column[0] for field, column in part.columns.items()}
    assert codes["start"] == "B:stop"
    assert codes["ready"] == "B:start"
    assert codes["received"] == "B:ready"
    assert widen("run", [part])["received"].tolist() == (stops - 90).tolist()


@pytest.mark.parametrize("table", [n for n, name in TABLES.items() if name in COARSE])
@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(data=st.data())
def test_coarse_instants_are_rounded_down_lengths_to_the_nearest_and_all_else_survives(
    table: int, data: st.DataObject
) -> None:
    rows = data.draw(rows_of(table))
    batch = narrowed(decode(pack(PLACE, 3, 4, rows)), coarse=True)
    found = wide(batch, table)
    for n, field in enumerate(FIELDS[table], start=1):
        exact: list[Any] = [row[n] for row in rows]
        if field in COARSE[TABLES[table]] and min(exact) >= 0:
            half = 512 if field == "cpu" and max(exact) < 2**62 else 0
            exact = [value + half >> UNIT << UNIT for value in exact]
        assert field in KEYS or found[field] == exact
    assert narrowed(decode(batch), coarse=True) == batch


def test_coarse_runs_take_a_quarter_less_room() -> None:
    rng = np.random.default_rng(0)
    stops = 10**15 + np.cumsum(rng.integers(0, 4 * 10**7, 100))
    took = rng.integers(10**7, 3 * 10**7, 100)
    runs = enumerate(zip(stops.tolist(), took.tolist(), strict=True))
    rows = [(RUN, i, s - n - 90_000, s - n - 80_000, s - n, s, 1, n, "w") for i, (s, n) in runs]
    shipped = decode(pack(PLACE, 0, 0, rows))
    exact, coarse = (decode(narrowed(shipped, coarse=c)).parts["run"] for c in (False, True))

    assert {f: coarse.columns[f][0] for f in ("stop", "start", "ready")} == {
        "stop": "T*",
        "start": "H*:stop",
        "ready": "B*:start",
    }
    assert size_of(coarse) < 0.75 * size_of(exact)


def size_of(part: Part) -> int:
    return sum(len(column[2]) for column in part.columns.values())


def test_wide_column_of_one_batch_is_no_copy() -> None:
    data = np.arange(5, dtype="<i8").tobytes()
    columns = widen("finish", [Part(5, {"run": ("q", 0, data)})])
    assert columns["run"].base is not None
    assert columns["run"].tolist() == [0, 1, 2, 3, 4]


def test_not_a_number_and_infinity_survive() -> None:
    rows = [(SAMPLE, 0, "cpu", v) for v in (float("nan"), float("inf"), -0.0)]
    part = decode(narrow(pack(PLACE, 0, 0, rows))).parts["sample"]
    assert [str(v) for v in widen("sample", [part])["value"].tolist()] == ["nan", "inf", "-0.0"]


def test_oversized_keys_are_cut_and_told_apart_by_a_hash() -> None:
    long = [f"{'é' * 2000}{i}" for i in range(2)]
    keys = [*long, (long[0], 1), long[0], "short"]
    part = decode(narrow(pack(PLACE, 0, 0, [(WANT, 0, 0, k) for k in keys]))).parts["want"]

    found = [str(key) for key in unpack_keys(part.columns["key"][2])]

    assert len(set(found)) == 4
    assert found[0] == found[3]
    assert found[4] == "short"
    assert all(len(key.encode()) <= MAX_KEY for key in found)


def test_narrowing_what_is_no_batch_says_so() -> None:
    with pytest.raises(DamagedRecording):
        narrow(b"\x93abc")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("x-1", "x-1"),
        (1, "1"),
        ("1", "'1'"),
        (-1.5, "-1.5"),
        ("-1.5e-3", "'-1.5e-3'"),
        ("None", "'None'"),
        (None, "None"),
        ("nan", "'nan'"),
        (True, "True"),
        (("a", 1, ("b",)), "('a', 1, ('b',))"),
        (["a", 1, ["b"]], "('a', 1, ('b',))"),
        ("('a', 1)", "\"('a', 1)\""),
        (b"b", "b'b'"),
        ("b'b'", "\"b'b'\""),
        ("\ud800", "\\ud800"),
        ("1-abc", "1-abc"),
        ("(open", "(open"),
        ("", ""),
    ],
)
def test_key_has_a_text_that_tells_its_type(key: object, text: str) -> None:
    assert text_of_key(key) == text


@given(a=KEY, b=KEY)
def test_texts_of_short_keys_differ_if_the_keys_do(a: object, b: object) -> None:
    short = len(repr((a, b))) < MAX_KEY and "\\" not in repr((a, b))
    if short and text_of_key(a) == text_of_key(b):
        assert repr(a) == repr(b)
