"""`stageprof.dataset`: the tables of exported recordings as Dask DataFrames.

For what does not fit into memory: a recording of ten million tasks, or the recordings of a year of
CI. Written by `stageprof export --to parquet`; nothing is read before Dask computes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from stageprof.schema import COLUMNS, FORM, MANIFEST, schema
from stageprof_runtime.errors import UsageError

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

#: Conditions as `dask.dataframe.read_parquet` takes them: `[("nbytes", ">", 1e6)]`.
Filters = Sequence[tuple[str, str, Any]] | Sequence[Sequence[tuple[str, str, Any]]]

#: The type of texts in data frames of this pandas.
_TEXT: Final = pd.Series(["text"]).dtype
#: Characters of the manifest that are read: a million recordings take fewer.
_LARGEST: Final = 1 << 30
_FACTS: Final = ("name", "file", "label", "started", "complete", "incomplete_reason", "wall_s")


class NotADataset(UsageError):
    """There is no whole dataset at a path."""


def dataset(path: str | os.PathLike[str]) -> Dataset:
    """The dataset at a path, as `stageprof export --to parquet` writes it.

    ::

        runs = stageprof.dataset("ci-2026/")
        slow = runs.tasks()
        slow[slow.duration_s > 10].groupby(["recording", "layer"]).size().compute()

    Raises:
        NotADataset: there is none, it was not finished, or a newer stageprof wrote it.
    """
    return Dataset(Path(path))


class Dataset:
    """Recordings as tables of all of them.

    Each method is that of `stageprof.Recording`, and gives the same columns in the same order with
    the same types (what is an index there is a column here, as the stage of `stages()`), and last
    `recording`: the name of the recording in the dataset, see `recordings()`. Dask reads of the
    files only the columns that a computation uses, and passes over rows that its conditions rule
    out; `filters` says conditions that Dask does not see.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._recordings = _manifest(path)

    def __repr__(self) -> str:
        return f"<Dataset of {len(self._recordings):,} recordings>"

    def recordings(self) -> pd.DataFrame:
        """One row per recording.

        Columns: name (in the dataset), file, label, started, complete, incomplete_reason, wall_s
        (NaN if it was too large for memory), left_out (the tables that are not there for that).
        """
        rows = [[*(e[fact] for fact in _FACTS), ", ".join(e["left_out"])] for e in self._recordings]
        frame = pd.DataFrame(rows, columns=[*_FACTS, "left_out"])
        return frame.astype({"wall_s": "float64"})

    def tasks(self, filters: Filters | None = None) -> DataFrame:
        """One row per run of a task; see `Recording.tasks`."""
        return self._table("tasks", filters)

    def steps(self, filters: Filters | None = None) -> DataFrame:
        """Where the time went by stage, step and role; see `Recording.steps`."""
        return self._table("steps", filters)

    def places(self, filters: Filters | None = None) -> DataFrame:
        """Where the time went by process; see `Recording.places`."""
        return self._table("places", filters)

    def stages(self, filters: Filters | None = None) -> DataFrame:
        """Where the wall time went; see `Recording.stages`."""
        return self._table("stages", filters)

    def layers(self, filters: Filters | None = None) -> DataFrame:
        """One row per layer and user line; see `Recording.layers`."""
        return self._table("layers", filters)

    def lines(self, filters: Filters | None = None) -> DataFrame:
        """One row per line of the user's; see `Recording.lines`."""
        return self._table("lines", filters)

    def computations(self, filters: Filters | None = None) -> DataFrame:
        """One row per graph handed over; see `Recording.computations`."""
        return self._table("computations", filters)

    def critical_path(self, filters: Filters | None = None) -> DataFrame:
        """The segments of the blocking account; see `Recording.critical_path`."""
        return self._table("critical_path", filters)

    def samples(self, filters: Filters | None = None) -> DataFrame:
        """Memory, CPU and more over time; see `Recording.samples`."""
        return self._table("samples", filters)

    def workers(self, filters: Filters | None = None) -> DataFrame:
        """One row per worker; see `Recording.workers`."""
        return self._table("workers", filters)

    def objects(self, filters: Filters | None = None) -> DataFrame:
        """Embedded objects; see `Recording.objects`. Its `layers` are arrays of texts."""
        return self._table("objects", filters)

    def recomputed(self, filters: Filters | None = None) -> DataFrame:
        """Work done twice; see `Recording.recomputed`."""
        return self._table("recomputed", filters)

    def gil(self, filters: Filters | None = None) -> DataFrame:
        """Who held the GIL, and who waited for it; see `Recording.gil`."""
        return self._table("gil", filters)

    def findings(self, filters: Filters | None = None) -> DataFrame:
        """One row per finding; see `Recording.findings_frame`."""
        return self._table("findings", filters)

    def _table(self, name: str, filters: Filters | None) -> DataFrame:
        import dask.dataframe as dd

        columns = schema(name)
        # Dask reads texts as Arrow's; pandas has them in the type that it gives this one
        texts = dict.fromkeys((c.name for c in columns if str(c.type) == "string"), _TEXT)
        frame: DataFrame
        if any(each["rows"].get(name) for each in self._recordings):
            folder = os.fspath((self.path / name).absolute())
            frame = dd.read_parquet(folder, filesystem="arrow", filters=filters)
        else:
            frame = dd.from_pandas(columns.empty_table().to_pandas(), npartitions=1)
        typed: DataFrame = frame.astype(texts)
        return typed


def _manifest(path: Path) -> list[dict[str, Any]]:
    """What the dataset says of its recordings."""
    try:
        with (path / MANIFEST).open(encoding="utf-8") as file:
            said = json.loads(file.read(_LARGEST))
        form, recordings = str(said["schema"]), said["recordings"]
        if form == FORM:
            return [_entry(each) for each in recordings]
    except (
        OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        why = getattr(error, "strerror", "") or str(error)
        raise NotADataset(
            f"{path} is no whole dataset ({why})",
            expected=f"a folder with {MANIFEST}",
            do="write one with: stageprof export FILE... --to parquet -o DATASET",
        ) from error
    raise NotADataset(
        f"{path} is of the form {form!r}", expected=FORM, do="use the stageprof that wrote it"
    )


def _entry(said: dict[str, Any]) -> dict[str, Any]:
    """What is used of it; what a stranger says beside is left out."""
    wall = said["wall_s"]
    texts = {fact: str(said[fact]) for fact in _FACTS}
    return texts | {
        "complete": bool(said["complete"]),
        "wall_s": float("nan") if wall is None else float(wall),
        "rows": {table: int(said["rows"].get(table, 0)) for table in COLUMNS},
        "left_out": [table for table in COLUMNS if table in said["left_out"]],
    }
