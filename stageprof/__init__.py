"""Say where the time of a Dask computation goes, stage by stage."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stageprof import folder as folder  # before the program goes elsewhere
from stageprof.check import check as check
from stageprof.checked import Checked as Checked
from stageprof.comparison import Comparison as Comparison
from stageprof.comparison import compare as compare
from stageprof.dataset import Dataset as Dataset
from stageprof.dataset import dataset as dataset
from stageprof.profile import profile as profile
from stageprof.recording import Recording as Recording
from stageprof_collectors.findings.finding import Finding as Finding
from stageprof_collectors.findings.finding import Severity as Severity
from stageprof_runtime.errors import StageprofError as StageprofError
from stageprof_runtime.stage import Stage as Stage
from stageprof_runtime.version import __version__ as __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = [
    "Checked",
    "Comparison",
    "Dataset",
    "Finding",
    "Recording",
    "Severity",
    "Stage",
    "StageprofError",
    "__version__",
    "check",
    "compare",
    "dataset",
    "open",
    "profile",
]


def open(  # noqa: A001 (the name is the API's)
    path: str | os.PathLike[str], *, max_memory: int | None = None
) -> Recording:
    """The recording in a file.

    Args:
        path: of the file.
        max_memory: how much it may take, bytes; by default what a sound one of its size may take.

    Raises:
        NotARecording, NewerRecording, DamagedRecording: the file cannot be read; all are
            `StageprofError`. A recording that ended too early opens, and says so.
    """
    return Recording.open(path, max_memory=max_memory)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext stageprof` calls this; see docs/notebook.md."""
    from stageprof import magic

    magic.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext stageprof` calls this."""
    from stageprof import magic

    magic.unload(shell)
