"""The recordings of the last two cells, for `%stageprof last` and `%stageprof compare`."""

from __future__ import annotations

import sys
from typing import Any

from stageprof.options import Options
from stageprof.recording import Recording
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.text import safe
from stageprof_runtime.errors import UsageError

#: Recordings of one cell, more than one if it was repeated.
Run = tuple[Recording, ...]


class Kept:
    """The last two runs."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def keep(self, run: Run, options: Options, settings: Settings | None = None) -> None:
        """Keep what was recorded, and write the report that was asked for, as it is judged."""
        self._runs = [*self._runs[-1:], run]
        if options.report is None:
            return
        try:
            middle(run).report(options.report, settings)
        except Exception as error:  # the cell has run; it is not for the report alone
            warn(f"no report ({error})")

    @property
    def last(self) -> Recording:
        """The recording that was shown last.

        Raises:
            UsageError: there is none.
        """
        if not self._runs:
            raise UsageError("nothing was recorded yet", do="%%stageprof at the top of a cell")
        return middle(self._runs[-1])

    def compared(self) -> Any:
        """The last run beside the one before.

        Raises:
            UsageError: there are no two.
        """
        if len(self._runs) < 2:
            raise UsageError(
                f"{len(self._runs)} recorded, to compare", expected="two", do="run another cell"
            )
        import stageprof

        base, head = self._runs
        # Cells are other programs by their numbers, and what was meant is these two.
        return stageprof.compare(list(base), list(head), force=True)


def middle(run: Run) -> Recording:
    """The one of a run that took neither longest nor shortest."""
    return sorted(run, key=lambda recording: recording.wall)[(len(run) - 1) // 2]


def warn(what: str) -> None:
    """Say on stderr what could not be done besides."""
    print(safe(f"stageprof: {what}", limit=500), file=sys.stderr)  # noqa: T201


__all__ = ["Kept", "Run", "middle", "warn"]
