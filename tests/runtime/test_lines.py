"""The user's line: what starts a process of a cluster is none."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKS = "from stageprof_runtime.lines import user_line; print(*user_line())"


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ("", "<string> 1"),
        ("from multiprocessing.spawn import spawn_main; ", "0"),
        ("from multiprocessing.forkserver import main; ", "0"),
        ("from dask.__main__ import main; ", "0"),
        ("main = print; ", "<string> 1"),
    ],
    ids=["a program", "spawned", "forkserver", "a command of Dask's", "a program with a main"],
)
def test_what_a_worker_began_with_is_not_the_users_program(begins: str, said: str) -> None:
    """Its event loop runs right in that: a call from there is not of a line of "<string>"."""
    asked = [sys.executable, "-c", begins + ASKS]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.strip() == said
