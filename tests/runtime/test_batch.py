"""Batches: what probes emit goes in and comes out the same; what does not fit is counted."""

from __future__ import annotations

from array import array
from typing import Any

import msgpack
import pytest

from stageprof_runtime.batch import pack
from stageprof_runtime.event import ARRIVE, FIELDS, LINE, SAMPLE, SPAN, TABLES, TEXT, Place
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import ROWS, Shipper

PLACE = Place("worker", "host", 1, "tcp://1.2.3.4:5", 77)


def ignore(batch: bytes) -> None:
    """Where these batches go."""


def unpacked(batch: bytes) -> dict[str, Any]:
    """A batch as the map that its module's docstring describes."""
    found: dict[str, Any] = msgpack.unpackb(batch, unicode_errors="surrogatepass", use_list=True)
    return found


def rows(batch: dict[str, Any], table: int) -> list[tuple[Any, ...]]:
    """The rows of one table, read back."""
    columns = batch["tables"][TABLES[table]][1]
    values = [_values(field, columns[field], batch["strings"]) for field in FIELDS[table]]
    return list(zip(*values, strict=True))


def _values(field: str, column: list[Any], strings: list[str]) -> list[Any]:
    code, _, data = column
    if code == "k":
        return list(data)
    numbers = array(code, data).tolist()
    return [strings[n] for n in numbers] if field in TEXT else numbers


def test_a_batch_holds_what_was_emitted() -> None:
    emitted = [
        (SPAN, 3, 10, 20, 1, "a", 5),
        (SAMPLE, 11, "cpu", 0.5),
        (SPAN, 4, 30, 2**62, 1, "a", -1),
        (LINE, "x", "f.py", 3, 1),
    ]
    batch = unpacked(pack(PLACE, 4, 99, emitted, drops={"full": 2}, cost={"h": [1, 2]}, now=3))
    assert batch["place"] == list(PLACE)
    assert (batch["seq"], batch["t"], batch["now"]) == (4, 99, 3)
    assert (batch["drops"], batch["cost"]) == ({"full": 2}, {"h": [1, 2]})
    for table in (SPAN, SAMPLE, LINE):
        assert rows(batch, table) == [row[1:] for row in emitted if row[0] == table]


@pytest.mark.parametrize(
    "key",
    ["x", ("x", 1, (2, "y")), 7, b"\x00\xff", 1.5, "\ud800", "a\x00\x1b[31m", "k" * 1_000_000],
    ids=["text", "tuple", "int", "bytes", "float", "surrogate", "control", "megabyte"],
)
def test_every_key_that_dask_takes_can_be_packed(key: object) -> None:
    (packed,) = rows(unpacked(pack(PLACE, 0, 0, [(ARRIVE, 1, key)])), ARRIVE)
    assert packed == (1, _listed(key))


def _listed(key: object) -> object:
    return [_listed(part) for part in key] if isinstance(key, tuple) else key


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_key_of_an_odd_type_is_named_by_its_type() -> None:
    assert rows(unpacked(pack(PLACE, 0, 0, [(ARRIVE, 1, Hostile())])), ARRIVE) == [(1, "<Hostile>")]


def test_of_rows_that_cannot_be_packed_only_these_are_lost_and_that_is_said_at_once() -> None:
    shipper = Shipper(PLACE, Ring(), ignore)
    for start in (1, 2**80, 2, "no number", 3):
        shipper.ring.emit((SPAN, 1, start, 0, 0, "", 0))
    (batch,) = map(unpacked, shipper.drain())
    assert [row[1] for row in rows(batch, SPAN)] == [1, 2, 3]
    (told,) = batch["drops"].items()
    assert told in {("not packable: OverflowError", 2), ("not packable: TypeError", 2)}
    shipper.ring.emit((SPAN, 1, 4, 0, 0, "", 0))
    (batch,) = map(unpacked, shipper.drain())
    assert batch["drops"] == dict([told])
    assert batch["seq"] == 1


def test_sizes_may_be_floats_as_users_have_them() -> None:
    """`sizeof` may be registered for a type of theirs; Dask takes what it says."""
    packed = pack(PLACE, 0, 0, [(SPAN, 1, 2, 3, 4, "", 1.5e3), (SPAN, 1, 2, 3, 4, "", 7)])
    assert [row[-1] for row in rows(unpacked(packed), SPAN)] == [1500, 7]


def test_drops_of_the_ring_travel_with_the_batch() -> None:
    shipper = Shipper(PLACE, Ring(10), ignore)
    for i in range(25):
        shipper.ring.emit((SPAN, 1, i, i, 0, "", 0))
    (batch,) = map(unpacked, shipper.drain())
    assert batch["drops"] == {"ring full": 15}
    assert len(rows(batch, SPAN)) == 10


def test_many_rows_make_several_batches_numbered_without_gaps() -> None:
    shipper = Shipper(PLACE, Ring(), ignore)
    for i in range(2 * ROWS + 1):
        shipper.ring.emit((SPAN, 1, i, i, 0, "", 0))
    batches = [unpacked(batch) for batch in shipper.drain()]
    assert [batch["seq"] for batch in batches] == [0, 1, 2]
    assert sum(len(rows(batch, SPAN)) for batch in batches) == 2 * ROWS + 1


def test_an_idle_place_still_says_that_it_is_there() -> None:
    shipper = Shipper(PLACE, Ring(), ignore)
    (batch,) = map(unpacked, shipper.drain())
    assert batch["tables"] == {}
