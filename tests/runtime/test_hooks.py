"""F1: whatever our own code raises, wherever Dask or the user's code calls it, the run goes on.

Errors are planted below the guards, in the functions that do the work of each hook and wrapper.
Scheduler, workers and client are in this process, so that one plant reaches all of them.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from types import CellType
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import pandas as pd
import pytest
from dask import delayed
from dask.utils import SerializableLock
from distributed import Client, LocalCluster, as_completed

import clusters
import stageprof
from stageprof_runtime import (
    awaited,
    carried,
    context,
    decisions,
    graphs,
    guard,
    heir,
    made,
    patch,
    process,
    rounds,
    sampler,
    scheduler_plugin,
    system,
    tick,
)
from stageprof_runtime.computation import Computation
from stageprof_runtime.decisions import Decisions
from stageprof_runtime.fetched import Fetched
from stageprof_runtime.heir import Heir
from stageprof_runtime.heldup import HeldUp
from stageprof_runtime.membership import Membership
from stageprof_runtime.memberships import Memberships
from stageprof_runtime.ongoing import Ongoing
from stageprof_runtime.outbox import Outbox
from stageprof_runtime.probes import (
    exchanges,
    execution,
    imports,
    layers,
    local,
    locks,
    memory,
    objects,
    optimization,
    scatters,
    scheduling,
    serialization,
    shares,
    sources,
    spill,
    stacks,
    waiting,
)
from stageprof_runtime.relay import Relay
from stageprof_runtime.ring import Ring
from stageprof_runtime.scheduler_plugin import SchedulerProbe
from stageprof_runtime.session import Session
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.underway import Waits
from stageprof_runtime.unrunnable import Unrunnable
from stageprof_runtime.worker_plugin import WorkerProbe

ERRORS = (
    RuntimeError,
    TypeError,
    MemoryError,
    RecursionError,
    asyncio.CancelledError,
    SystemExit,
    KeyboardInterrupt,
)

#: Where an error is planted: what every event passes through, and each hook's own work.
EVERYWHERE = [
    (Ring, "emit"),
    (Ring, "span"),
    (Ring, "take"),
    (Shipper, "_pack"),
    (Shipper, "_report_hooks"),
    (process._Emitter, "row"),
    (process._Emitter, "span"),
    (context.within, "__enter__"),
    (sampler, "look"),
    (sampler.Sampler, "see"),
    (layers, "user_line"),
    (layers, "_origin"),
    (made.Lines, "made"),
    (made.Lines, "again"),
    (optimization, "within"),
    (scheduling, "role"),
    (imports, "_emit"),
    (waiting, "user_line"),
    (rounds, "count"),
    (waiting, "lane_number"),
    (Session, "_sample"),
    (Memberships, "ask_loops"),
    (Session, "_begin_region"),
    (Session, "_take_tails"),
    (Waits, "tell"),
    (objects.Objects, "_see"),
    (stacks, "begin"),
    (stacks, "end"),
]
CLUSTER = [
    (Heir, "wait"),
    (heir, "inherited"),
    (SchedulerProbe, "_note"),
    (SchedulerProbe, "_estimate"),
    (graphs.Graphs, "_run_of"),
    (decisions, "taken"),
    (SchedulerProbe, "_seen"),
    (Relay, "send"),
    (Relay, "ready"),
    (SchedulerProbe, "_sample"),
    (Relay, "drain_workers"),
    (Relay, "_drain_one"),
    (SchedulerProbe, "_unregister"),
    (decisions, "status_of"),
    (WorkerProbe, "_note"),
    (WorkerProbe, "_begin"),
    (WorkerProbe, "_hello"),
    (WorkerProbe, "_ready"),
    (Outbox, "send"),
    (Outbox, "_send_all"),
    (WorkerProbe, "_sample"),
    (WorkerProbe, "_ping"),
    (WorkerProbe, "_inherit"),
    (HeldUp, "tell"),
    (Ongoing, "tell"),
    (Ongoing, "end"),
    (Unrunnable, "tell"),
    (Membership, "ping"),
    (Membership, "_wait_for"),
    (system, "sample"),
    (scheduler_plugin, "sample_host"),
    (execution, "finished"),
    (execution, "run_id"),
    (serialization, "_hop"),
    (shares, "loading"),
    (carried.Dumping, "keys"),
    (carried.Loading, "emit"),
    (carried.Loading, "task"),
    (serialization, "tell"),
    (carried, "tell"),
    (tick.Ticks, "note"),
    (shares, "share"),
    (shares, "_nbytes"),
    (memory, "managed"),
    (stacks, "clock_of"),
    (scheduling, "_stolen"),
    (serialization, "_what"),
    (serialization, "_peer"),
    (serialization, "_nbytes"),
    (waiting, "_block"),
    (awaited, "keys"),
    (Fetched, "note"),
    (Fetched, "call"),
    (scatters.Scatters, "_seen"),
    (scatters.Scatters, "_tell"),
    (waiting, "_is_client"),
    (spill, "within"),
    (sources, "_written"),
    (sources, "_left_out"),
]
LOCAL = [
    (local, "_hand_over"),
    (rounds, "count"),
    (Computation, "_assigned"),
    (Computation, "_ran"),
    (Computation, "_brought"),
    (Computation, "_rows"),
    (Computation, "_row"),
]


def _cell(function: Any, name: str) -> CellType:
    """Where a function keeps a variable of the function that made it."""
    cell: CellType = function.__closure__[function.__code__.co_freevars.index(name)]
    return cell


def _hooks() -> list[tuple[Any, str]]:
    """Every method behind `guard.hook`: what Dask calls less often than for each task."""
    code = guard.hook(lambda: None).__code__
    owners = (Decisions, SchedulerProbe, WorkerProbe, Relay, Session, Memberships, Membership)
    places = [(owner, name) for owner in owners for name in vars(owner)]
    return [(o, n) for o, n in places if getattr(vars(o)[n], "__code__", None) is code]


HOOKS = _hooks()
#: Of all these what a short run may end before.
TWICE_A_SECOND = {
    (Heir, "wait"),
    (Session, "_sample"),
    (Waits, "tell"),
    (HeldUp, "tell"),
    (Unrunnable, "tell"),
    (SchedulerProbe, "_sample"),
    (SchedulerProbe, "_on_loop"),
    (sampler, "look"),
    (WorkerProbe, "_sample"),
    (Memberships, "ask_loops"),
    (Memberships, "_on_loop"),
}
#: What is only for workers that cannot be observed, or have not told anything yet.
FOR_UNOBSERVED = {(SchedulerProbe, "_estimate"), (WorkerProbe, "_say")}
#: What none of these programs brings about: workers, clients and schedulers that come and go, a
#: client in a process of its own, messages and imports that take long, tasks that are stolen, data
#: that is spilled.
ELSEWHERE = {
    (SchedulerProbe, "add_worker"),
    (SchedulerProbe, "remove_worker"),
    (SchedulerProbe, "remove_client"),
    (SchedulerProbe, "_close"),
    (Memberships, "_leave_later"),
    (Membership, "_take"),
    (carried.Loading, "task"),
    (imports, "_emit"),
    (scheduling, "_stolen"),
    (spill, "within"),
}


#: What no local scheduler of threads comes to: messages, coroutines, other processes, and imports.
NOT_LOCALLY = {
    (imports, "_emit"),
    (waiting, "user_line"),
    (waiting, "lane_number"),
    (Computation, "_rows"),
    (Computation, "_row"),
}


def named(places: list[tuple[Any, str]]) -> pytest.MarkDecorator:
    ids = [f"{owner.__name__.rpartition('.')[2]}.{name}" for owner, name in places]
    return pytest.mark.parametrize(("owner", "name"), places, ids=ids)


def plant(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, errors: Any = ERRORS
) -> list[str]:
    """Make a function raise one error after the other; returns what it raised, as it does."""
    raised: list[str] = []
    turn = itertools.cycle(errors)

    def fail() -> None:
        error = next(turn)
        if error is KeyboardInterrupt and threading.current_thread() is threading.main_thread():
            error = SystemExit  # there it would be the user's own Ctrl-C
        raised.append(error.__name__)
        raise error("planted")

    async def fail_later(*args: Any, **kwargs: Any) -> None:
        fail()

    def fail_now(*args: Any, **kwargs: Any) -> None:
        fail()

    original = inspect.getattr_static(owner, name)
    broken = fail_later if inspect.iscoroutinefunction(original) else fail_now
    if (owner, name) in HOOKS:  # below its guard
        monkeypatch.setattr(_cell(original, "method"), "cell_contents", broken)
    else:
        monkeypatch.setattr(owner, name, broken)
    return raised


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def add(self) -> int:
        self.n += 1
        return self.n


def inc(x: int) -> int:
    return x + 1


def collections() -> list[Any]:
    """What a user computes with collections, on any scheduler."""
    array = da.ones((40, 40), chunks=20)
    frame = dd.from_pandas(pd.DataFrame({"x": range(10), "y": [0, 1] * 5}), npartitions=2)
    bag = db.from_sequence(range(10), npartitions=2).map(inc)
    many = [delayed(inc)(i) for i in range(20)]
    return [
        float((array + array.T).sum().compute()),
        frame.groupby("y").x.sum().compute().to_dict(),
        bag.sum().compute(scheduler=dask.config.get("scheduler", None)),
        dask.compute(*many),
        type(failing()).__name__,
    ]


EXPECTED = [3200.0, {0: 20, 1: 25}, 55, tuple(range(1, 21)), "ZeroDivisionError"]


def failing() -> BaseException:
    """The user's own error is theirs to see."""
    try:
        delayed(lambda: 1 // 0)().compute()
    except ZeroDivisionError as error:
        return error
    raise AssertionError("it did not fail")


def futures(client: Client) -> list[Any]:
    """What a user does with futures."""
    mapped = client.map(inc, range(10), pure=False)
    counter: Any = client.submit(Counter, actor=True).result()
    completed = sorted(future.result() for future in as_completed(mapped))
    scattered = client.submit(len, client.scatter(bytes(200_000))).result()
    return [client.gather(mapped), completed, counter.add().result(), scattered]


FUTURES = [list(range(1, 11)), list(range(1, 11)), 1, 200_000]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",  # or nothing would be serialized
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def survives(client: Client, seen: Callable[[], bool] = lambda: True) -> stageprof.Recording:
    """Run everything under `profile`: right results, the same workers, and a recording."""
    before = set(client.scheduler_info()["workers"])
    with stageprof.profile() as prof:
        assert collections() == EXPECTED
        assert futures(client) == FUTURES
        clusters.soon(seen)
    assert set(client.scheduler_info()["workers"]) == before
    # Not even one that failed leaves anything.
    clusters.soon(lambda: process.installed() == [], 5)
    return prof.recording


@pytest.fixture
def never_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "FAILURES", 10**9)


@named(EVERYWHERE + CLUSTER + HOOKS)
def test_no_error_of_ours_reaches_a_computation_on_a_cluster(
    owner: Any, name: str, client: Client, monkeypatch: pytest.MonkeyPatch, never_disabled: None
) -> None:
    """F1: every hook of client, scheduler and workers raises everything in turn."""
    raised = plant(monkeypatch, owner, name)
    place = (owner, name)
    if place in FOR_UNOBSERVED:
        plant(monkeypatch, WorkerProbe, "_begin", [RuntimeError])
    survives(client, lambda: bool(raised) or place not in TWICE_A_SECOND)
    assert raised or place in ELSEWHERE


def guarded(number: int, lock: SerializableLock) -> int:
    with lock:
        time.sleep(0.01)
    return number


@pytest.mark.parametrize("error", ERRORS)
def test_no_error_of_ours_keeps_a_lock_or_takes_it_twice(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch, never_disabled: None
) -> None:
    """Raised when the lock is had already: who waits for it next has it when its time comes."""
    raised = plant(monkeypatch, locks, "held_up", [error])
    lock, call = SerializableLock(), delayed(guarded)
    with stageprof.profile(gil=False):
        calls = [call(i, lock) for i in range(8)]
        assert dask.compute(*calls, scheduler="threads", num_workers=4) == tuple(range(8))
    assert raised
    assert not lock.locked()


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_no_error_of_ours_reaches_a_shuffle(
    error: type[BaseException], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: nor do tasks that exchange pieces notice that they are watched."""
    raised = plant(monkeypatch, exchanges, "_tell", [error])
    monkeypatch.setattr(exchanges, "SHORT_NS", 0)
    frame = dd.from_dict({"x": range(10)}, npartitions=2).shuffle("x", shuffle_method="p2p")
    with stageprof.profile(gil=False):
        assert sorted(client.compute(frame).result()["x"]) == list(range(10))
    assert raised


@named(EVERYWHERE + LOCAL)
@pytest.mark.parametrize("scheduler", ["threads", pytest.param("sync", marks=pytest.mark.nightly)])
def test_no_error_of_ours_reaches_a_computation_on_a_local_scheduler(
    owner: Any, name: str, scheduler: str, monkeypatch: pytest.MonkeyPatch, never_disabled: None
) -> None:
    """F1: and every hook of the local schedulers."""
    raised, place = plant(monkeypatch, owner, name), (owner, name)
    with dask.config.set(scheduler=scheduler), stageprof.profile():
        assert collections() == EXPECTED
        clusters.soon(lambda: raised or place not in TWICE_A_SECOND or place in NOT_LOCALLY)
    assert raised or place in NOT_LOCALLY


@pytest.mark.parametrize("name", ["_assigned", "_rows"])
def test_nor_on_the_scheduler_of_processes(
    name: str, monkeypatch: pytest.MonkeyPatch, never_disabled: None
) -> None:
    """F1: and there."""
    raised = plant(monkeypatch, Computation, name)
    with dask.config.set(scheduler="processes", num_workers=2), stageprof.profile():
        assert dask.compute(*[delayed(inc)(i) for i in range(20)]) == tuple(range(1, 21))
    assert raised


@pytest.mark.nightly
@pytest.mark.parametrize("error", ERRORS)
@named(EVERYWHERE + CLUSTER + HOOKS)
def test_each_kind_of_error_alone(
    owner: Any,
    name: str,
    error: type[BaseException],
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F1: the matrix: each hook by each exception, until it is disabled."""
    plant(monkeypatch, owner, name, [error])
    survives(client)


@pytest.mark.nightly
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
@named(EVERYWHERE + LOCAL)
def test_each_kind_of_error_alone_on_a_local_scheduler(
    owner: Any,
    name: str,
    scheduler: str,
    error: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F1: the matrix on the local schedulers of one process."""
    plant(monkeypatch, owner, name, [error])
    with dask.config.set(scheduler=scheduler), stageprof.profile():
        assert collections() == EXPECTED


@pytest.mark.nightly
@pytest.mark.parametrize("error", ERRORS)
@named(LOCAL)
def test_nor_on_the_scheduler_of_processes_alone(
    owner: Any, name: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: and on that of processes, of which each computation starts two."""
    plant(monkeypatch, owner, name, [error])
    with dask.config.set(scheduler="processes", num_workers=2), stageprof.profile():
        assert dask.compute(*[delayed(inc)(i) for i in range(20)]) == tuple(range(1, 21))


# -- wrappers ---------------------------------------------------------------------------------


def wrappers() -> dict[str, CellType]:
    """What stands behind a shield in place of functions of Dask's now: title -> our own part."""
    shielded = [ours for ours in _functions() if "ours" in ours.__code__.co_freevars]
    return {_cell(o, "watch").cell_contents.name: _cell(o, "ours") for o in shielded}


def unshielded() -> set[str]:
    """Modules of ours that put something there without a shield, which costs more."""
    bare = [ours for ours in _functions() if "ours" not in ours.__code__.co_freevars]
    return {ours.__globals__["__name__"].rpartition(".")[2] for ours in bare}


def _functions() -> list[Any]:
    """What stands in place of functions of Dask's now."""
    ours = [layer.ours for layer in list(patch._layers.values())]
    bare = (getattr(each, "__func__", None) or getattr(each, "func", each) for each in ours)
    return [each for each in bare if hasattr(each, "__code__")]


#: Those that have a test of their own in which they fail: test_arrival, test_groupby_probe and
#: test_standstill.
BY_THEMSELVES = {"arrival", "groupby", "deadlock"}


def piece_by_piece() -> set[str]:
    """Modules whose pieces are broken one by one."""
    owners: list[Any] = [owner for owner, _ in EVERYWHERE + CLUSTER]
    names = [owner.__module__ if isinstance(owner, type) else owner.__name__ for owner in owners]
    return {name.rpartition(".")[2] for name in names}


def break_wrapper(
    cell: CellType, turn: Iterator[type[BaseException]], monkeypatch: pytest.MonkeyPatch, when: str
) -> list[str]:
    """Make our part of a wrapper raise, before or after it has called what it wraps.

    Returns what it raised, as it does.
    """
    raised: list[str] = []
    ours: Callable[..., Any] = cell.cell_contents

    def fail() -> None:
        error = next(turn)
        raised.append(error.__name__)
        main = threading.current_thread() is threading.main_thread()
        raise SystemExit if error is KeyboardInterrupt and main else error

    def sync(*args: Any, **kwargs: Any) -> None:
        if when == "after":
            ours(*args, **kwargs)
        fail()

    async def later(*args: Any, **kwargs: Any) -> None:
        if when == "after":
            await ours(*args, **kwargs)
        fail()

    waits = inspect.iscoroutinefunction(ours)
    monkeypatch.setattr(cell, "cell_contents", later if waits else sync)
    return raised


WHEN = pytest.mark.parametrize("when", ["before", "after"])
KINDS = pytest.mark.parametrize(
    "errors",
    [
        pytest.param(ERRORS, id="all in turn"),
        *(pytest.param([e], id=e.__name__, marks=pytest.mark.nightly) for e in ERRORS),
    ],
)


@WHEN
@KINDS
def test_all_wrappers_may_fail_at_once(
    when: str,
    errors: Any,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    never_disabled: None,
) -> None:
    """F1: whatever a wrapper raises, the function is called once and its result handed on."""
    turn = itertools.cycle(errors)
    before = set(client.scheduler_info()["workers"])
    with stageprof.profile():
        found = wrappers()
        assert unshielded() - piece_by_piece() <= BY_THEMSELVES
        raised = [break_wrapper(cell, turn, monkeypatch, when) for cell in found.values()]
        assert collections() == EXPECTED
        assert futures(client) == FUTURES
    assert sum(map(bool, raised)) > 30
    assert set(client.scheduler_info()["workers"]) == before
    clusters.soon(lambda: process.installed() == [], 5)


@WHEN
@KINDS
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_all_wrappers_may_fail_at_once_on_a_local_scheduler(
    when: str,
    errors: Any,
    scheduler: str,
    monkeypatch: pytest.MonkeyPatch,
    never_disabled: None,
) -> None:
    """F1: and there."""
    turn = itertools.cycle(errors)
    with dask.config.set(scheduler=scheduler), stageprof.profile():
        cells = wrappers().values()
        raised = [break_wrapper(cell, turn, monkeypatch, when) for cell in cells]
        assert collections() == EXPECTED
    assert sum(map(bool, raised)) > 10


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@WHEN
def test_each_wrapper_may_fail_alone(
    when: str, client: Client, monkeypatch: pytest.MonkeyPatch, never_disabled: None
) -> None:
    """F1: the others see the errors of the one."""
    with stageprof.profile():
        names = list(wrappers())
    for name in names:
        with stageprof.profile(), monkeypatch.context() as patched:
            break_wrapper(wrappers()[name], itertools.cycle(ERRORS), patched, when)
            assert (name, collections()) == (name, EXPECTED)
            assert (name, futures(client)) == (name, FUTURES)


REPORTED: list[tuple[Any, str, str]] = [
    (SchedulerProbe, "_note", "scheduler.transition"),
    (WorkerProbe, "_note", "worker.transition"),
    (sampler, "look", "sampler"),
    (made.Lines, "made", "HighLevelGraph.from_collections"),
    (serialization, "within", "distributed.client.serialize"),
    (scheduling, "role", "Scheduler._create_taskstate_from_graph"),
    (waiting, "_block", "SyncMethodMixin.sync"),
]


@pytest.mark.smoke
@pytest.mark.parametrize(("owner", "name", "hook"), REPORTED, ids=[r[2] for r in REPORTED])
def test_a_hook_that_keeps_failing_is_disabled_and_the_recording_says_so(
    owner: Any,
    name: str,
    hook: str,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F1: off after ten failures, which the log says once and the recording for good."""
    raised = plant(monkeypatch, owner, name, [RuntimeError])
    with stageprof.profile() as prof:
        for i in range(20):
            da.ones(4, chunks=2) + i
        clusters.soon(lambda: owner is not sampler or len(raised) >= guard.FAILURES)
        for _ in range(12):
            client.gather(client.map(inc, range(4), pure=False))
    coverage = prof.recording.coverage()
    assert any(text.startswith(f"{hook}: failed 10 times") for text in coverage["disabled"])
    assert coverage["dropped"][f"hook failed: {hook}"] >= 10
    told = [r for r in caplog.records if r.name == "stageprof" and f"hook {hook} " in r.message]
    assert 1 <= len(told) <= 2  # one for each worker


def test_a_hook_that_was_disabled_is_on_again_in_the_next_recording(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = [delayed(inc)(i) for i in range(20)]
    with monkeypatch.context() as patched:
        plant(patched, Computation, "_assigned", [RuntimeError])
        with stageprof.profile() as prof:
            dask.compute(*tasks, scheduler="threads")
    assert any("local.submit" in text for text in prof.recording.coverage()["disabled"])
    with stageprof.profile() as prof:
        dask.compute(*tasks, scheduler="threads")
    assert prof.recording.coverage()["disabled"] == []
    assert len(prof.recording.tasks()) == 20


def test_a_users_interrupt_is_theirs_even_when_it_hits_our_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    with dask.config.set(scheduler="sync"), stageprof.profile():
        monkeypatch.setattr(local, "_hand_over", interrupt)
        with pytest.raises(KeyboardInterrupt):
            delayed(inc)(1).compute()
        monkeypatch.undo()


@pytest.mark.smoke
@pytest.mark.cluster
@pytest.mark.parametrize("when", ["setup", "transition"])
def test_a_worker_of_its_own_process_survives_a_broken_hook(when: str) -> None:
    """F1: `SystemExit` out of a worker's hook would lose the worker, and with it the cluster."""
    with clusters.local(2) as client:
        client.run(_break_worker, "_begin" if when == "setup" else "_note", SystemExit)
        workers = set(client.scheduler_info()["workers"])
        with stageprof.profile() as prof:
            assert client.gather(client.map(inc, range(50), pure=False)) == list(range(1, 51))
        assert set(client.scheduler_info()["workers"]) == workers
        coverage = prof.recording.coverage()
    assert coverage["problems"] == []
    if when == "setup":
        assert set(coverage["not_instrumented"]) == workers
        assert all("SystemExit" in why for why in coverage["not_instrumented"].values())
    else:
        assert any(text.startswith("worker.transition") for text in coverage["disabled"])


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.parametrize("error", ERRORS)
def test_nor_does_any_kind_of_error_end_a_worker_under_its_nanny(
    error: type[BaseException],
) -> None:
    """F1: one case of each kind where a nanny would start a new worker: none is started."""
    with clusters.local(2) as client:
        client.run(_break_worker, "_note", error)
        processes = client.run(os.getpid)
        with stageprof.profile() as prof:
            assert client.gather(client.map(inc, range(50), pure=False)) == list(range(1, 51))
        assert client.run(os.getpid) == processes
    disabled = prof.recording.coverage()["disabled"]
    assert any(text.startswith("worker.transition") for text in disabled)


def _break_worker(name: str, error: type[BaseException]) -> None:
    from stageprof_runtime import worker_plugin

    def broken(*args: Any) -> None:
        raise error("planted")

    setattr(worker_plugin.WorkerProbe, name, broken)
