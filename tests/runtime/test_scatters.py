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


def scatter(_client: object, data: object) -> object:
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
