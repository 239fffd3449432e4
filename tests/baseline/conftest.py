"""Recordings as if from other machines, versions and days, made from one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stageprof.cli
from faces.conftest import record
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import Writer, read_frames
from stageprof_collectors.storage.frame import BATCH, META

Make = Callable[..., Path]
Run = Callable[..., "tuple[int, str, str]"]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "run.stageprof"
    record(path, ("a", "b"), "tests/test_etl.py::test_join")
    return path


@pytest.fixture
def make(original: Path, tmp_path: Path) -> Make:
    """Writes the same recording with another header."""
    number = 0

    def made(**header: object) -> Path:
        nonlocal number
        number += 1
        path = tmp_path / f"{number}.stageprof"
        with read_frames(original) as frames:
            found = list(frames)
        [meta] = [frame.decode_json(each.raw) for each in found if each.type == META]
        with Writer(path, meta | header) as writer:
            for each in found:
                if each.type == BATCH:
                    writer.write(*map(bytes, frame.split(each.raw)))
        return path

    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command: its status, what it printed, what it said on stderr."""

    def ran(*words: str | Path) -> tuple[int, str, str]:
        status = stageprof.cli.main([str(word) for word in words])
        return status, *capsys.readouterr()

    return ran
