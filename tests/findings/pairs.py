"""The pairs of samples: a bad program for each rule, and the same after the printed fix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

import stageprof

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = ROOT / "samples" / "findings"

#: Ids of the rules that have a pair.
PAIRS: Final = sorted(
    path.name.removesuffix("_bad.py").replace("_", "-") for path in SAMPLES.glob("*_bad.py")
)

#: Rules that save something else than time: a note, beside which there is nothing to fix.
NOTES: Final = frozenset({"too-many-workers"})
#: Rules that save time of the program's own.
OUTSIDE: Final = frozenset({"polling"})
#: Rules that see nothing on this Python: collections are not watched before 3.12.
BLIND: Final = frozenset({"gc-pressure"} if sys.version_info < (3, 12) else ())


class Ran(NamedTuple):
    """A program that was run under stageprof: its recording, and what it printed."""

    recording: stageprof.Recording
    printed: str

    def seconds(self, rule: str) -> float:
        """Seconds of Dask and of waiting for it; starting a cluster varies by more than a fix.

        Of a rule about the program's own time seconds of all.
        """
        if rule in OUTSIDE:
            return self.recording.wall
        return float(self.recording.wall - self.recording.stages()["wall_s"]["outside"])


def sample(rule: str, kind: str) -> Path:
    """The program of a rule; `kind` is "bad" or "fixed"."""
    return SAMPLES / f"{rule.replace('-', '_')}_{kind}.py"


def ran(script: Path, folder: Path, *, limit_s: float = 300) -> Ran:
    """Run a program under `stageprof run`, in a process of its own."""
    file = folder / f"{script.stem}.stageprof"
    command = [sys.executable, "-W", "ignore", "-m", "stageprof", "run", "-q", "-o", str(file)]
    done = subprocess.run(
        [*command, str(script)],
        cwd=folder,
        env=os.environ | {"STAGEPROF_RULES": ""},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Ran(stageprof.open(file), done.stdout)
