"""The static report of a comparison: both sides in a file that works from disk."""

from __future__ import annotations

import os

from stageprof.app import store
from stageprof.private import write_text
from stageprof.reading import reading
from stageprof_collectors.comparison.comparison import Compared
from stageprof_runtime.errors import UsageError


def written(found: Compared, path: str | os.PathLike[str]) -> None:
    """Write the page; of each side it shows the recording with the middle wall time.

    Raises:
        UsageError: the packages for it are not installed, or `path` cannot be written.
    """
    with reading(found.baseline.middle) as base, reading(found.candidate.middle) as head:
        stores = [store(base), store(head)]
        from stageprof_ui import report

        text = report.compared(stores, found)
    try:
        write_text(path, text)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        raise UsageError(f"cannot write {path} ({why})", do="choose another file") from error
