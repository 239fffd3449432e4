"""Fetching what a cluster's flight recorder has kept, as a recording like any other."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from stageprof.attach import greet
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.storage.flight import Window, assemble
from stageprof_runtime.errors import ClusterError, NotARecording, RecordingNotWritable
from stageprof_runtime.flight.folder import CURRENT, PREVIOUS
from stageprof_runtime.flight.recorder import OP, PIECE
from stageprof_runtime.flight.segments import SUFFIX

#: Seconds that the scheduler may take for each message.
ANSWER_S: Final = 30.0
#: More segments than any recorder keeps.
MOST: Final = 10_000


def dump(address: str, path: str | os.PathLike[str]) -> Window:
    """Write what the flight recorder of the scheduler at an address has kept.

    Args:
        address: of the scheduler, `tcp://...` or `tls://...` (certificates as Dask is
            configured); or a folder that a recorder was given.
        path: the recording; one that is there is replaced.

    Raises:
        ClusterError: no scheduler answers there, or it has no flight recorder.
        NotARecording: the folder is not there, or has no segments.
        RecordingNotWritable: `path` cannot be written.
    """
    if "://" not in address and Path(address).is_dir():
        return assemble(address, path)
    if is_path(address):
        raise _no_folder(Path(address))
    greet(address)
    with tempfile.TemporaryDirectory(prefix="stageprof-") as folder:
        try:
            dropped = asyncio.run(_fetch(address, Path(folder)))
        except (OSError, TimeoutError, LookupError, TypeError, ValueError) as error:
            raise ClusterError(
                f"{address} did not hand its recording out ({error or type(error).__name__})",
                expected="a scheduler that stays until it has been fetched",
                do="try again; after its end, name the folder given with --stageprof-dir instead",
            ) from error
        return assemble(folder, path, dropped)


def is_path(address: str) -> bool:
    """Whether what was given for an address can only be the way to a folder."""
    return "://" not in address and (os.sep in address or address in (CURRENT, PREVIOUS))


def _no_folder(folder: Path) -> NotARecording:
    if folder.name == PREVIOUS and folder.parent.is_dir():
        return NotARecording(
            f"no folder {folder}: this recorder had no life before",
            do=f"what it has kept of this one is in {folder.parent}",
        )
    return NotARecording(
        f"no folder {folder}",
        expected="one that a recorder was given with --stageprof-dir, or an address with ://",
        do="check the path",
    )


def said(window: Window) -> str:
    """How much of the cluster's life was kept, in a sentence."""
    kept = f"{seconds(window.seconds)} of flight recording, up to {window.until[11:19]}"
    if not window.overwritten:
        why = "; the cluster is no older"
    elif window.cut:
        limits = f"{window.minutes:g} min; {window.size / 1e6:.4g} MB"
        why = f"; there was no room for all that was asked for ({limits}): --stageprof-size"
    else:
        why = ""
    lost = sum(window.dropped.values())
    return f"{kept}{why}{_left_out(window)}" + (f"; {lost:,} batches dropped" if lost else "")


def _left_out(window: Window) -> str:
    known = {"stacks": window.without_stacks, "running tasks": window.without_runs}
    missing = " and ".join(name for name, is_missing in known.items() if is_missing)
    return f"; not all {missing} from before it were kept" if missing else ""


async def _fetch(address: str, folder: Path) -> object:
    """What the recorder says that it dropped; None if it is an older one, which does not."""
    from distributed.core import connect, rpc
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    async with rpc(address, connection_args=arguments) as scheduler:
        # An operation that it does not have would leave a warning in its log.
        if not await scheduler.get_metadata(keys=[OP], default=None):
            raise _none(address)
    comm = await connect(address, **arguments)
    try:
        await comm.write({"op": OP, "reply": True})
        return await _read(comm, folder)
    finally:
        comm.abort()


async def _read(comm: Any, folder: Path) -> object:
    about = await asyncio.wait_for(comm.read(), ANSWER_S)
    for number, length in enumerate(about["segments"][:MOST]):
        with (folder / f"{number:08}{SUFFIX}").open("wb") as file:
            for _ in range(0, length, PIECE):
                _put(file, (await asyncio.wait_for(comm.read(), ANSWER_S))["piece"])
    return about.get("dropped")


def _put(file: Any, piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        raise RecordingNotWritable(
            f"no room for what the cluster sends ({error.strerror or error})",
            expected=f"room in {tempfile.gettempdir()}",
            do="free some space, or set TMPDIR to another disk",
        ) from error


def _none(address: str) -> ClusterError:
    return ClusterError(
        f"no flight recorder runs at {address}",
        expected="a scheduler begun with: dask scheduler --preload stageprof_runtime.preload",
        do="begin it so; or record from now on, without --dump",
    )
