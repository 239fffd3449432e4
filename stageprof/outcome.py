"""How a program ended, as `python` would have said it: its exit status and its traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import stageprof
import stageprof_collectors
import stageprof_runtime
from stageprof.program import NotRunnable

#: What shells give a program that Ctrl-C ended.
INTERRUPTED = 130

_OURS = tuple(
    str(Path(str(package.__file__)).parent) + os.sep
    for package in (stageprof, stageprof_collectors, stageprof_runtime)
)


def status_of(program: Callable[[], object]) -> int:
    """Run a program to its end; the status that `python` would have exited with."""
    try:
        program()
    except NotRunnable:
        raise
    except SystemExit as error:
        return _exit_status(error)
    except KeyboardInterrupt as error:
        return report(error, INTERRUPTED)
    except BaseException as error:
        return report(error, 1)
    return 0


def _exit_status(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return int(error.code or 0)
    print(error.code, file=sys.stderr)  # noqa: T201 (as python does)
    return 1


def report(error: BaseException, status: int) -> int:
    """Show the traceback, without stageprof's frames, as the program's excepthook shows it.

    The status, which is the hook's to say as well; one that fails is shown as Python shows it.
    """
    _hide(error, set())
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as left:
        return _exit_status(left)
    except BaseException as failed:
        _hide(failed, set())
        print("Error in sys.excepthook:", file=sys.stderr)  # noqa: T201 (as python does)
        traceback.print_exception(failed)
        print("\nOriginal exception was:", file=sys.stderr)  # noqa: T201
        traceback.print_exception(error)
    return status


def _hide(error: BaseException | None, done: set[int]) -> None:
    if error is None or id(error) in done:
        return
    done.add(id(error))
    error.__traceback__ = without_ours(error.__traceback__)
    _hide(error.__cause__, done)
    _hide(error.__context__, done)


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of stageprof, which wraps what it watches."""
    kept: list[TracebackType] = []
    while trace is not None:
        if not _ours(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    out: TracebackType | None = None
    for entry in reversed(kept):
        out = TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


def _ours(filename: str) -> bool:
    return filename.startswith(_OURS) and not filename.startswith(_OURS[0] + "demo" + os.sep)
