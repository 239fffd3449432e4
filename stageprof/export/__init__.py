"""A recording in the formats of other tools: one file each, and the one table of them."""

from __future__ import annotations

from stageprof.export.csv import write as csv
from stageprof.export.parquet import write as parquet
from stageprof.export.perfetto import write as perfetto
from stageprof.export.target import Format

#: Every format by the name that `--to` takes.
FORMATS: dict[str, Format] = {
    "parquet": Format(parquet, "-parquet"),
    "perfetto": Format(perfetto, ".perfetto.json"),
    "csv": Format(csv, "-csv"),
}
