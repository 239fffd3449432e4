"""`dask stageprof ...` is `stageprof ...`, and costs Dask's other commands nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.1.stageprof"


def run(*line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *line], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nosuch.stageprof"),
        pytest.param(("show", str(GOLDEN), "--json", "--markdown"), marks=pytest.mark.nightly),
        pytest.param(("show", "--help"), marks=pytest.mark.nightly),
        pytest.param(("nonsense",), marks=pytest.mark.nightly),
        pytest.param(("run", "--no-live", "-c", "raise SystemExit(7)"), marks=pytest.mark.nightly),
    ],
    ids=["no file", "wrong use", "help", "no such command", "a script's own status"],
)
def test_it_answers_as_stageprof_does(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours, theirs = run("-m", "stageprof", *arguments), run("-m", "dask", "stageprof", *arguments)
    assert theirs.returncode == ours.returncode
    if "run" not in arguments:  # whose summary has times
        assert (theirs.stdout, theirs.stderr) == (ours.stdout, ours.stderr)


def test_dasks_own_commands_import_no_more_than_before() -> None:
    """`dask scheduler` and `dask worker` load every command that is registered."""
    script = (
        "import sys; from importlib.metadata import entry_points;"
        "[e.load() for e in entry_points(group='dask_cli') if e.name == 'stageprof'][0];"
        "print('stageprof' in sys.modules, 'pandas' in sys.modules, 'rich' in sys.modules)"
    )
    done = run("-c", script)
    assert done.stdout.split() == ["False"] * 3, done.stderr
