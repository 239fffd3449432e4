"""Columns on disk: the same values, read-only, and in memory only while they are used."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from benchmarks.generate import generate
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.scratch import Scratch


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "r.stageprof"
    generate(path, tasks=2_000, workers=4, threads=2, layers=4, seed=1)
    return path


@pytest.mark.parametrize("values", [np.arange(1000), np.ones((10, 3), np.float32), np.array([7])])
def test_values_are_the_same_before_and_after_their_memory_is_given_back(values: Any) -> None:
    scratch = Scratch(least=1)
    kept = scratch.column(values)
    assert not kept.flags.writeable
    for _ in range(2):
        assert kept.dtype == values.dtype
        np.testing.assert_array_equal(kept, values)
        scratch.release()


def test_what_lies_on_disk_is_not_written_again() -> None:
    scratch = Scratch(least=1)
    kept = scratch.column(np.arange(1000))
    assert scratch.column(kept) is kept
    assert scratch.nbytes == 8000


def test_texts_are_the_same() -> None:
    scratch = Scratch(least=1)
    parts: list[bytes | memoryview] = [b"ab", b"", b"cde"]
    kept = scratch.texts(parts)
    scratch.release()
    assert [bytes(part) for part in kept] == [bytes(part) for part in parts]


def test_small_columns_stay_where_they_are() -> None:
    values = np.arange(10)
    assert Scratch(least=1000).column(values) is values
    assert Scratch().column(values) is values


@pytest.mark.alone
def test_what_is_released_takes_no_memory() -> None:
    scratch = Scratch(least=1)
    kept = scratch.column(np.arange(8_000_000))
    process = psutil.Process()
    assert kept.sum() > 0
    before = process.memory_info().rss
    scratch.release()
    assert before - process.memory_info().rss > 50_000_000


def test_where_the_disk_is_full_they_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    values, parts = np.arange(10), [b"ab"]
    assert Scratch(least=1).column(values) is values
    assert Scratch(least=1).texts([*parts]) == parts


def test_no_file_is_to_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no name, and is gone with the process, however that ends."""
    monkeypatch.setattr("stageprof_collectors.storage.scratch._DISK", tmp_path)
    kept = Scratch(least=1).column(np.arange(1000))
    assert list(tmp_path.iterdir()) == []
    assert kept[999] == 999


def test_a_recording_on_disk_says_the_same(recorded: Path) -> None:
    """Also once it has forgotten what its tables were made from."""
    plain, spilled = Recording.open(recorded), Recording.open(recorded)
    spilled.store.spill(least=1)
    for name in ("stages", "steps", "places", "tasks", "layers", "workers", "critical_path", "gil"):
        pd.testing.assert_frame_equal(getattr(spilled, name)(), getattr(plain, name)())
        spilled.forget()
    assert spilled.findings() == plain.findings()


def test_a_full_disk_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def full(self: Scratch, parts: object) -> None:
        tried.append(parts)
        raise OSError(28, "no space left")

    monkeypatch.setattr(Scratch, "_mapped", full)
    scratch, values = Scratch(least=8), np.arange(10)
    assert all(scratch.column(values) is values for _ in range(3))
    assert len(tried) == 1
