"""Running pytest on test files of a user's, in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

#: What the users' tests compute: no cluster, and hardly any time.
WORK = """
from dask.base import compute
from dask.delayed import delayed

def work(x):
    return sum(range(20_000)) + x

def go(n=4):
    return compute(*[delayed(work)(i) for i in range(n)], scheduler="threads")
"""


_OUTCOME = re.compile(r"^([A-Z]+) \S+?::(.+?)(?: - .*)?$", re.MULTILINE)
_FAILURE = re.compile(r"^_+ (.+?) _+\n(.*?)(?=^[_=]{5})", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^=+ stageprof =+\n(.*?)(?=^=)", re.MULTILINE | re.DOTALL)


class Ended(NamedTuple):
    """How a run ended."""

    status: int
    out: str
    folder: Path

    @property
    def outcomes(self) -> dict[str, str]:
        """What `-rA` says of each test: `test_x` -> `PASSED`."""
        return {name: outcome for outcome, name in _OUTCOME.findall(self.out)}

    def failure(self, name: str) -> str:
        """What is said of a failed test."""
        said = dict(_FAILURE.findall(self.out))
        assert name in said, self.out
        return str(said[name])

    @property
    def table(self) -> str:
        """The table at the end."""
        found = _TABLE.search(self.out)
        return found[1] if found else ""

    def recordings(self, folder: str = "stageprof-recordings") -> list[str]:
        """The recordings in a folder, without the digests in their names."""
        files = (self.folder / folder).rglob("*.stageprof")
        names = (path.relative_to(self.folder / folder).as_posix() for path in files)
        return sorted(re.sub(r"-[0-9a-f]{8}(?=/)", "", name) for name in names)


def run_tests(folder: Path, source: str, *args: str, name: str = "test_it.py") -> Ended:
    """Run pytest on a file with this text."""
    (folder / name).write_text(source)
    (folder / "pytest.ini").touch()  # else the folder of another one may be the root
    line = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *args]
    done = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    return Ended(done.returncode, done.stdout + done.stderr, folder)
