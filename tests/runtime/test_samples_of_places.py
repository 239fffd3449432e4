"""Samples: every process says twice a second how much it uses of what."""

from __future__ import annotations

import operator
from types import SimpleNamespace

import dask
import pytest
from dask import delayed

import clusters
import stageprof
from stageprof_runtime import system

MACHINE = {
    "cpu.percent",
    "memory.process",
    "network.read_bps",
    "network.write_bps",
    "disk.read_bps",
    "disk.write_bps",
}
LOOP = {"loop.lag_s", "gil.contention"}
WORKER = {
    "memory.managed",
    "memory.unmanaged",
    "memory.spilled",
    "tasks.executing",
    "tasks.ready",
}


def long_enough(seconds: float) -> float:
    import time

    time.sleep(seconds)
    return seconds


class Monitor:
    """Dask's, of a process of which each number is known."""

    def recent(self) -> dict[str, float]:
        net, disk = "host_net_io", "host_disk_io"
        rates = {f"{net}.read_bps": 3, f"{net}.write_bps": 4, f"{disk}.read_bps": 5}
        return {"cpu": 1, "memory": 1000, "time": 9, **rates, f"{disk}.write_bps": 6}


def test_a_sample_is_of_what_it_is_called() -> None:
    """Reading and writing, network and disk, in memory and on disk, running and ready."""
    worker = SimpleNamespace(
        monitor=Monitor(),
        data=SimpleNamespace(
            fast=SimpleNamespace(total_weight=300),
            spilled_total=SimpleNamespace(memory=50, disk=40),
        ),
        state=SimpleNamespace(executing_count=2, ready=range(7), nbytes=350),
    )
    assert system.monitored(worker) == {
        "cpu.percent": 1,
        "memory.process": 1000,
        "network.read_bps": 3,
        "network.write_bps": 4,
        "disk.read_bps": 5,
        "disk.write_bps": 6,
    }
    assert system.worker_memory(worker) == {
        "memory.managed": 300,
        "memory.unmanaged": 700,
        "memory.spilled": 40,
        "tasks.executing": 2,
        "tasks.ready": 7,
    }


@pytest.mark.smoke
@pytest.mark.cluster
def test_scheduler_workers_and_client_are_sampled_every_half_second() -> None:
    with clusters.separate(2) as client, stageprof.profile() as prof:
        client.gather(client.map(long_enough, [2.2, 2.2], pure=False))
    samples = prof.recording.samples()
    expected = {
        "scheduler": MACHINE | LOOP,
        "worker": MACHINE | LOOP | WORKER,
        "client": MACHINE | LOOP,
    }
    places = samples.groupby("role")["place"].nunique().to_dict()
    assert places == {"client": 1, "scheduler": 1, "worker": 2}
    for (role, _place), mine in samples.groupby(["role", "place"]):
        assert expected[str(role)] <= set(mine["name"]), (
            role,
            expected[str(role)] - set(mine["name"]),
        )
        times = mine[mine["name"] == "memory.process"]["t_s"]
        assert len(times) >= 3
        assert times.diff().dropna().median() == pytest.approx(system.EVERY_S, abs=0.25)
    memory = samples[samples["name"] == "memory.process"]
    assert memory["value"].min() > 10e6
    lag = samples[samples["name"] == "loop.lag_s"]
    assert (lag["value"] >= 0).all()


@pytest.mark.cluster
def test_what_a_worker_holds_is_its_managed_memory() -> None:
    with clusters.separate(1) as client, stageprof.profile() as prof:
        held = client.submit(operator.mul, b"x", 50_000_000)
        client.submit(long_enough, 1.2, pure=False).result()
        assert held.status == "finished"
    samples = prof.recording.samples().set_index("name")["value"]
    assert samples["memory.managed"].max() == pytest.approx(50e6, rel=0.01)
    assert samples["memory.unmanaged"].min() > 10e6


def test_a_process_without_a_cluster_is_sampled_too() -> None:
    with dask.config.set(scheduler="threads"), stageprof.profile() as prof:
        delayed(long_enough)(1.2).compute()
    samples = prof.recording.samples()
    assert set(samples["role"]) == {"client"}
    assert set(samples["name"]) >= MACHINE
    assert (samples["name"] == "memory.process").sum() >= 2
