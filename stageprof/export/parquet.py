"""A folder of Parquet files, one per table; texts as they were recorded."""

from __future__ import annotations

from pathlib import Path

from stageprof.export.tables import tables
from stageprof.recording import Recording


def write(recording: Recording, folder: Path) -> None:
    """Write the tables; times are seconds (`_s`), sizes bytes."""
    folder.mkdir()
    for name, frame in tables(recording):
        texts = frame.select_dtypes("object").columns
        plain = frame.astype(dict.fromkeys(texts, "string"))
        plain.to_parquet(folder / f"{name}.parquet", index=False)
