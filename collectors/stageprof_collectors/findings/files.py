"""Many files: how to read several of Parquet in one task, what Dask knows of them, one store."""

from __future__ import annotations

import re
from typing import Final

from stageprof_collectors.findings.finding import Fix

#: Layers that read them.
PARQUET: Final = re.compile(r"read[-_]?parquet")
#: What xarray's `open_mfdataset` makes of the chunks of several files.
OPENED: Final = re.compile(r"open_dataset-(.*-)?concatenate(-.*)?")
#: How an expression that reads them holds what is known of the files: it travels with each task.
_KNOWN: Final = "_dataset_info_cache of "
#: Bytes of files that are worth a task of their own.
_WORTH: Final = 64e6

_FEWER: Final = (
    "Have fewer and larger files: `to_parquet` writes one for each partition, and with "
    "`partition_on` one for each value in each partition. Or read several in one task (the code "
    "below): each is a partition of its own unless Dask is allowed to put files together."
)
_HELD: Final = (
    "Dask keeps what it knows of all files that `read_parquet` found, and it travels with each "
    "task that reads. "
)
_CODE: Final = """\
import dask.dataframe as dd

def read_larger(path, **options):  # in place of dd.read_parquet; blocksize counts all columns
    return dd.read_parquet(path, aggregate_files=True, blocksize="{megabytes:.0f}MB", **options)"""

#: The layers that read by Arrow's own file systems. What that reads together is bounded by the
#: square root of the number of files, whatever the size that Dask is told to read at once.
_ARROW: Final = re.compile(r"read[-_]?parquet[-_]?pyarrow")
_ARROW_FEWER: Final = (
    "Have fewer and larger files: `to_parquet` writes one for each partition, and with "
    "`partition_on` one for each value in each partition. Or read them without "
    '`filesystem="arrow"`, which reads few of them in one task, and several at once (the code '
    "below)."
)

_STORE: Final = (
    "A chunk is no larger than the file that it is in, whatever `chunks` says, and each task costs "
    "about {each} whatever its size. Write the files once as one store with chunks of about "
    "{target} instead of {now} (the code below), so that there are about {k:,} times fewer tasks, "
    "and open that from then on. If your `chunks` cut each file, try without them first."
)
_AS_ONE: Final = """\
import dask
import xarray as xr

def as_one_store(files, store, **options):  # once; options: those that you open them with now
    with dask.config.set({{"array.chunk-size": "{plain}"}}):
        xr.open_mfdataset(files, **options).chunk("auto").to_zarr(store)  # needs zarr

# from then on: xr.open_zarr(store)"""


def fewer_files(before: str = "", block: float = _WORTH, prefix: str = "") -> Fix:
    """Have fewer files, or read so many bytes of them in one task.

    `before` goes before that; `prefix` is that of the tasks that read them.
    """
    text = _ARROW_FEWER if _ARROW.match(prefix) else _FEWER
    return Fix(before + text, _CODE.format(megabytes=max(1.0, block / 1e6)))


def known_of_files(how: str) -> bool:
    """Whether an object in a graph is what Dask knows of the files, by how it is held."""
    return how.startswith(_KNOWN)


def fewer_known(how: str) -> Fix:
    """What to do about that."""
    return fewer_files(_HELD, prefix=how.removeprefix(_KNOWN))


def one_store(*, each: str, target: str, now: str, k: int, plain: str) -> Fix:
    """Have one store of xarray's with larger chunks; `plain` is their size as Dask reads it."""
    return Fix(_STORE.format(each=each, target=target, now=now, k=k), _AS_ONE.format(plain=plain))
