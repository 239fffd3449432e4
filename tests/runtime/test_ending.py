"""How a region ended is recorded: the exception's type and the exit status, not what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stageprof
from runtime.oddly import Odd
from stageprof_runtime.ending import raised

SECRET = "hunter2 of acmecorp"


def block() -> stageprof.Recording:
    prof = stageprof.profile(gil=False)
    with pytest.raises(ValueError, match=SECRET), prof:
        raise ValueError(SECRET)
    return prof.recording


def function() -> stageprof.Recording:
    prof = stageprof.profile(gil=False)

    @prof
    def failing() -> None:
        raise ValueError(SECRET)

    with pytest.raises(ValueError, match=SECRET):
        failing()
    return prof.recording


def coroutine() -> stageprof.Recording:
    prof = stageprof.profile(gil=False)

    async def failing() -> None:
        async with prof:
            raise ValueError(SECRET)

    with pytest.raises(ValueError, match=SECRET):
        asyncio.run(failing())
    return prof.recording


@pytest.mark.parametrize(
    ("region", "what"), [(block, "block"), (function, "function"), (coroutine, "block")]
)
def test_an_exception_that_leaves_the_region_is_named(
    region: Callable[[], stageprof.Recording], what: str
) -> None:
    assert region().failures.said == (f"the {what} ended with ValueError",)


@pytest.mark.parametrize(
    ("error", "label"),
    [
        (ValueError(SECRET), "block\tValueError\t"),
        (SystemExit(3), "block\tSystemExit\t3"),
        (SystemExit(SECRET), "block\tSystemExit\t1"),
        (SystemExit(10**5000), "block\tSystemExit\t-1"),
        (SystemExit(True), "block\tSystemExit\t1"),
        (SystemExit(0), ""),
        (SystemExit(), ""),
        (GeneratorExit(), ""),
        (Odd(), "block\tOdd\t"),
        (type("a\tb" + "c" * 300, (Exception,), {})(), f"block\ta b{'c' * 197}\t"),
    ],
)
def test_of_what_ended_it_only_the_type_and_the_exit_status_are_told(
    error: BaseException, label: str
) -> None:
    assert raised(error, "block") == label


PROGRAM = """
import sys, dask
def inc(x): return x + 1
dask.delayed(inc)(1).compute(scheduler="sync")
{}
"""


@pytest.mark.parametrize(
    ("end", "status", "words"),
    [
        ("raise ValueError('hunter2')", 1, "the program ended with ValueError"),
        ("sys.exit(3)", 3, "the program ended with exit status 3"),
        ("sys.exit('hunter2')", 1, "the program ended with exit status 1"),
        ("sys.exit(0)", 0, ""),
    ],
)
def test_a_program_keeps_its_exit_status_and_the_summary_says_how_it_ended(
    end: str, status: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "r.stageprof"
    line = [sys.executable, "-m", "stageprof", "run", "--no-gil", "-o", str(path)]
    done = subprocess.run(
        [*line, "-c", PROGRAM.format(end)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status
    assert stageprof.open(path).failures.said == ((words,) if words else ())
    head = done.stderr[done.stderr.index("stageprof  -c") :]
    assert (words or "wall time") in head[: head.index("Where the time went")]


def test_an_interrupted_program_says_so(tmp_path: Path) -> None:
    end = "import threading; print('ready', flush=True); threading.Event().wait(60)"
    path = tmp_path / "r.stageprof"
    line = [sys.executable, "-m", "stageprof", "run", "--no-gil", "-o", str(path)]
    with subprocess.Popen(
        [*line, "-c", PROGRAM.format(end)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the program was interrupted (Ctrl-C)" in err[err.index("stageprof  -c") :]
    assert stageprof.open(path).failures.said == ("the program was interrupted (Ctrl-C)",)
