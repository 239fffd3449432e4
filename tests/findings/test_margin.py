"""The margin of a predicted interval: what was calibrated is added, within bounds."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.margins import coverages, excess, fitted, holds
from findings.conftest import Only
from findings.made import found, made, rule
from stageprof_collectors.findings.catalogue import known
from stageprof_collectors.findings.diagnosis import diagnose
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.findings.margin import MARGINS, NOISE, Margin, widened
from stageprof_collectors.findings.rule import Ground, Rule

HALF = Margin(0.25, 0.5)


def grounded(id_: str, low: float, high: float, ground: Ground | None) -> Rule:
    """A rule that predicts this saving."""
    made_ = rule(id_, [found(id_, low, high)])
    return Rule(made_.id, made_.stage, made_.summary, made_.find, ground=ground)


def test_an_interval_grows_by_the_noise_of_runs_and_by_parts_of_its_middle() -> None:
    low, high = widened((3.0, 5.0), HALF, inside_s=20.0)
    assert (low, high) == pytest.approx((3 - 1 - 20 * NOISE, 5 + 2 + 20 * NOISE))


def test_it_stays_within_the_run() -> None:
    assert widened((0.1, 8.0), Margin(2.0, 2.0), 10.0) == (0.0, 10.0)


def test_what_a_rule_is_sure_of_beyond_the_run_is_left() -> None:
    """A rule answers for its own bounds: a margin never makes an interval shorter."""
    assert widened((1.0, 12.0), HALF, 10.0)[1] == 12.0


def test_what_saves_nothing_still_saves_nothing() -> None:
    assert widened((0.0, 0.0), HALF, 10.0) == (0.0, 0.0)


def test_noise_never_hides_that_a_little_is_saved() -> None:
    """A tenth of a second in a minute is less than two runs differ by, and still a tenth."""
    low, high = widened((0.1, 0.1), Margin(0.0, 0.0), 60.0)
    assert (low, high) == pytest.approx((0.05, 0.15))


def test_without_a_ground_an_interval_is_as_its_rule_gave_it(only: Only) -> None:
    only(grounded("theirs", 2.0, 3.0, None))
    assert diagnose(made())[0].saving_s == (2.0, 3.0)


@pytest.mark.parametrize("ground", list(Ground))
def test_a_diagnosis_shows_intervals_with_the_margin_of_their_ground(
    ground: Ground, only: Only
) -> None:
    only(grounded("ours", 2.0, 3.0, ground))
    recording = made(expr=4.0)
    inside = recording.wall - float(recording.stages()["wall_s"]["outside"])
    assert diagnose(recording)[0].saving_s == pytest.approx(
        widened((2.0, 3.0), MARGINS[ground], inside)
    )


def test_severity_that_a_rule_chose_itself_stays_with_a_margin(only: Only) -> None:
    note = found("ours", 3.0, severity=Severity.NOTE)
    only(Rule("ours", None, "", lambda *_: [note], ground=Ground.RECORDED))
    assert diagnose(made())[0].severity == Severity.NOTE


def test_every_rule_of_ours_says_what_its_savings_rest_on() -> None:
    without = {rule.id for rule in known().rules.values() if rule.ground is None}
    assert without == {"nothing-to-fix"}


# -- taken from a calibration -----------------------------------------------------------------


def pairs(*measured: float, ground: Ground = Ground.RECORDED) -> pd.DataFrame:
    """Pairs whose rules said 4 to 6 of 10 s."""
    rows = [
        {"rule": f"r{i}-{ground}", "bad_s": 10.0, "measured_s": m, "own_low_s": 4.0,
         "own_high_s": 6.0, "ground": ground}
        for i, m in enumerate(measured)
    ]  # fmt: skip
    return pd.DataFrame(rows).set_index("rule")


def test_what_lies_outside_counts_beyond_the_noise_by_the_middle() -> None:
    noise = NOISE * 10
    frame = pairs(5.0, 6.0 + noise + 1, 4.0 - noise - 2)
    ends = [excess(row) for _, row in frame.iterrows()]
    assert ends == [(0, 0), (0, pytest.approx(0.2)), (pytest.approx(0.4), 0)]


def test_a_fitted_margin_holds_most_of_its_pairs() -> None:
    frame = pairs(*[5.0] * 7, 8.0, 8.4)
    margin = fitted(frame)
    assert all(holds(row, margin) for _, row in frame.iterrows())
    assert margin == pytest.approx((0.0, 0.4))


def test_coverage_is_also_told_for_pairs_that_gave_nothing_to_the_margin() -> None:
    """The only pair of ten that is far off is held by its own margin, not by the others'."""
    bare, _, others = coverages(pairs(*[5.0] * 9, 9.0))
    assert (bare, others) == (0.9, 0.9)
