"""The rule column-chunks-for-training: C32, C33, C35."""

from __future__ import annotations

import dask.array as da
import pytest

from findings.trained import PIECE, Trained, after, findings
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.rules import unpersisted_training_data
from stageprof_collectors.rules.column_chunks_for_training import RULE


def merged(times: int, **data: int) -> Trained:
    made = Trained(**({"merged": 3, "held": 1} | data))
    for _ in range(times):
        made.training([0, 1], [0, 1])
    return made


def test_columns_that_are_put_together_for_each_training_are_found() -> None:
    """C32, C33."""
    (found,) = findings(RULE, merged(3).end())

    again = 2 * 5 * PIECE / 1000
    assert found.cost_s == pytest.approx(again)
    assert list(found.saving_s) == pytest.approx([again, again])
    assert found.evidence["column_pieces"] == 3
    assert "1,000,000 rows x 150 columns" in found.headline
    assert "are kept in 3 pieces" in found.headline
    assert "each of 3 trainings (train.py:10)" in found.headline
    assert "10 pieces of 100,000 rows x 150 columns, 120 MB each" in found.fix.code


def test_columns_that_are_put_together_once_are_not_found() -> None:
    assert not findings(RULE, merged(1).end())


def test_columns_in_one_piece_are_not_found() -> None:
    assert not findings(RULE, merged(3, merged=0).end())


def test_data_that_is_also_read_again_is_the_other_rules_to_tell() -> None:
    recording = merged(3, held=0).end()

    assert not findings(RULE, recording)
    assert findings(unpersisted_training_data.RULE, recording)


def test_an_array_that_a_framework_refuses_is_serious_whatever_it_costs() -> None:
    """C32: every chunk needs all columns."""
    made = Trained(column_pieces=2)
    made.refused()

    (found,) = findings(RULE, made.end())

    assert found.severity == Severity.SERIOUS
    assert found.saving_s == (0, 0)
    assert "cut into 2 pieces across its columns: LightGBM did not train on it" in found.headline


def test_a_call_that_failed_for_another_reason_is_not_found() -> None:
    made = Trained()
    made.refused()

    assert not findings(RULE, made.end())


@pytest.mark.cluster
@pytest.mark.usefixtures("client")
def test_the_fix_puts_all_columns_of_a_row_into_one_piece() -> None:
    """C33, C35: the snippet is executed on the example, a thousandth of its rows."""
    (found,) = findings(RULE, merged(2).end())
    x = da.ones((1_000, 150), chunks=(100, 50))

    names = after(found.fix.code, x=x)

    assert names["x"].chunks == ((100,) * 10, (150,))
    assert float(names["x"].sum().compute()) == 150_000
