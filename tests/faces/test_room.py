"""`--max-memory`: how much a recording may take, where a command reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.generate import generate
from stageprof.cli import main
from stageprof.schema import COLUMNS, MANIFEST
from stageprof_collectors.storage import frames

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording that takes more than any may by default."""
    path = tmp_path / "large.stageprof"
    generate(path, tasks=2_000, workers=2, seed=0)
    monkeypatch.setattr(frames, "MAX_READ", 100_000)
    return path


def test_what_takes_more_than_is_allowed_is_incomplete_and_the_reason_names_the_option(
    large: Path, capsys: Capture
) -> None:
    assert main(["inspect", str(large)]) == 0
    assert "allow more with --max-memory" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "inspect"])
def test_with_more_allowed_it_is_whole(command: str, large: Path, capsys: Capture) -> None:
    assert main([command, str(large), "--max-memory", "1GB"]) == 0
    assert "max-memory" not in capsys.readouterr().out


def test_a_dataset_has_all_tables_of_what_fits_into_what_is_allowed(
    large: Path, tmp_path: Path, capsys: Capture
) -> None:
    export = ["export", str(large), "--to", "parquet", "-o"]
    assert main([*export, str(tmp_path / "some")]) == 0
    assert "too large for memory" in capsys.readouterr().err
    assert main([*export, str(tmp_path / "all"), "--max-memory", "1 GB"]) == 0
    [entry] = json.loads((tmp_path / "all" / MANIFEST).read_text())["recordings"]
    assert entry["left_out"] == []
    assert set(entry["rows"]) == set(COLUMNS)


@pytest.mark.parametrize("size", ["much", "-1GB", "0", "1e400", ""])
def test_what_is_no_size_is_said_in_one_line(size: str, large: Path, capsys: Capture) -> None:
    assert main(["show", str(large), "--max-memory", size]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("expected a size such as 16GB")
