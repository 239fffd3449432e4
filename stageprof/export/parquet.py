"""A dataset of Parquet files: a folder for each table, in it one for each recording.

::

    out/_stageprof.json                        what is in it; written last
    out/tasks/<recording>/part-00000.parquet   at most `ROWS` rows
    out/stages/<recording>/part-00000.parquet

Texts are as they were recorded; `stageprof.dataset` reads it, and so does whatever reads Parquet.
Recordings are read one after another, and of one table no more than `ROWS` rows are copied at a
time. Of a recording that is too large for memory the tables that take all of it are left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from stageprof.reading import reading, sensible
from stageprof.recording import Recording
from stageprof.schema import COLUMNS, FORM, MANIFEST, schema
from stageprof_collectors.storage.key import printable
from stageprof_collectors.storage.sliced import Sliced
from stageprof_collectors.storage.store import Store
from stageprof_runtime.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a file: some 60 MB of tasks in memory, which is a partition of Dask's.
ROWS: Final = 500_000
#: Rows that a reader may pass over together, when it looks for some of them.
_GROUP: Final = 1 << 16
_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 80
#: What a column of whole numbers holds; sums of a recording that was forged may be larger.
_WIDEST: Final = 2**63 - 1

#: What the manifest says of a recording.
Entry = dict[str, Any]


def write(recording: Recording, folder: Path) -> None:
    """Write a dataset of one recording; times are seconds (`_s`), sizes bytes."""
    folder.mkdir(mode=0o700)
    name = names([recording.path or "recording"])[0]
    _whole(folder, [_recording(recording, folder, name)])


def write_files(files: Sequence[Path], folder: Path) -> list[str]:
    """Write a dataset of several recordings.

    Args:
        files: the recordings.
        folder: which is made.

    Returns:
        A sentence for each recording of which tables were left out.

    Raises:
        RecordingError: a file cannot be read.
    """
    folder.mkdir(mode=0o700)
    found = zip(files, names(files), strict=True)
    entries = [_file(file, folder, name) for file, name in found]
    _whole(folder, entries)
    return [_left_out(entry) for entry in entries if entry["left_out"]]


def names(files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """A name for each recording that is a folder's on every system, after its file's."""
    found: list[str] = []
    taken: set[str] = set()
    for file in files:
        stem = _NAME.sub("_", Path(file).stem)[:_LONGEST].strip("._") or "recording"
        name, number = stem, 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        found.append(name)
    return found


def _file(file: Path, folder: Path, name: str) -> Entry:
    """Write one recording; of one that is too large some tables."""
    with reading(os.fspath(file)) as recording:
        if not _too_large(recording.store):
            return _recording(recording, folder, name)
    with sensible(os.fspath(file)):
        large = Sliced(file)
        rows = {"tasks": _table(folder, "tasks", name, large.tasks())}
        return _entry(name, file, large, rows)


def _too_large(store: Store) -> bool:
    return not store.complete and "max_memory" in store.incomplete_reason


def _recording(recording: Recording, folder: Path, name: str) -> Entry:
    rows = {table: _table(folder, table, name, [_frame(recording, table)]) for table in COLUMNS}
    entry = _entry(name, recording.path or "", recording.store, rows)
    return entry | {"wall_s": recording.wall}


def _entry(
    name: str, file: str | os.PathLike[str], recorded: Store | Sliced, rows: dict[str, int]
) -> Entry:
    return {
        "name": name,
        "file": printable(Path(file).name),
        "label": printable(str(recorded.header.get("label", ""))),
        "started": printable(str(recorded.header.get("started", ""))),
        "complete": recorded.complete,
        "incomplete_reason": printable(recorded.incomplete_reason),
        "wall_s": None,
        "rows": rows,
        "left_out": [table for table in COLUMNS if table not in rows],
    }


def _left_out(entry: Entry) -> str:
    left = ", ".join(entry["left_out"])
    return f"{entry['file']} is too large for memory: of its tables these were left out: {left}"


def _frame(recording: Recording, table: str) -> pd.DataFrame:
    """A table; what was its index is a column."""
    frame: pd.DataFrame
    frame = getattr(recording, "findings_frame" if table == "findings" else table)()
    return frame.reset_index() if frame.index.name else frame


def _table(folder: Path, table: str, name: str, frames: Iterable[pd.DataFrame]) -> int:
    """Write the parts of a table; how many rows it has."""
    rows = 0
    for number, frame in enumerate(_parts(frames)):
        file = folder / table / name / f"part-{number:05}.parquet"
        _write(file, _arrow(frame, table, name))
        rows += len(frame)
    return rows


def _parts(frames: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield from (frame.iloc[i : i + ROWS] for i in range(0, len(frame), ROWS))


def _write(file: Path, rows: pa.Table) -> None:
    """A file that only its owner may read: keys and paths are in it."""
    from pyarrow.parquet import write_table

    for folder in (file.parent.parent, file.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        write_table(rows, out, compression="zstd", row_group_size=_GROUP)


def _arrow(frame: pd.DataFrame, table: str, name: str) -> pa.Table:
    """A table of a recording in the types of all recordings."""
    import pyarrow as pa

    columns = schema(table)
    arrays = [_column(frame[field.name], field.type) for field in columns if field.name in frame]
    return pa.Table.from_arrays([*arrays, pa.repeat(name, len(frame))], schema=columns)


def _column(values: pd.Series[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_list(kind):
        texts = values.tolist()
        try:
            return pa.array(texts, kind, from_pandas=True)
        except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot carry
            return pa.array([printable(t) if isinstance(t, str) else t for t in texts], kind)
    if pa.types.is_integer(kind) and values.dtype in ("object", "uint64"):
        return pa.array([min(max(int(n), -_WIDEST), _WIDEST) for n in values], kind)
    return pa.array(values.astype(kind.to_pandas_dtype()).to_numpy(), kind)


def _whole(folder: Path, entries: list[Entry]) -> None:
    """Say that the dataset is whole."""
    said = {"schema": FORM, "stageprof": __version__, "recordings": entries}
    fd = os.open(folder / MANIFEST, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        json.dump(said, out, indent=1, allow_nan=False)
