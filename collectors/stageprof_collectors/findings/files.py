"""Files of Parquet: how to read several in one task, and what Dask knows of all of them."""

from __future__ import annotations

import re
from typing import Final

from stageprof_collectors.findings.finding import Fix

#: Layers that read them.
PARQUET: Final = re.compile(r"read[-_]?parquet")
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


def fewer_files(before: str = "", block: float = _WORTH) -> Fix:
    """Have fewer files, or read so many bytes of them in one task; `before` goes before that."""
    return Fix(before + _FEWER, _CODE.format(megabytes=max(1.0, block / 1e6)))


def known_of_files(how: str) -> bool:
    """Whether an object in a graph is what Dask knows of the files, by how it is held."""
    return how.startswith(_KNOWN)


def fewer_known() -> Fix:
    """What to do about that."""
    return fewer_files(_HELD)
