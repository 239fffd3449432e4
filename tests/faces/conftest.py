"""Recordings that every face can be tried on, and the command line as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from dask.base import compute
from dask.delayed import delayed

import stageprof
from stageprof.recording import Recording

#: Texts that somebody could put into a key, and that no face may act on.
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "\x1b]0;owned\x07\x1b[31mred\x9b31m",
    "\u202egnp.exe\u2066\u200b\U000e0041",
    "two\nlines\r\nand\ttab\x00nul",
    "`code` ``` fence",
    "a|b|c",
    "@team and [link](javascript:alert(1)) https://evil.example <!-- -->",
    "lone \ud800 surrogate",
    "=cmd|' /C calc'!A0",
    "no \uffff character \ufdd0 at \U0010fffe all",
    "[red]markup[/red] :smile:",
    "x" * 5000,
)

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def double(x: int) -> int:
    return 2 * x


def record(path: Path | None, names: tuple[str, ...], label: str | None = None) -> Recording:
    """A few tasks on the synchronous scheduler, under these keys."""
    with stageprof.profile(path, label=label) as region:
        tasks = [delayed(double)(i, dask_key_name=name) for i, name in enumerate(names)]
        compute(*tasks, scheduler="sync")
    return region.recording


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of an ordinary run."""
    path = tmp_path_factory.mktemp("recorded") / "run.stageprof"
    record(path, ("a", "b", "c"))
    return path


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording whose every text was chosen by an enemy."""
    path = tmp_path_factory.mktemp("hostile") / "hostile.stageprof"
    record(path, HOSTILE, label="".join(HOSTILE[:8]))
    return path


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs `stageprof` in a process of its own, in the test's folder."""

    def run(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "stageprof", *args],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
