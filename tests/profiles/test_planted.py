"""Planted profiles are read back: on a cluster, on the threads scheduler, and in the client."""

from __future__ import annotations

import asyncio
from typing import Any

import dask
import dask.array as da
import pytest
from dask.delayed import delayed
from distributed import Client

import clusters
import stageprof
from profiles import programs
from stageprof_collectors.profiles.flame import Flame
from stageprof_collectors.profiles.stats import stats
from stageprof_runtime.stage import STEPS

#: Shares are known within this.
POINTS = 0.10

pytestmark = [pytest.mark.alone, pytest.mark.flaky(reruns=2)]


def within(flame: Flame, name: str) -> float:
    """Seconds of the stacks that a function is on."""
    return sum(
        took.seconds
        for stack, took in flame.stacks.items()
        if any(frame.name.rpartition(".")[2] == name for frame in stack)
    )


def share(flame: Flame, one: str, *others: str) -> float:
    """What part of the time of some functions is that of the first."""
    mine = within(flame, one)
    return mine / (mine + sum(within(flame, other) for other in others))


def test_a_construction_shows_its_two_functions_at_three_to_one() -> None:
    with stageprof.profile(gil=False) as prof:
        programs.construction(30)
    flame = prof.recording.flame("construction")
    assert share(flame, "build_much", "build_little") == pytest.approx(0.75, abs=POINTS)
    # What the region's thread did is there, but for what lies outside Dask.
    seconds = float(prof.recording.stages()["wall_s"]["construction"])
    assert flame.seconds == pytest.approx(seconds, rel=0.15, abs=0.1)
    session = prof.recording.profile("construction")
    from pyinstrument.renderers import ConsoleRenderer

    shown = ConsoleRenderer(color=False, unicode=False).render(session)
    line = programs.build_much.__code__.co_firstlineno + 2
    assert f"programs.py:{line}" in shown


def test_counted_calls_of_a_construction_show_them_too() -> None:
    with stageprof.profile(deterministic=True, gil=False) as prof:
        programs.construction(10)
    found = stats(prof.recording, "construction")
    totals = {name: figures[3] for (_, _, name), figures in found.items()}
    much, little = totals["build_much"], totals["build_little"]
    assert much / (much + little) == pytest.approx(0.75, abs=POINTS)


async def spinning(rounds: int) -> None:
    for _ in range(rounds):
        programs.spin(0.01)
        await asyncio.sleep(0)


def test_the_profile_of_an_async_region_is_that_of_its_own_task() -> None:
    async def region() -> stageprof.Recording:
        async with stageprof.profile(gil=False) as prof:
            other = asyncio.ensure_future(spinning(40))
            for _ in range(40):
                programs.build_much(60)
                await asyncio.sleep(0)
            await other
        return prof.recording

    flame = programs.awaited(region()).flame()
    assert within(flame, "build_much") > 0.1
    assert within(flame, "spin") < 0.1 * within(flame, "build_much")
    assert all(stack[0].name.endswith("region") for stack in flame.stacks)


def tasks(n: int = 50, seconds: float = 0.06) -> list[Any]:
    return [delayed(programs.task)(seconds + i * 1e-6) for i in range(n)]


def shows_its_parts(recording: stageprof.Recording) -> None:
    flame = recording.flame("execution", prefix="task")
    assert share(flame, "heavy", "light") == pytest.approx(0.7, abs=POINTS)
    assert all(stack[0].name == "task" for stack in flame.stacks)
    busy = recording.tasks()
    ran = float(busy[busy["prefix"] == "task"]["duration_s"].sum())
    assert flame.seconds == pytest.approx(ran, rel=0.2)
    assert flame.shares.waiting < 0.3


def test_tasks_of_the_threads_scheduler_show_their_functions() -> None:
    with (
        dask.config.set(scheduler="threads", num_workers=2),
        stageprof.profile(gil=False) as prof,
    ):
        dask.compute(tasks(40))
        dask.compute([delayed(programs.nap)(0.1 + i * 1e-6) for i in range(20)])
    shows_its_parts(prof.recording)
    assert prof.recording.flame(prefix="nap").shares.waiting > 0.6


def test_the_loop_of_a_local_scheduler_is_seen() -> None:
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        dask.compute([delayed(programs.identity)(i) for i in range(6000)])
    table = prof.recording.store.table("flame")
    steps = {STEPS[step][1] for step in table["step"].tolist()}
    assert "local.loop" in steps
    flame = prof.recording.flame("scheduling")
    assert within(flame, "get_async") > 0.05


@pytest.mark.cluster
def test_tasks_and_the_scheduler_of_a_cluster_are_seen() -> None:
    with clusters.local(2) as client, stageprof.profile(gil=False) as prof:
        client.gather(client.compute(tasks()))
        client.gather(client.map(programs.nap, [0.1] * 20, pure=False))
        x = da.ones((2000, 2000), chunks=(40, 40))
        client.compute((x + x.T).sum()).result()
    recording = prof.recording
    shows_its_parts(recording)
    assert recording.flame(prefix="nap").shares.waiting > 0.6
    roles = {
        (recording.store.places[place].role, STEPS[step][1])
        for place, step in zip(
            *(recording.store.table("flame")[name].tolist() for name in ("place", "step")),
            strict=True,
        )
    }
    scheduler = {step for role, step in roles if role == "scheduler"}
    assert scheduler >= {"order", "transition"}, scheduler
    assert scheduler & {"materialize", "lowlevel", "graph.load", "state"}
    worker = next(place for place in recording.store.places if place.role == "worker")
    one = recording.flame("execution", worker=worker.name)
    assert 0 < one.seconds < recording.flame("execution").seconds
    assert nothing_unknown(recording)


@pytest.mark.cluster
@pytest.mark.nightly
def test_a_scheduler_of_its_own_process_is_seen() -> None:
    with clusters.separate(1) as client, stageprof.profile(gil=False) as prof:
        x = da.ones((2000, 2000), chunks=(20, 20))
        client.compute((x + x.T).sum()).result()
    roles = {prof.recording.store.places[p].role for p in seen_places(prof.recording)}
    assert "scheduler" in roles


def seen_places(recording: stageprof.Recording) -> set[int]:
    return set(recording.store.table("flame")["place"].tolist())


def nothing_unknown(recording: stageprof.Recording) -> bool:
    """Every look is at a place that its process has told of."""
    table = recording.store.table("flame")
    return bool((recording.nodes.of(table["place"], table["node"]) > 0).all())


@pytest.mark.cluster
def test_two_recordings_at_once_both_have_whole_stacks() -> None:
    with clusters.local(1) as client, stageprof.profile(gil=False) as outer:
        client.gather(client.compute(tasks(10)))
        with stageprof.profile(gil=False) as inner:
            client.gather(client.compute(tasks(15)))
    for prof in (outer, inner):
        flame = prof.recording.flame(prefix="task")
        assert flame
        assert nothing_unknown(prof.recording)
        assert all(stack[0].name == "task" for stack in flame.stacks)


def test_an_idle_scheduler_is_not_looked_at(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        client.submit(programs.nap, 1.5).result()
    places = [i for i, p in enumerate(prof.recording.store.places) if p.role == "scheduler"]
    table = prof.recording.store.table("flame")
    mine = [place in places for place in table["place"].tolist()]
    seconds = float(table["total"][mine].sum()) / 1e9
    assert seconds < 0.5


@pytest.fixture
def client() -> Any:
    with clusters.local(1) as found:
        yield found
