"""Rule groups-one-by-one: what xarray's groups cost without flox, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import pandas as pd
import pytest

import stageprof
from findings.asking import asked, one
from findings.crowded import CLIENT, FILE, Program, ns, pieces
from stageprof_collectors.findings.grouped import Reductions
from stageprof_collectors.privacy.redaction import redact
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.groups_one_by_one import RULE
from stageprof_runtime.event import MARK


def program(*labels: str, tasks: int = 600, line: int = 17) -> Recording:
    """As many tasks of a millisecond each, and a millisecond beside it."""
    made = Program()
    made.made("sum", line)
    made.rows[CLIENT] += [(MARK, ns(0), "one by one", label) for label in labels]
    made.tasks(pieces(tasks), work=1.0, type_="numpy.ndarray", nbytes=8_000)
    return made.recording()


def test_the_groups_their_line_and_their_tasks_are_named() -> None:
    found = one(RULE, program(f"missing 365 5 {FILE}:17"))
    assert "xarray reduces 365 groups one by one at etl.py:17: 600 tasks" in found.headline
    assert (found.where.file, found.where.line, found.where.prefix) == (FILE, 17, "sum")
    assert found.cost_s == pytest.approx(0.6)
    low, high = found.saving_s
    assert low == pytest.approx(0.6 * (1 - 16 / 600), rel=0.02)
    # Of their work some is to cut the groups out, which nobody would do then: at most all of it.
    assert high == pytest.approx(1.2 * (1 - 16 / 600), rel=0.02)


def test_flox_is_to_be_installed_or_to_be_used() -> None:
    missing = one(RULE, program(f"missing 12 2 {FILE}:17"))
    assert "pip install flox" in missing.fix.text
    assert missing.fix.code == ""
    off = one(RULE, program(f"off 12 2 {FILE}:17"))
    assert "switched off" in off.fix.text
    assert off.fix.code.endswith("xr.set_options(use_flox=True)")
    compile(off.fix.code, "fix", "exec")


def test_several_are_one_finding_at_the_line_of_most_groups() -> None:
    found = one(RULE, program(f"off 12 2 {FILE}:3", f"off 365 2 {FILE}:17"))
    assert "365 groups one by one at etl.py:17 (and 1 more such reduction)" in found.headline
    assert found.evidence["tasks_with_flox"] == 7 + 7


@pytest.mark.parametrize(
    ("label", "changed"),
    [
        (f"off 12 2 {FILE}:17", {"tasks": 499}),
        (f"off 12 70 {FILE}:17", {}),  # flox would need 211
        (f"off 12 2 {FILE}:18", {}),  # nothing of these was computed
    ],
)
def test_where_flox_would_change_little_it_is_silent(label: str, changed: dict[str, Any]) -> None:
    assert not asked(RULE, program(label, **changed))


@pytest.mark.parametrize(
    "label", ["", "off", "off x y z:1", "off 1 1 etl.py", "off -1 9 a:3", f"off 9 9 a:{'9' * 30}"]
)
def test_a_mark_that_says_nothing_is_passed_over(label: str) -> None:
    recording = program(label)
    assert not Reductions(recording).all
    assert not asked(RULE, recording)


def test_it_is_shown_instead_of_the_number_of_tasks(tmp_path: Path) -> None:
    """One cause, one finding; it has the tasks that xarray makes without a line, too.

    And where names are replaced it is the same.
    """
    xr = pytest.importorskip("xarray", reason="needs the extra `samples`")
    days = pd.date_range("2021-01-01", periods=730)
    data = da.random.default_rng(1).random((730, 3), chunks=(365, 3))
    rain = xr.DataArray(data, {"time": days}, ("time", "gauge"))
    whole, redacted = tmp_path / "a.stageprof", tmp_path / "b.stageprof"
    with stageprof.profile(whole), xr.set_options(use_flox=False):
        rain.groupby("time.dayofyear").mean().compute(scheduler="sync")
    redact(whole, redacted)
    for recording in map(stageprof.open, (whole, redacted)):
        found = [f for f in recording.findings() if f.rule in ("large-graph", RULE.id)]
        assert [f.rule for f in found] == [RULE.id]
        assert "365 groups" in found[0].headline
        tasks: Any = found[0].evidence["tasks"]
        assert tasks > 0.9 * len(recording.tasks())
