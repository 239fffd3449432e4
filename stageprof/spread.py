"""Measuring many recordings on a cluster, where one is active.

A worker sends back what a comparison keeps of a recording, some kilobytes. What it cannot do (it
does not see the file, or has no stageprof) is done in this process, with the same result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stageprof.reading import reading, room
from stageprof_collectors.comparison.measured import Measured, measure
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.text import safe
from stageprof_runtime import installed
from stageprof_runtime.session import active_client

if TYPE_CHECKING:
    from distributed import Client, Future

#: Fewer recordings are read here before a cluster has begun.
MANY: Final = 16
#: How the names of what is recording a cluster begin, as plugins of its scheduler.
_OURS: Final = "stageprof"

#: Called with how many are read, how many there are, and the file.
Progress = Callable[[int, int, str], None]


class File(NamedTuple):
    """A file as it is seen from here."""

    path: str
    size: int
    changed_ns: int


def spread(
    sources: Sequence[str],
    settings: Settings,
    progress: Progress | None,
    said: Callable[[str], None],
) -> dict[str, Measured]:
    """What the workers of the active cluster measured, by source.

    Args:
        sources: paths of recordings.
        settings: of their diagnosis.
        progress: called as they come.
        said: called with a sentence for whoever waits, if some are to be read here.

    Returns:
        Those that could be measured there; nothing if no cluster is active.
    """
    client = _cluster() if len(sources) >= MANY else None
    if client is None:
        return {}
    try:
        if client.run_on_scheduler(_recorded()):
            said("the cluster is being recorded, so recordings are read in this process")
            return {}
        found = _measured(client, sources, settings, progress)
    except Exception as error:  # of another Python, or going away
        said(f"the cluster reads no recordings ({safe(repr(error))}); this process does")
        return {}
    missing = len(sources) - len(found)
    if missing:
        said(f"{count(missing, 'recording')} could not be read on the cluster, but here")
    return found


def _cluster() -> Client | None:
    """The client to measure with; None inside a task, for a task must not wait for others."""
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        client: Client | None = active_client()
    else:
        return None
    if client is None or client.asynchronous or installed():
        return None
    return client if client.nthreads() else None


def _recorded() -> Callable[..., bool]:
    """Whether somebody records a scheduler; a closure, for it need not have stageprof."""
    ours = _OURS

    def asked(dask_scheduler: Any) -> bool:
        return any(str(name).startswith(ours) for name in dask_scheduler.plugins)

    return asked


def _measured(
    client: Client, sources: Sequence[str], settings: Settings, progress: Progress | None
) -> dict[str, Measured]:
    from distributed import as_completed

    seen = {source: _seen(os.path.abspath(source)) for source in sources}  # noqa: PTH100 (as open does)
    files = {source: file for source, file in seen.items() if file is not None}
    there = partial(_there, settings=settings, allowed=room())
    futures = client.map(there, list(files.values()), pure=False, key=_KEY)
    of = dict(zip(futures, files, strict=True))
    found: dict[str, Measured] = {}
    try:
        for future in as_completed(futures):
            measured = _result(future)
            if measured is not None:
                found[of[future]] = replace(measured, file=of[future])
            future.release()
            if progress is not None:
                progress(len(found), len(sources), of[future])
    finally:
        client.cancel(futures)
    return found


_KEY: Final = "stageprof-compare"


def _result(future: Future[Any]) -> Measured | None:
    """What a worker measured; whatever it failed by is found again, and said, here."""
    measured = future.result() if future.status == "finished" else None
    return measured if isinstance(measured, Measured) else None


def _seen(path: str) -> File | None:
    try:
        status = os.stat(path)  # noqa: PTH116 (the path stays as it was given)
    except (OSError, ValueError):
        return None
    return File(path, status.st_size, status.st_mtime_ns)


def _there(file: File, settings: Settings, allowed: int | None) -> Measured | None:
    """On a worker: measure the file, if it is the same one."""
    if _seen(file.path) != file:
        return None
    with reading(file.path, allowed) as recording:
        return measure(recording, settings)
