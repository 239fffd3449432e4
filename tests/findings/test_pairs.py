"""Each rule on a pair of real programs: it names the cause on the bad one and is silent after.

Slow: every program starts a cluster of its own. `make calibration` repeats them for figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findings.pairs import BLIND, NOTES, PAIRS, Ran, ran, sample
from stageprof_collectors.findings.finding import Finding, Severity

#: The measured difference may miss the predicted interval by this share of it and these seconds:
#: one run of each program on a busy machine; docs/calibration.md has medians of several.
SHARE, SECONDS = 0.5, 0.7
#: Whether there is any trouble depends on how fast tasks are, or on idle processors, or who is in
#: whose way: beside other tests there is none, or other, or it is theirs.
QUIET = frozenset({"event-loop-blocked", "io-bound", "root-overproduction", "scheduler-saturated"})


def rules() -> Iterator[Any]:
    """All that see something here."""
    for rule in sorted({*PAIRS} - BLIND):
        yield pytest.param(rule, marks=[pytest.mark.alone] * (rule in QUIET))


@pytest.mark.nightly
@pytest.mark.parametrize("rule", list(rules()))
def test_a_rule_ranks_first_on_its_bad_program_and_the_fix_silences_it(
    rule: str, tmp_path: Path
) -> None:
    bad, fixed = (ran(sample(rule, kind), tmp_path) for kind in ("bad", "fixed"))

    assert bad.printed == fixed.printed, "the fix changed the result"
    if rule in NOTES:
        _noted_on_the_bad_one_alone(rule, bad, fixed)
        return
    found = bad.recording.findings()[0]
    assert (found.rule, found.severity != Severity.NOTE) == (rule, True), _told(bad)
    above = [f for f in fixed.recording.findings() if f.severity != Severity.NOTE]
    assert not above, _told(fixed)
    _saving_is_right(found, bad.seconds(rule) - fixed.seconds(rule))


def _noted_on_the_bad_one_alone(rule: str, bad: Ran, fixed: Ran) -> None:
    assert rule in [f.rule for f in bad.recording.findings()], _told(bad)
    assert rule not in [f.rule for f in fixed.recording.findings()], _told(fixed)
    for run in (bad, fixed):
        assert all(f.severity == Severity.NOTE for f in run.recording.findings()), _told(run)


def _saving_is_right(found: Finding, measured: float) -> None:
    low, high = found.saving_s
    around = SECONDS + SHARE * max(high, measured)
    assert low - around <= measured <= high + around, (found.saving_s, measured)
    # What is promised beyond the noise saves something, however wide the interval around it is.
    assert measured > 0 or low <= SECONDS, (found.saving_s, measured)


def _told(run: Ran) -> str:
    return "\n".join(
        f"{f.severity}: {f.headline} (saves {f.saving_s}, costs {f.cost_s:.2f})"
        for f in run.recording.findings()
    )
