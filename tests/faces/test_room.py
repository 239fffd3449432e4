"""`--max-memory`: how much a recording may take, where a command reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from benchmarks.generate import generate
from stageprof import comparison, spread
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


#: What a command says of a recording that it was not allowed to read whole.
CUT = "allow more with --max-memory"


@pytest.mark.parametrize("many", [False, True], ids=["here", "on a cluster"])
def test_comparing_reads_what_is_allowed(
    many: bool, large: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster too: its workers know nothing of the command."""
    monkeypatch.setattr(spread, "MANY", 1 if many else 100)
    allowed = ["compare", str(large), str(large), "--max-memory", "1GB"]
    with Client(processes=False, n_workers=1, dashboard_address=":0") if many else nullcontext():
        assert main(allowed[:3]) == 2
        assert CUT in capsys.readouterr().err
        here: list[str] = []
        monkeypatch.setattr(comparison, "_one", _noted(comparison._one, here))
        assert main(allowed) == 0
    assert len(here) == (0 if many else 2)


def _noted(function: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    def noted(source: str, *args: Any) -> Any:
        names.append(source)
        return function(source, *args)

    return noted


PROGRAM = "import dask; dask.delayed(sum)([1, 2]).compute(scheduler='threads')"


def test_a_checked_program_is_likened_to_what_is_allowed(
    large: Path, caplog: pytest.LogCaptureFixture
) -> None:
    like = ["check", "--like", str(large)]
    assert main([*like, "-c", PROGRAM]) == 0
    assert CUT in caplog.text
    caplog.clear()
    assert main([*like, "--max-memory", "1GB", "-c", PROGRAM]) == 0
    assert not caplog.text


def test_a_baseline_keeps_what_is_allowed(large: Path, tmp_path: Path, capsys: Capture) -> None:
    save = ["baseline", "save", str(large), "--dir", str(tmp_path / "kept"), "--branch", "main"]
    assert main(save) == 2
    assert CUT in capsys.readouterr().err
    assert main([*save, "--max-memory", "1GB"]) == 0
    like = ["baseline", "list", str(tmp_path / "kept"), "--like", str(large)]
    assert main(like) == 2
    assert CUT in capsys.readouterr().err
    assert main([*like, "--max-memory", "1GB"]) == 0


def test_attaching_has_the_option(capsys: Capture) -> None:
    assert main(["attach", "tcp://127.0.0.1:1", "-o", "x", "--max-memory", "much"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("expected a size such as 16GB")
