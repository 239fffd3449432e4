"""The tables that leave a recording as files, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from stageprof.recording import Recording

#: Methods of a recording; each makes a file of its name.
TABLES = (
    "tasks", "steps", "stages", "places", "layers", "computations", "critical_path", "samples",
    "workers",
)  # fmt: skip


def texts(frame: pd.DataFrame) -> list[str]:
    """The columns that may hold texts."""
    kinds = (pd.api.types.is_numeric_dtype, pd.api.types.is_bool_dtype)
    return [name for name in frame.columns if not any(kind(frame[name]) for kind in kinds)]


def tables(recording: Recording) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each table with its name; what was the index is a column."""
    for name in TABLES:
        frame: pd.DataFrame = getattr(recording, name)()
        yield name, frame.reset_index() if frame.index.name else frame
