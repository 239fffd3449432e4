"""Rule long-chain: A9 (many operations in fewer functions)."""

from __future__ import annotations

import dask
import pytest

from findings.asking import asked, one, run
from findings.crowded import FILE, Program, calls
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.long_chain import RULE


def program(chains: int = 10, length: int = 60, names: tuple[str, ...] = ("stepped",)) -> Recording:
    made = Program()
    made.made("stepped", 33)
    for c in range(chains):
        keys = [
            f"{names[i % len(names)]}-{c:08x}-{i:04x}-4000-8000-{0:012x}" for i in range(length)
        ]
        made.tasks(keys, work=0.1, chain=True)
    return made.recording()


def test_chains_are_counted_and_named_with_their_line() -> None:
    """A9: long chains, with the function that all of it fits into."""
    found = one(RULE, program())

    assert "10 chains of up to 60 tasks, one after another" in found.headline
    assert "`stepped` at etl.py:33" in found.headline
    assert (found.where.file, found.where.line) == (FILE, 33)
    assert found.evidence["chains"] == 10
    assert found.cost_s == pytest.approx(0.6)
    low, high = found.saving_s
    assert 0.57 < low <= high < 0.6


@pytest.mark.parametrize(
    ("chains", "length", "fires"), [(10, 60, True), (8, 60, False), (100, 9, False), (50, 10, True)]
)
def test_it_fires_from_ten_in_a_chain_and_500_in_all(chains: int, length: int, fires: bool) -> None:
    assert bool(asked(RULE, program(chains, length))) == fires


def test_tasks_that_only_wait_for_a_thread_are_no_chain() -> None:
    made = Program()
    made.tasks(calls(600), work=0.1)
    assert not asked(RULE, made.recording())


@pytest.mark.parametrize(
    ("names", "printed"),
    [
        (("stepped",), "steps = [stepped] * 60"),
        (("stepped", "checked", "kept"), "steps = [stepped, checked, kept] * 20"),
        (("a b", "stepped"), "steps = [step, stepped] * 30"),
    ],
)
def test_steps_are_printed_once_where_they_repeat(names: tuple[str, ...], printed: str) -> None:
    assert printed in one(RULE, program(names=names)).fix.code


def test_steps_that_do_not_repeat_are_printed_as_far_as_one_reads() -> None:
    names = tuple(f"step_{i}" for i in range(60))
    assert "[step_11]  # and so on" in one(RULE, program(names=names)).fix.code


def test_printed_code_gives_the_same_result_in_one_task() -> None:
    found = one(RULE, program())

    def stepped(value: float) -> float:
        return 3.6 * value * (1 - value)

    value = 0.3
    for _ in range(60):
        value = stepped(value)
    names = run(found, stepped=stepped, start=0.3)
    with dask.config.set(scheduler="sync"):
        assert names["end"].compute() == value
    assert len(names["end"].__dask_graph__()) == 1
