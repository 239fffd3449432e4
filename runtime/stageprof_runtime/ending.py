"""How a run of a task ended, from what the scheduler did with it; and how a region did."""

from __future__ import annotations

from typing import Final

from stageprof_runtime.probes.failure import type_name

#: How those of Dask's stimuli begin by which a worker went.
LOST: Final = ("handle-worker-cleanup", "remove-worker", "worker-", "nanny-")
#: The mark of a region that an exception left, and what a region may be.
RAISED: Final = "region raised"
KINDS: Final = ("program", "block", "function", "cell")
#: Exit statuses that are told as they are.
_MOST: Final = 2**31


def status_of(finish: str, stimulus: str) -> int:
    """How a run ended, as in `event.STATUS`.

    A run that goes back to be run again has failed (and is retried) or was lost with its worker;
    what led to it says which.
    """
    if finish == "memory":
        return 0
    if finish == "erred" or stimulus.startswith("task-erred"):
        return 1
    return 2 if stimulus.startswith(LOST) else 3


def raised(error: BaseException, what: str) -> str:
    """The label of the mark `RAISED`: "<what> TAB <type> TAB <exit status, or nothing>".

    "" where the region ended in good order all the same. What the exception says may be data.
    """
    status = _exit_status(error.code) if isinstance(error, SystemExit) else ""
    if status == "0" or isinstance(error, GeneratorExit):
        return ""
    return "\t".join((what, type_name(error), status))


def _exit_status(code: object) -> str:
    """What `python` makes of an exit code; a text is printed, and is 1."""
    if code is None or isinstance(code, int):
        number = int(code or 0)
        return str(number if abs(number) < _MOST else -1)
    return "1"
