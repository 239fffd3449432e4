"""A file for `pstats` and the `snakeviz` command.

From counted calls if the recording has them, else from looks. Such files are marshalled: they are
written here, and never read.
"""

from __future__ import annotations

import marshal
from pathlib import Path

from stageprof.recording import Recording
from stageprof_collectors.profiles.stats import stats


def write(recording: Recording, path: Path) -> None:
    """Write the file.

    Raises:
        NoLooks: nothing was seen.
    """
    path.write_bytes(marshal.dumps(stats(recording)))
