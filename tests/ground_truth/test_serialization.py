"""Delays planted in pickling are read back as serialization, hop by hop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client

import planted
from truth import Reading, appears_in, in_steps, read_back

DELAY = 0.4


def embedded(log: str, delay: float) -> None:
    """An object in the graph travels client -> scheduler -> worker."""
    thing = planted.Slow(log, delay, delay)
    dask.delayed(planted.ignore)(thing).compute()


def returned(log: str, delay: float) -> None:
    """A task's result travels worker -> client."""
    dask.delayed(planted.make_slow)(log, delay, delay).compute()


def hops(reading: Reading, scheduler: int) -> dict[str, float]:
    """Seconds noted at each hop."""
    client = os.getpid()

    def at(what: str, where: Callable[[dict[str, Any]], bool]) -> float:
        return reading.seconds(what, where)

    def on_client(t: dict[str, Any]) -> bool:
        return bool(t["pid"] == client and t["main"])

    def on_scheduler(t: dict[str, Any]) -> bool:
        return bool(t["pid"] == scheduler and not on_client(t))

    return {
        "graph.dump": at("dump", on_client),
        "graph.load": at("load", on_scheduler),
        "task.dump": at("dump", on_scheduler),
        "task.load": at("load", lambda t: t["pid"] not in (client, scheduler)),
    }


@pytest.mark.smoke
def test_slow_pickling_is_split_by_hop(cluster: Client, tmp_path: Path) -> None:
    """Client dump, scheduler load, scheduler dump, worker load: each has its own seconds."""
    scheduler = cluster.run_on_scheduler(os.getpid)
    reading = read_back(embedded, DELAY, tmp_path)
    expected = hops(reading, scheduler)
    assert min(expected.values()) >= DELAY
    appears_in(reading, {"serialization": sum(expected.values())})
    in_steps(reading, expected)


def test_a_slow_result_is_dumped_at_the_worker_and_loaded_at_the_client(
    cluster: Client, tmp_path: Path
) -> None:
    """result.dump and result.load have their own seconds."""
    reading = read_back(returned, DELAY, tmp_path)
    client = os.getpid()
    dump = reading.seconds("dump", lambda t: t["pid"] != client)
    load = reading.seconds("load", lambda t: t["pid"] == client)
    assert dump >= DELAY
    assert load >= DELAY
    appears_in(reading, {"serialization": dump + load})
    in_steps(reading, {"result.dump": dump, "result.load": load})


def test_slow_pickling_on_the_process_scheduler(tmp_path: Path) -> None:
    """Task dump and load, result dump and load, between the client and its processes."""
    client = os.getpid()

    def program(log: str, delay: float) -> None:
        thing = planted.Slow(log, delay, delay)
        dask.delayed(planted.identity)(thing).compute(scheduler="processes", num_workers=1)

    reading = read_back(program, DELAY, tmp_path)
    dumped, loaded = reading.seconds("dump"), reading.seconds("load")
    appears_in(reading, {"serialization": dumped + loaded})
    here = {
        "task.dump": ("dump", lambda t: t["pid"] == client),
        "task.load": ("load", lambda t: t["pid"] != client),
        "result.dump": ("dump", lambda t: t["pid"] != client),
        "result.load": ("load", lambda t: t["pid"] == client),
    }
    for step, (what, where) in here.items():
        seconds = reading.seconds(what, where)
        assert seconds >= DELAY
        in_steps(reading, {step: seconds})
