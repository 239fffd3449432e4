"""Say where the time of a Dask computation goes, stage by stage."""

from __future__ import annotations

import os

from stageprof.check import Checked as Checked
from stageprof.check import check as check
from stageprof.profile import profile as profile
from stageprof.recording import Recording as Recording
from stageprof_collectors.finding import Finding as Finding
from stageprof_collectors.finding import Severity as Severity
from stageprof_runtime.errors import StageprofError as StageprofError
from stageprof_runtime.stage import Stage as Stage
from stageprof_runtime.version import __version__ as __version__

__all__ = [
    "Checked",
    "Finding",
    "Recording",
    "Severity",
    "Stage",
    "StageprofError",
    "__version__",
    "check",
    "open",
    "profile",
]


def open(path: str | os.PathLike[str]) -> Recording:  # noqa: A001 (the name is the API's)
    """The recording in a file.

    Raises:
        NotARecording, NewerRecording, DamagedRecording: the file cannot be read; all are
            `StageprofError`. A recording that ended too early opens, and says so.
    """
    return Recording.open(path)
