"""A folder of CSV files, one per table, for spreadsheets.

A spreadsheet runs a cell that begins like a formula, and a key may begin so: such texts get an
apostrophe in front. Parquet has every text as it was.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from stageprof.export.tables import tables, texts
from stageprof.recording import Recording
from stageprof_collectors.text import safe

_FORMULA = ("=", "+", "-", "@")
_LIMIT = 2000


def write(recording: Recording, folder: Path) -> None:
    """Write the tables; times are seconds (`_s`), sizes bytes."""
    folder.mkdir()
    for name, frame in tables(recording):
        shown = frame.assign(**{column: _shown(frame[column]) for column in texts(frame)})
        shown.to_csv(folder / f"{name}.csv", index=False)


def _shown(column: pd.Series[str]) -> pd.Series[str]:
    """Each different text is looked at once: keys are many, layers and workers few."""
    return column.map({value: _cell(value) for value in column.dropna().unique()})


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = safe(value, limit=_LIMIT)
    return f"'{text}" if text.startswith(_FORMULA) else text
