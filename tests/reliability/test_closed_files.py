"""A program that closes all open files, as daemons do, finds nothing of ours in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: The files that it opens have the numbers of those that were closed.
PROGRAM = """
import os, sys, threading, stageprof
with stageprof.profile(sys.argv[1], native=sys.argv[2] == "native"):
    os.closerange(3, 200)
    theirs = [open(f"{sys.argv[1]}.{n}.txt", "w+") for n in range(20)]
    for file in theirs:
        file.write("theirs")
        file.flush()
for file in theirs:
    file.seek(0)
    print(file.read())
    file.close()
print(*(t.name for t in threading.enumerate() if "stageprof" in t.name))
"""


@pytest.mark.parametrize("frames", ["native", "Python's"])
def test_a_program_that_closes_all_files_keeps_its_own(tmp_path: Path, frames: str) -> None:
    """Neither the recording nor anything else of ours is written there, and none is closed."""
    line = [sys.executable, "-c", PROGRAM, os.fspath(tmp_path / "a.stageprof"), frames]

    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.split() == ["theirs"] * 20
    assert "a.stageprof stopped: the program has closed its file" in done.stderr
    assert "stageprof attach" in done.stderr
