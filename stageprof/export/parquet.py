"""A folder of Parquet files, one per table; texts as they were recorded."""

from __future__ import annotations

from pathlib import Path

from stageprof.export.tables import tables, texts
from stageprof.recording import Recording


def write(recording: Recording, folder: Path) -> None:
    """Write the tables; times are seconds (`_s`), sizes bytes."""
    folder.mkdir()
    for name, frame in tables(recording):
        plain = frame.astype(dict.fromkeys(texts(frame), "string"))
        plain.to_parquet(folder / f"{name}.parquet", index=False)
