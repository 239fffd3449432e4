"""Segments by themselves, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from preload.shipped import ABOUT, ENOUGH
from stageprof_runtime.flight.segments import Segments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "flight"
    path.mkdir()
    return path


@pytest.fixture
def segments(folder: Path) -> Segments:
    return Segments(str(folder), ABOUT, *ENOUGH)
