"""The project's own report on its own samples: the same program twice a side is no regression."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIDES = ("base", "head")


def stageprof(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "stageprof", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.nightly
@pytest.mark.cluster
@pytest.mark.alone
@pytest.mark.parametrize(
    ("name", "scheduler"),
    [("rechunk", "threads"), ("rechunk", "distributed"), ("futures_pipeline", "distributed")],
)
def test_a_sample_compared_with_itself_is_no_regression(
    name: str, scheduler: str, tmp_path: Path
) -> None:
    """Recorded in turn, so that what the machine does meanwhile meets both sides."""
    for side in SIDES:
        (tmp_path / side).mkdir()
    for number in (1, 2):
        for side in SIDES:
            output = f"{side}/{number}.stageprof"
            script = [str(ROOT / "samples" / f"{name}.py"), "--data", "data"]
            words = ["run", "-q", "-o", output, *script, "--scheduler", scheduler]
            done = stageprof(tmp_path, *words)
            assert done.returncode == 0, done.stderr

    done = stageprof(tmp_path, "compare", "base", "--", "head", "--json=report.json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "report.json").read_text())["schema"].startswith("stageprof.")
