"""The rule sizeof-wrong: what Dask takes results for against what the process takes."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple

import dask.distributed
import dask.sizeof
import numpy as np
import pandas as pd
import pytest
from dask.utils import typename
from distributed import Client, wait

import clusters
from findings.workers import Workers
from stageprof_collectors.findings.embedded import Embedded
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import sizeof_wrong
from stageprof_collectors.rules.sizeof_wrong import RULE


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, {n: limit.default for n, limit in RULE.limits.items()}))


def made(
    claimed: float, real: float, kind: str = "forest.Forest", runs: int = 6, held: float = 0
) -> Workers:
    """Two runs a second whose results Dask takes for `claimed` MB; they take `real` MB."""
    workers = Workers(1, 2000)
    graph, last = workers.graph(0, 0, 0), -1
    for i in range(runs):
        now = i * 500.0
        cause = -1 - graph if i == 0 else last
        times = (now, now + 480)
        last = workers.run(0, *times, cause=cause, key=f"grow-{i}", wanted=True, finished=now + 500)
        workers.sized(claimed, kind)
        workers.around(0, last, 150 + real * i, 150 + real * (i + 1), held or claimed * i)
    workers.wait(0, runs * 500.0, last, runs * 500.0)
    return workers


def of(workers: Workers) -> Recording:
    return workers.recording(3000)


def test_results_that_are_taken_for_too_little_are_found() -> None:
    """C14: `sizeof` is compared with what the process took."""
    (found,) = ask(of(made(0.00005, 80)))
    assert found.evidence["measured_bytes"] == pytest.approx(80e6)
    assert found.evidence["measured_runs"] == 6
    assert found.severity == Severity.NOTE
    assert "`grow`" in found.headline
    assert "takes 80.0 MB" in found.headline
    assert "@sizeof.register(Forest)" in found.fix.code


@pytest.mark.parametrize(
    ("layer", "sent", "told"), [("grow", 480, 0), ("other", 480, 1), ("grow", 48, 1)]
)
def test_what_came_with_the_task_is_no_part_of_its_result(
    monkeypatch: pytest.MonkeyPatch, layer: str, sent: float, told: int
) -> None:
    """Six tasks with a frame of 80 MB, which stays in memory for as long as their results do."""
    thing = Embedded(
        1, "pandas.DataFrame", "frame", "", 0, "global frame of grow", "", 0, frozenset({layer}),
        80_000_000, 6, 6, 0, round(sent * 1e6), 0.1, 0.1, 0.2,
    )  # fmt: skip
    monkeypatch.setattr(sizeof_wrong, "embedded", lambda _: [thing])
    assert len(ask(of(made(0.00005, 80)))) == told


def test_results_that_are_taken_for_too_much_are_found() -> None:
    (found,) = ask(of(made(200, 20)))
    assert found.evidence["claimed_bytes"] == pytest.approx(200e6)


@pytest.mark.parametrize(("claimed", "real"), [(100, 100), (100, 70), (60, 100), (5, 1), (1, 5)])
def test_results_within_a_factor_of_two_or_too_small_to_tell_are_not(
    claimed: float, real: float
) -> None:
    assert ask(of(made(claimed, real))) == []


def test_memory_that_is_used_again_is_no_proof_of_too_much() -> None:
    """The process never took less than what Dask believed to hold."""
    assert ask(of(made(100, 0, held=100))) == []


def test_a_leak_behind_a_number_is_not_its_size() -> None:
    assert ask(of(made(0.00003, 80, kind="float"))) == []


def test_a_piece_of_an_array_has_another_fix() -> None:
    """A view keeps its parent: no size can be registered for that."""
    (found,) = ask(of(made(0.001, 80, kind="numpy.ndarray")))
    assert found.fix.code == ""
    assert ".copy()" in found.fix.text


def test_few_runs_prove_nothing() -> None:
    assert ask(of(made(200, 20, runs=3))) == []


def test_runs_beside_others_are_left_out() -> None:
    workers = made(200, 20)
    workers.run(0, 0, 3000, cause=-1, thread=1)
    assert ask(of(workers)) == []


@pytest.mark.parametrize(("importing", "told"), [(0, 1), (2, 1), (6, 0)])
def test_what_a_module_takes_is_no_size_of_results(importing: int, told: int) -> None:
    """Of runs each the first one of its kind in a process, all import what they need."""
    workers = made(0.00005, 80)
    for i in range(importing):
        workers.imported(0, i * 500.0 + 1, i * 500.0 + 400)
    assert len(ask(of(workers))) == told


def test_seconds_of_spilling_for_nothing_are_its_saving() -> None:
    """A worker that is nearly empty writes its results to disk."""
    workers = made(400, 20)
    for i in range(6):
        workers.spilled(0, i * 500 + 480, i * 500 + 500)
        workers.took(0, i * 500 + 495, 170, 1100, 100)
    (found,) = ask(of(workers))
    assert found.cause == "memory"
    assert found.cost_s == pytest.approx(0.12, abs=0.01)
    assert found.saving_s == pytest.approx((0.12, 0.12), abs=0.02)


def test_a_name_that_is_none_becomes_a_placeholder() -> None:
    """A16: the code that is printed is Python whatever a class is called."""
    (found,) = ask(of(made(0.00005, 80, kind='x"); import os; ("')))
    assert "YourClass" in found.fix.code
    compile(found.fix.code, "fix", "exec")


class Forest:
    """Trees that share one array; it says that each has its own."""

    def __init__(self) -> None:
        table = np.ones(1_000_000)
        self.trees = [table[i:] for i in range(20)]

    def __sizeof__(self) -> int:
        return sum(tree.nbytes for tree in self.trees)


def claimed() -> int:
    from dask.sizeof import sizeof

    return int(sizeof(Forest()))


@pytest.mark.nightly
@pytest.mark.cluster
def test_the_fix_makes_dask_take_results_for_what_they_are() -> None:
    """C35: the printed code, run as it is, on a real cluster."""
    (found,) = ask(of(made(0.00005, 80, kind="__main__.Forest")))
    with clusters.local(1) as client:
        assert client.submit(claimed, pure=False).result() > 150e6
        exec(found.fix.code, {"Forest": Forest})
        assert client.submit(claimed, pure=False).result() == pytest.approx(8e6, rel=0.01)
    from dask.sizeof import sizeof

    assert sizeof(Forest()) == pytest.approx(8e6, rel=0.01)


class Tensor:
    """It has no attributes of Python's, and says how large it is."""

    __slots__ = ()
    nbytes = 3_000_000


@pytest.mark.parametrize("told", [3_000_000, lambda _: 3_000_000])
def test_what_says_how_large_it_is_is_believed(
    told: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a tensor of torch's, whose `vars` are empty, a hundred bytes were registered."""
    monkeypatch.setattr(Tensor, "nbytes", told)
    registered(Tensor, monkeypatch)
    assert dask.sizeof.sizeof(Tensor()) == 3_000_000


def registered(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code is run that is printed for results of a class."""
    (found,) = ask(of(made(0.00005, 80, kind=f"{__name__}.{kind.__name__}")))
    here = SimpleNamespace(run=lambda register: register())
    monkeypatch.setattr(dask.distributed, "get_client", lambda: here)
    exec(found.fix.code, {})


class Pieces(dict[str, Any]):
    """A dict of somebody's own."""


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize("kind", [Pieces, Pair])
def test_a_container_of_ones_own_is_as_large_as_what_is_in_it(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred bytes were registered for it, and Dask's own weighing was gone."""
    arrays = np.ones(100_000), np.zeros(100_000)
    value = kind(*arrays) if kind is Pair else kind(a=arrays[0], b=arrays[1])
    registered(kind, monkeypatch)
    assert dask.sizeof.sizeof(value) == pytest.approx(1_600_000, rel=0.01)


def test_of_a_container_of_pythons_nothing_is_registered() -> None:
    (found,) = ask(of(made(0.001, 80, kind="collections.defaultdict")))
    assert found.fix.code == ""


@pytest.mark.parametrize("value", [np.float64(1), np.bool(1), pd.Timestamp(0), Decimal(1)])
def test_a_leak_behind_a_scalar_is_not_its_size(value: object) -> None:
    """`load(path).mean()` of a cached array was told to return a copy."""
    assert ask(of(made(0.00003, 80, kind=typename(type(value))))) == []


def test_a_list_is_no_piece_of_an_array() -> None:
    (found,) = ask(of(made(0.001, 80, kind="list")))
    assert "`list`" in found.fix.text
    assert ".copy()" not in found.fix.text


def forest(number: int) -> Forest:
    """One that takes a quarter of a second, so that every one is measured, and their sum twice."""
    np.sort(np.random.default_rng(number).normal(size=3_000_000))
    return Forest()


@pytest.mark.nightly
@pytest.mark.cluster
def test_it_is_seen_on_a_real_worker() -> None:
    import stageprof

    with clusters.local(1) as client, stageprof.profile() as prof:
        _held(client)
    (found,) = ask(prof.recording)
    assert found.where.prefix == "forest"
    assert found.evidence["measured_bytes"] == pytest.approx(8e6, rel=0.5)


def _held(client: Client) -> None:
    held = client.map(forest, range(12))
    wait(held)
    assert len(held) == 12
