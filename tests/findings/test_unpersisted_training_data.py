"""The rule unpersisted-training-data: C34, C35."""

from __future__ import annotations

from typing import Any

import dask.array as da
import pytest
from distributed import futures_of

from findings.trained import BEFORE, DATA, PIECE, TRAINING, Trained, after, findings
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.rules.unpersisted_training_data import RULE

#: Ten pieces on two workers.
MAKING_S = 5 * PIECE / 1000


def searched(times: int, **data: Any) -> Trained:
    made = Trained(**data)
    for _ in range(times):
        made.training([0, 1], [0, 1])
    return made


def test_pieces_that_are_made_for_each_training_are_found_with_what_persisting_saves() -> None:
    """C34: input that is not persisted is read again."""
    (found,) = findings(RULE, searched(3).end())

    assert found.evidence["times_made"] == 3
    assert found.evidence["tasks_again"] == 20
    assert found.cost_s == pytest.approx(2 * MAKING_S)
    assert list(found.saving_s) == pytest.approx([2 * MAKING_S] * 2)
    assert found.severity == Severity.CRITICAL
    assert "`x` is not persisted" in found.headline
    assert "train.py:10" in found.headline
    assert "made 3 times" in found.headline
    assert (found.where.file, found.where.line, found.where.variable) == (
        "/home/u/train.py",
        10,
        "x",
    )


def test_one_training_reads_its_data_once_and_gives_no_finding() -> None:
    assert not findings(RULE, searched(1).end())


def test_persisted_data_gives_no_finding() -> None:
    made = Trained(held=1)
    made.training([0, 1], [0, 1])

    assert not findings(RULE, made.end())


def test_other_data_for_each_training_gives_no_finding() -> None:
    made = Trained()
    for name in ("a-1", "b-2"):
        made.training([0, 1], [0, 1], keys=name)

    assert not findings(RULE, made.end())


def test_what_costs_less_than_its_limit_is_not_found() -> None:
    assert not findings(RULE, searched(2).end(), cost_share=0.9)


@pytest.mark.parametrize(("share", "fires"), [(0.6, True), (0.01, False)])
def test_data_beyond_the_memory_of_the_workers_is_not_to_be_persisted(
    share: float, fires: bool
) -> None:
    """1.2 GB on two workers of 16 GB: persisting what does not fit would spill."""
    made = Trained(memory=16_000_000_000)
    made.training([0, 1], [0, 1])
    made.training([0, 1], [0, 1])

    assert bool(findings(RULE, made.end(), memory_share=share)) is fires


def test_a_training_that_begins_before_its_data_is_there_is_a_note() -> None:
    """C34: training that starts before data are ready."""
    made = Trained(held=1, pending=7)
    made.training([0, 1], [0, 1])

    (found,) = findings(RULE, made.end())

    assert found.severity == Severity.NOTE
    assert found.saving_s == (0, 0)
    assert "7 pieces of `x` were not ready" in found.headline
    assert found.cost_s == pytest.approx(MAKING_S)


def test_a_recording_without_trainings_gives_nothing() -> None:
    assert not findings(RULE, Trained().end())


@pytest.mark.cluster
@pytest.mark.usefixtures("client")
def test_the_fix_keeps_data_and_labels_in_memory() -> None:
    """C35: the snippet is executed."""
    (found,) = findings(RULE, searched(3).end())
    x = da.random.default_rng(1).random((1000, 15), chunks=(100, 15))

    names = after(found.fix.code, x=x, y=x.sum(axis=1))

    for name in ("x", "y"):
        held = futures_of(names[name])
        assert len(held) == 10
        assert all(future.done() for future in held)


def test_without_the_users_names_the_fix_has_its_own() -> None:
    (found,) = findings(RULE, searched(2, variable="").end())

    assert "data, labels = dask.persist(data, labels)" in found.fix.code


def test_the_numbers_add_up() -> None:
    """What is made by hand is as long as it says: a check of the tests themselves."""
    whole = BEFORE / 1000 + 2 * (MAKING_S + TRAINING / 1000)

    assert searched(2).end().wall == pytest.approx(whole)
    assert DATA["pieces"] == 10
