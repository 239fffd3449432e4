"""`stageprof check`: a script is run up to where it computes, on a real cluster of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stageprof.cli import main

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples" / "findings"
CLEAN = sorted((ROOT / "samples" / "clean").glob("*.py"))
#: Whether threads are fewer than CPUs depends on the machine that runs the tests.
MACHINE = "threads-below-cpus"
#: What a check knows before the first computation of these programs.
KNOWN = ("complex-object", "embedded-object", "large-graph", "late-workers", "memory-near-limit")

LOCAL = """
import dask
import dask.array as da
import numpy as np
from dask import delayed

def work(x):
    print("ran")
    return x

print("begins")
try:
    {what}
finally:
    print("cleaned up")
print("goes on")
"""
ONE = LOCAL.format(what="delayed(work)(1).compute(scheduler='threads')")
MANY = LOCAL.format(
    what="da.ones(9000, chunks=1).map_blocks(work, meta=np.ones(1)).compute(scheduler='processes')"
)


def check(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "stageprof", "check", *args],
        cwd=cwd,
        env=os.environ | {"STAGEPROF_RULES": ""},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def found(*args: str, cwd: Path) -> dict[str, Any]:
    done = check("--json", *args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def above_note(answer: dict[str, Any]) -> list[str]:
    return [f["rule"] for f in answer["findings"] if f["severity"] != "note"]


@pytest.mark.cluster
@pytest.mark.parametrize(
    "rule", [KNOWN[0], *(pytest.param(r, marks=pytest.mark.nightly) for r in KNOWN[1:])]
)
def test_a_check_names_what_is_wrong_before_it_runs_and_nothing_after_the_fix(
    rule: str, tmp_path: Path
) -> None:
    script = str(SAMPLES / rule.replace("-", "_"))
    bad = found("--rule", f"{MACHINE}=off", f"{script}_bad.py", cwd=tmp_path)
    assert above_note(bad) == [rule]
    fixed = found("--rule", f"{MACHINE}=off", f"{script}_fixed.py", cwd=tmp_path)
    assert above_note(fixed) == []


@pytest.mark.nightly
@pytest.mark.parametrize("script", CLEAN, ids=lambda path: path.stem)
def test_nothing_above_a_note_is_said_of_a_clean_program(script: Path, tmp_path: Path) -> None:
    assert above_note(found("--rule", f"{MACHINE}=off", str(script), cwd=tmp_path)) == []


TRAINING = """
import dask.array as da
from distributed import Client, LocalCluster
from xgboost import dask as dxgb

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False,
                      dashboard_address=":0") as cluster, Client(cluster) as client:
        houses = da.random.random((1000, 30), chunks={chunks})
        price = houses[:, 0]
        data = dxgb.DaskDMatrix(client, houses, price)
        print("trained")
"""


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("chunks", "rule"),
    [
        ("(100, 10)", "column-chunks-for-training"),
        ("(1000, 30)", "pieces-per-thread"),
        ("(100, 30)", None),
    ],
)
def test_data_that_goes_into_a_training_is_looked_at(
    chunks: str, rule: str | None, tmp_path: Path
) -> None:
    pytest.importorskip("xgboost")
    (tmp_path / "train.py").write_text(TRAINING.format(chunks=chunks))
    answer = found("--rule", f"{MACHINE}=off", "train.py", cwd=tmp_path)
    assert [f["rule"] for f in answer["findings"]] == ([rule] if rule else [])
    if rule:
        assert answer["findings"][0]["where"]["variable"] == "houses"
        assert answer["findings"][0]["saving_s"] == [None, None]


def test_the_script_ends_where_it_computes_and_cleans_up(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    done = check("one.py", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == "begins\ncleaned up\n"
    assert "Nothing to change" in done.stdout


def test_with_all_the_script_goes_on(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    done = check("--all", "one.py", cwd=tmp_path)
    assert done.stderr == "begins\nran\ncleaned up\ngoes on\n"
    assert "1 graph" in done.stdout


@pytest.mark.parametrize(
    ("allowed", "status"), [(None, 0), ("note", 1), ("moderate", 0), ("critical", 0)]
)
def test_only_graver_findings_than_allowed_make_it_fail(
    allowed: str | None, status: int, tmp_path: Path
) -> None:
    (tmp_path / "many.py").write_text(MANY)
    words = ("--fail-above", allowed) if allowed else ()
    done = check(*words, "many.py", cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert "moderate  9,000 tasks" in done.stdout


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_other_forms_have_stdout_to_themselves(form: str, tmp_path: Path) -> None:
    (tmp_path / "many.py").write_text(MANY)
    out = check(form, "many.py", cwd=tmp_path).stdout
    assert "begins" not in out
    assert "large-graph" in out
    if form == "--json":
        assert json.loads(out)["schema"] == "stageprof.check/1"


def test_what_the_script_itself_raises_is_shown_as_python_does(tmp_path: Path) -> None:
    done = check("-c", "raise KeyError('mine')", cwd=tmp_path)
    assert done.returncode == 1
    assert "KeyError: 'mine'" in done.stderr
    assert "stageprof" not in done.stderr
    assert check("-c", "raise SystemExit(7)", cwd=tmp_path).returncode == 7


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("no_such.py",),
        ("--json", "--markdown", "-c", "pass"),
        ("--fail-above", "worse", "-c", "pass"),
        ("--limit", "soon", "-c", "pass"),
        ("--limit", "0", "-c", "pass"),
        ("--like", "no_such.stageprof", "-c", "pass"),
        ("--rule", "no-such=off", "-c", "pass"),
        ("-m", "json", "-c", "pass"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    args: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["check", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
