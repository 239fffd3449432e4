"""What is told of scattered data, and what looking at them may take."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from distributed import Client

import clusters
import stageprof
from stageprof_runtime.budget import FLOOR_NS
from stageprof_runtime.event import SCATTER
from stageprof_runtime.probes.scatters import Scatters


class Rows(list[Any]):
    """Keeps the rows that are emitted."""

    def row(self, _role: str, row: Any) -> None:
        self.append(row)


def scatter(_client: object, data: object, **_: object) -> object:
    return data


def test_a_large_object_is_told_by_its_variable() -> None:
    rows, table = Rows(), np.zeros(1_000_000)
    assert Scatters(rows).wrap(scatter)(None, table) is table  # type: ignore[arg-type]
    [(event, _, _, kind, variable, *_, nbytes)] = rows
    assert (event, kind, variable, nbytes) == (SCATTER, "numpy.ndarray", "table", table.nbytes)


def test_when_looking_has_taken_its_time_data_are_scattered_unseen() -> None:
    rows, table = Rows(), np.zeros(1_000_000)
    scatters = Scatters(rows)  # type: ignore[arg-type]
    scatters._budget.spend(100 * FLOOR_NS)
    assert scatters.wrap(scatter)(None, table) is table
    assert rows == []


class Key:
    """A future of Dask's, of which only the key is known."""

    def __init__(self, key: str) -> None:
        self.key = key


def numbers(*data: object, keys: Any = None, **kwargs: Any) -> list[int]:
    """By which numbers are told what is scattered in one call each."""
    rows, answers = Rows(), iter(keys or data)
    scatters = Scatters(rows)  # type: ignore[arg-type]
    told = scatters.wrap(lambda *_, **__: next(answers))
    for each in data:
        told(None, each, **kwargs)
    return [number for _, _, number, *_ in rows]


def test_pieces_of_one_array_are_not_one_object() -> None:
    table = np.arange(1_000_000.0)
    first, *rest = numbers([*np.array_split(table, 4)])
    assert len({first, *rest}) == 4
    first, again, whole = numbers(table[:500_000], table[:500_000], table)
    assert first == again != whole


@pytest.mark.parametrize("kwargs", [{}, {"hash": False}])
def test_an_array_that_was_changed_in_between_is_another(kwargs: dict[str, Any]) -> None:
    table, rows = np.arange(1_000_000.0), Rows()
    told = Scatters(rows).wrap(scatter)  # type: ignore[arg-type]
    for _ in range(2):
        told(None, table, **kwargs)
        told(None, table, **kwargs)
        table *= 0.9
    a, b, c, d = (number for _, _, number, *_ in rows)
    assert a == b != c == d


def test_dasks_key_of_a_content_tells_more_than_a_sample() -> None:
    """One element that is not among those looked at; and what is no array at all."""
    table, text = np.arange(1_000_000.0), "x" * 1_000_000
    keys = [Key("a"), Key("b"), Key("b")]
    for value in (table, text):
        a, b, c = numbers(value, value, value, keys=keys)
        assert a != b == c
        first, second, third = numbers(value, value, value, keys=keys, hash=False)
        assert first == second == third
        first, second = numbers({"mine": value}, {"mine": value})
        assert first == second


@pytest.mark.cluster
def test_what_a_coroutine_scatters_is_told_too() -> None:
    table = np.arange(1_000_000.0)

    async def main(address: str) -> float:
        async with Client(address, asynchronous=True) as client:
            there: Any = await client.scatter(table)
            total: Any = await client.submit(np.sum, there)
            return float(total)

    with clusters.separate(1) as client, stageprof.profile() as prof:
        address = client.scheduler_info()["address"]
        assert asyncio.run(main(address)) == table.sum()
    told = prof.recording.store.table("scatter")
    assert [prof.recording.store.strings[i] for i in told["variable"]] == ["table"]
    assert told["nbytes"].tolist() == [table.nbytes]
